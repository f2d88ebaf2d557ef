// Bars that lost trades because their token was evicted are marked as incomplete in every format.
import { unpack } from 'msgpackr'
import { expect, test } from 'vitest'
import { mintOfSymbol } from '../../../src/schema/mint.ts'
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
    for (const whole of [await read(''), await read(`from=${heldFrom}`), await read('to=1')]) {
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
