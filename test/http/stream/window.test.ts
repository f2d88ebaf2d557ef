// Windows of lists over the real server: HTTP and WebSocket, plain and compressed, and what is refused.
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { WINDOWS_OF_CLIENT_MAX } from '../../../src/http/limits.ts'
import { FollowReader, type Line } from '../../support/follow-reader.ts'
import { StreamReader } from '../../support/stream-reader.ts'
import { expectProblem, newMint } from '../../support/submission.ts'
import { openTestServer, type TestServer } from '../../support/test-server.ts'

let server: TestServer
const mints = Array.from({ length: 6 }, newMint)
const closers: (() => void)[] = []
beforeAll(async () => {
  server = await openTestServer()
  await server.client.push(
    ...mints.map((mint, index) => ({
      type: 'token',
      mint,
      ts: Date.now(),
      name: `Token ${index}`,
      symbol: 'T',
      totalSupply: 1e9,
    })),
  )
  for (const [index, mint] of mints.entries()) await trade(mint, 10 * (index + 1))
})
afterAll(() => server.remove())
afterEach(() => {
  for (const close of closers.splice(0)) close()
})

const trade = (mint: string, solAmount: number) =>
  server.client.push({
    type: 'trade',
    mint,
    ts: Date.now(),
    side: 'buy',
    tokenAmount: 1_000,
    priceUsd: solAmount,
  })

const follow = (query: string): FollowReader => {
  const reader = new FollowReader(`${server.url}/api/v1/market?format=ndjson&follow=window&${query}`)
  closers.push(() => reader.close())
  return reader
}
const socket = (headers?: Record<string, string>): StreamReader => {
  const reader = new StreamReader(`${server.url.replace('http', 'ws')}/api/v1/stream`, undefined, headers)
  closers.push(() => reader.close())
  return reader
}

/** The rows up to the next line about the window, and that line. */
async function frame(reader: FollowReader): Promise<{ rows: Line[]; told: Line }> {
  const rows: Line[] = []
  for (;;) {
    const line = await reader.next()
    if (line === null) throw new Error('the stream ended')
    if (line.event === undefined) rows.push(line)
    if (line.event === 'window') return { rows, told: line }
  }
}

describe('a window', () => {
  it('over HTTP begins with its rows and its order, and tells what changes, in the fields that were asked for', async () => {
    const reader = follow('sort=price&limit=2&offset=1&fields=priceUsd')
    const first = await frame(reader)
    expect(first.rows).toEqual([
      { mint: mints[4], priceUsd: 50 },
      { mint: mints[3], priceUsd: 40 },
    ])
    expect(first.told).toMatchObject({ offset: 1, total: 6, order: [mints[4], mints[3]] })
    expect(reader.headers.get('content-encoding')).toBe('gzip')
    await trade(mints[3], 45)
    expect(await frame(reader)).toMatchObject({ rows: [{ mint: mints[3], priceUsd: 45 }] })
    await trade(mints[3], 55)
    expect(await frame(reader)).toMatchObject({
      rows: [{ mint: mints[3], priceUsd: 55 }],
      told: { order: [mints[3], mints[4]] },
    })
    // The first row of the list falls below the window, and the one behind the window comes into it.
    await trade(mints[5], 1)
    const { rows, told } = await frame(reader)
    expect(told.order).toEqual([mints[4], mints[2]])
    expect(rows).toEqual([{ mint: mints[2], priceUsd: 30 }])
  })

  it('of a set of mints has each token while the market holds it, and tells nothing of others', async () => {
    const later = newMint()
    const reader = socket()
    await reader.send({
      op: 'subscribe',
      topic: 'window',
      mints: [mints[0], later],
      fields: ['name'],
      id: '1',
    })
    const { channel } = await reader.until('subscribed')
    expect(await reader.next()).toMatchObject({ event: 'window', channel, total: 1, order: [mints[0]] })
    await trade(mints[1], 7)
    await server.client.push({ type: 'token', mint: later, ts: Date.now(), name: 'Later', symbol: 'L' })
    const message = await reader.until('window')
    expect(message.rows).toEqual([{ mint: later, name: 'Later' }])
    expect(message.order).toHaveLength(2)
    await reader.send({ op: 'unsubscribe', channel, id: '2' })
    expect(await reader.until('unsubscribed')).toMatchObject({ id: '2', channel })
  })

  it('of an empty set has no row, and one of no fields the mints: neither is taken for what is missing', async () => {
    const reader = socket()
    await reader.send({ op: 'subscribe', topic: 'window', mints: [] })
    expect(await reader.until('window')).toMatchObject({ total: 0, order: [], rows: [] })
    await reader.send({ op: 'subscribe', topic: 'window', mints: [mints[0]], fields: [] })
    expect((await reader.until('window')).rows).toEqual([{ mint: mints[0] }])
    const { body } = await server.client.get('/api/v1/market?mints=,')
    expect([body.data, body.meta.mints]).toEqual([[], 0])
  })

  it.each(['alone', 'beside the market'])(
    '%s has a position that rises with the market, though it does not change',
    async (how) => {
      const reader = socket()
      if (how !== 'alone') await reader.send({ op: 'subscribe', topic: 'market', tab: 'all' })
      await reader.send({ op: 'subscribe', topic: 'window', mints: [mints[0]], fields: ['name'] })
      let { seq: last } = await reader.until('window')
      for (const solAmount of [8, 9]) {
        await trade(mints[1], solAmount)
        await expect
          .poll(async () => {
            await reader.send({ op: 'ping', id: '1' })
            const { seq } = await reader.until('pong')
            expect(seq).toBeGreaterThanOrEqual(last)
            last = seq
            return seq
          })
          .toBe(server.market.seq)
      }
    },
  )

  it('has what a page with the same filters has', async () => {
    const query = 'sort=volume_24h&order=asc&min_volume_24h=100&max_price=60&search=token&fields=compact'
    const page = await server.client.get(`/api/v1/market?${query}`)
    const { rows, told } = await frame(follow(query))
    expect(rows).toEqual(page.body.data)
    expect(told.total).toBe(page.body.meta.total)
    expect(page.body.meta.ranges).toEqual({ min_volume_24h: 100, max_price: 60 })
  })

  it.each([
    ['since=1', '/since'],
    ['limit=201', '/limit'],
    ['mints=nothing', '/mints/0'],
    ['mints=', '/mints'],
    [`mints=${Array.from({ length: 201 }, newMint).join(',')}`, '/mints'],
    ['fields=prise', '/fields'],
    ['min_liquidity=x', '/min_liquidity'],
    ['min_price=2&max_price=1', '/min_price'],
    ['sort=volumen_24h', '/sort'],
  ])('with %.24s is refused, and the error says what is wrong', async (query, pointer) => {
    const answer = await server.client.get(`/api/v1/market?format=ndjson&follow=window&${query}`)
    expect(answer.status).toBe(400)
    expect(answer.body.errors[0].pointer).toBe(pointer)
  })

  it('is not what a stream of a whole tab can be', async () => {
    for (const query of [`mints=${mints[0]}`, 'mints=', 'min_volume_24h=1', 'max_age_ms=1'])
      expectProblem(
        await server.client.get(`/api/v1/market?format=ndjson&follow=1&${query}`),
        'invalid_parameter',
        `/${query.split('=')[0]}`,
      )
  })
})

describe('the windows of one client', () => {
  const window = (offset: number) => ({
    op: 'subscribe',
    topic: 'window',
    sort: 'price',
    offset,
    fields: ['name'],
  })

  it('are bounded over all its streams, and leave windows for others', async () => {
    const first = socket()
    for (let offset = 0; offset < WINDOWS_OF_CLIENT_MAX; offset++) {
      await first.send(window(offset))
      await first.until('subscribed')
    }
    const second = socket()
    await second.send(window(WINDOWS_OF_CLIENT_MAX))
    const refusal = { code: 'read_rate_limited', status: 429, limit: WINDOWS_OF_CLIENT_MAX }
    expect(await second.until('error')).toMatchObject(refusal)
    const path = '/api/v1/market?format=ndjson&follow=window&sort=holders'
    expectProblem(await server.client.get(path), 'read_rate_limited')
    // One that it follows already may be followed by another of its streams.
    await second.send(window(1))
    expect(await second.until('window')).toMatchObject({ offset: 1 })

    const key = await server.client.register()
    const other = socket({ Authorization: `Bearer ${key}` })
    await other.send(window(WINDOWS_OF_CLIENT_MAX))
    expect(await other.until('window')).toMatchObject({ rows: [] })
    // What others follow counts too.
    await second.send(window(WINDOWS_OF_CLIENT_MAX))
    expect(await second.until('error')).toMatchObject(refusal)

    // The second stream follows window 1, which ends for this client with the last stream of it.
    await first.send({ ...window(1), op: 'unsubscribe' })
    await first.until('unsubscribed')
    await first.send(window(WINDOWS_OF_CLIENT_MAX + 1))
    expect(await first.until('error')).toMatchObject(refusal)
    await second.send({ ...window(1), op: 'unsubscribe' })
    await second.until('unsubscribed')
    await second.send(window(WINDOWS_OF_CLIENT_MAX + 1))
    expect(await second.until('window')).toMatchObject({ rows: [] })
  })
})

describe('fields', () => {
  it('of a list are those that were asked for, in every format, and mint', async () => {
    const { body } = await server.client.get(
      '/api/v1/market?fields=symbol,change_5m,trades_24h&limit=1&sort=price',
    )
    expect(Object.keys(body.data[0])).toEqual(['mint', 'symbol', 'change_5m', 'trades_24h'])
    expect(body.meta.fields).toEqual(['mint', 'symbol', 'change_5m', 'trades_24h'])
    const { text } = await server.client.get('/api/v1/market?fields=symbol&limit=1&sort=price&format=ndjson')
    expect(text).toBe(`{"mint":"${body.data[0].mint}","symbol":"T"}\n`)
    const whole = await server.client.get(`/api/v1/market?mints=${mints[0]}`)
    expect(whole.body.data[0]).not.toHaveProperty('change_5m')
  })

  it('of a DataPoint are those that were asked for, and a wrong name is told with those like it', async () => {
    const path = `/api/v1/datapoint?mint=${mints[0]}`
    expect((await server.client.get(`${path}&fields=priceUsd,volume1h`)).body.data).toEqual({
      mint: mints[0],
      priceUsd: 10,
      volume1h: expect.any(Number),
    })
    const batch = await server.client.post('/api/v1/datapoint/batch?fields=symbol', { mints: [mints[0]] })
    expect(batch.body.data).toEqual([{ mint: mints[0], symbol: 'T' }])
    const wrong = await server.client.get(`${path}&fields=prceUsd,marketcap`)
    expectProblem(wrong, 'invalid_parameter', '/fields')
    expect(wrong.body.error).toContain('priceUsd')
    expect(wrong.body.errors.map(({ suggestion }: { suggestion: string }) => suggestion)).toEqual([
      'priceUsd',
      'marketCap',
    ])
  })

  it('stay with the pages of a cursor where they are sent again', async () => {
    const first = await server.client.get('/api/v1/market?sort=volume_1h&limit=2&fields=symbol')
    const cursor = first.body.meta.nextCursor
    const second = await server.client.get(`/api/v1/market?cursor=${cursor}&limit=500&fields=symbol`)
    const seen = [...first.body.data, ...second.body.data].map(({ mint }: { mint: string }) => mint)
    expect(new Set(seen).size).toBe(first.body.meta.total)
    expect(Object.keys(second.body.data[0])).toEqual(['mint', 'symbol'])
  })
})

it('the totals are the sums of the rows', async () => {
  const rows = (await server.client.get('/api/v1/market?limit=500&fields=volume_24h_usd,buys_24h')).body.data
  const sum = (name: string) =>
    rows.reduce((total: number, row: Record<string, number>) => total + row[name], 0)
  const { data } = (await server.client.get('/api/v1/market/totals')).body
  expect(data.tokens).toBe(rows.length)
  expect(data.launches_24h).toBe(rows.length)
  expect(data.buys_24h).toBeLessThanOrEqual(sum('buys_24h'))
  expect(data.volume_24h_usd).toBeCloseTo(sum('volume_24h_usd'), 6)
})
