// Bars that lost trades because their token was evicted are marked as incomplete in every format.
import { unpack } from 'msgpackr'
import { expect, test } from 'vitest'
import { mintOfSymbol } from '../../../src/schema/mint.ts'
import { StreamReader } from '../../support/stream-reader.ts'
import { checkedFetch, openTestServer } from '../../support/test-server.ts'

const jsonOf = (response: Response) =>
  response.json() as Promise<{ data: { t: number }[]; meta: { completeFrom: number; heldFrom: number } }>

test('bars of a token that was evicted and came back state the time from which on they are complete', async () => {
  const server = await openTestServer({ 'tokens-max': '1' })
  try {
    const trade = (name: string) =>
      server.client.push({
        ...{
          type: 'trade',
          mint: mintOfSymbol(name),
          ts: Date.now(),
          side: 'buy',
          tokenAmount: 1,
          priceUsd: 1,
        },
      })
    const read = (format: string) =>
      checkedFetch(`${server.url}/api/v1/ohlc?mint=${mintOfSymbol('one')}&format=${format}`)
    await trade('one')
    const whole = await read('json')
    expect(whole.headers.has('x-complete-from')).toBe(false)
    expect((await jsonOf(whole)).meta).not.toHaveProperty('completeFrom')
    await trade('two')
    await trade('one')
    const { data, meta } = await jsonOf(await read('json'))
    expect(data[0].t).toBeLessThan(meta.completeFrom)
    expect(meta.completeFrom).toBeLessThanOrEqual(Date.now() + 1)
    expect(unpack(Buffer.from(await (await read('msgpack')).arrayBuffer())).meta).toEqual(meta)
    for (const format of ['json', 'ndjson', 'msgpack', 'arrow'])
      expect((await read(format)).headers.get('x-complete-from'), format).toBe(`${meta.completeFrom}`)
  } finally {
    await server.remove()
  }
})

test('a range that begins before the oldest bar that is held says where that one begins', async () => {
  const server = await openTestServer()
  try {
    const mint = mintOfSymbol('long')
    const [fromMs, seconds] = [Math.floor(Date.now() / 1_000) * 1_000 - 1_500_000, 1_300]
    const trades = Array.from({ length: seconds }, (_, at) => ({
      ...{ type: 'trade', mint, ts: fromMs + at * 1_000, side: 'buy', tokenAmount: 1, priceUsd: 1 },
    }))
    await server.client.push(...trades)
    const read = async (query: string) => {
      const answer = await checkedFetch(
        `${server.url}/api/v1/ohlc?mint=${mint}&limit=1000&${query.includes('tf=') ? query : `tf=1s&${query}`}`,
      )
      return { header: answer.headers.get('x-held-from'), ...(await jsonOf(answer)) }
    }
    const cut = await read(`from=${fromMs}&to=${fromMs + 600_000}`)
    const { heldFrom } = cut.meta
    expect(heldFrom).toBeGreaterThan(fromMs + 100_000)
    expect(heldFrom).toBeLessThan(fromMs + 400_000)
    expect(cut.header).toBe(`${heldFrom}`)
    expect(cut.data[0].t).toBe(heldFrom)
    for (const whole of [await read(''), await read(`from=${heldFrom}`)]) {
      expect(whole.meta).not.toHaveProperty('heldFrom')
      expect(whole.header).toBeNull()
    }
    expect((await read(`from=${fromMs}&tf=1m`)).meta).not.toHaveProperty('heldFrom')

    const few = () =>
      checkedFetch(
        `${server.url}/api/v1/ohlc?mint=${mint}&tf=1s&limit=10&from=${fromMs}&to=${fromMs + 600_000}`,
        { headers: { 'Cache-Control': 'no-cache' } },
      )
    const before = await few()
    await server.client.push(...trades.slice(0, 200).map((trade) => ({ ...trade, ts: trade.ts + 1_300_000 })))
    const after = await few()
    expect(after.headers.get('x-held-from')).not.toBe(before.headers.get('x-held-from'))
    expect((await jsonOf(after)).data).toEqual((await jsonOf(before)).data)
    expect(after.headers.get('etag')).not.toBe(before.headers.get('etag'))
  } finally {
    await server.remove()
  }
})

/** A trade in each second from then on. */
const tradesOf = (mint: string, fromMs: number, seconds: number) =>
  Array.from({ length: seconds }, (_, at) => ({
    ...{ type: 'trade', mint, ts: fromMs + at * 1_000, side: 'buy', tokenAmount: 1, priceUsd: 1 },
  }))

test('who reads back by `to` is told where the bars begin that are held, once they end there, and of a young token nothing', async () => {
  const server = await openTestServer()
  try {
    const [long, young] = ['long', 'young'].map(mintOfSymbol) as [string, string]
    const fromMs = Math.floor(Date.now() / 1_000) * 1_000 - 1_500_000
    await server.client.push(...tradesOf(long, fromMs, 1_300), ...tradesOf(young, fromMs, 30))
    const read = async (mint: string, query = '') =>
      jsonOf(await checkedFetch(`${server.url}/api/v1/ohlc?mint=${mint}&tf=1s&limit=400${query}`))
    const pages = [await read(long)]
    for (let data = pages[0].data; data.length > 0; data = pages.at(-1)!.data)
      pages.push(await read(long, `&to=${data[0].t - 1}`))
    const { data, meta } = pages.at(-2)!
    expect(meta.heldFrom).toBe(data[0].t)
    expect(meta.heldFrom).toBeGreaterThan(fromMs)
    expect(pages.map((page) => page.meta.heldFrom ?? null)).toEqual([
      null,
      null,
      meta.heldFrom,
      meta.heldFrom,
    ])
    for (const query of ['', `&from=${fromMs - 1_000}`, `&to=${fromMs}`, `&to=${fromMs - 1}`])
      expect((await read(young, query)).meta, query).not.toHaveProperty('heldFrom')
  } finally {
    await server.remove()
  }
})

test('bars of a token whose places others have taken say so, and a stream of them does', async () => {
  const server = await openTestServer({ 'tokens-max': '10' })
  const reader = new StreamReader(`${server.url.replace('http', 'ws')}/api/v1/stream`)
  try {
    const [mint, ...others] = Array.from({ length: 10 }, (_, at) => mintOfSymbol(`${at}`)) as [string]
    const fromMs = Math.floor(Date.now() / 1_000) * 1_000 - 1_500_000
    const isTold = async () => {
      const { data, meta } = await jsonOf(await checkedFetch(`${server.url}/api/v1/ohlc?mint=${mint}&tf=1s`))
      await reader.send({ op: 'subscribe', topic: 'ohlc', mint, tf: '1s' })
      const { heldFrom } = await reader.until('subscribed')
      expect(heldFrom).toBe(meta.heldFrom)
      return heldFrom === undefined ? false : heldFrom > fromMs && heldFrom <= data[0].t
    }
    await server.client.push(...tradesOf(mint, fromMs, 30))
    expect(await isTold()).toBe(false)
    for (const other of others) await server.client.push(...tradesOf(other, fromMs, 1_000))
    expect(await isTold()).toBe(true)
  } finally {
    reader.close()
    await server.remove()
  }
})
