// What somebody found who knew the contract alone: answers that said less than the server knew, or more.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { expectProblem, newMint, seedToken, submission, submit } from '../../support/submission.ts'
import { ADMIN_KEY, FEED_KEY, openTestServer, type TestServer } from '../../support/test-server.ts'

let server: TestServer
beforeAll(async () => {
  server = await openTestServer()
})
afterAll(() => server.remove())

const get = (path: string, key = '') =>
  server.client.get(path, key === '' ? {} : { Authorization: `Bearer ${key}` })

describe('trades whose quote has no price', () => {
  const trade = (mint: string, side: string, price: object) => ({
    ...{ type: 'trade', mint, ts: Date.now(), side, tokenAmount: 10, wallet: `w ${side}` },
    ...price,
  })
  const unpriced = { quoteMint: newMint(), quoteAmount: 50 }

  it('make the volumes of every window that has them unknown', async () => {
    const mint = await seedToken(server.client, Date.now())
    const figures = async () => (await get(`/api/v1/datapoint?mint=${mint}`)).body.data
    await server.client.push(trade(mint, 'buy', { priceUsd: 1 }))
    const priced = await figures()
    expect(priced).toMatchObject({ volume1m: 10, tradeRate1m: 1 })
    await server.client.push(trade(mint, 'buy', unpriced), trade(mint, 'sell', unpriced))
    const datapoint = await figures()
    expect(datapoint.tradeCount).toBe(priced.tradeCount + 2)
    for (const name of ['volume1m', 'volume1h', 'volume6h', 'buySellImbalance1m'])
      expect(datapoint[name], name).toBeNull()
  })

  it('are counted as any other, so that lists find them and invented counts are told from true ones', async () => {
    const mint = newMint()
    const sides = ['buy', 'buy', 'buy', 'sell']
    await server.client.push(...sides.map((side) => trade(mint, side, { priceUsd: 1 })))
    await server.client.push(trade(mint, 'sell', unpriced))
    const own = { volume24h: null, buy_volume_24h_usd: null, sell_volume_24h_usd: null }
    const counts = { tradeCount: 5, buys24h: 3, sells24h: 2, tradeRate1m: 5 }
    const path = `/api/v1/datapoint?mint=${mint}`
    expect((await get(path)).body.data).toMatchObject({ ...counts, ...own })
    const list = `/api/v1/market?mints=${mint}&fields=mint,buys_24h,sells_24h,trades_24h,volume_24h_usd`
    const row = { mint, buys_24h: 3, sells_24h: 2, trades_24h: 5, volume_24h_usd: null }
    expect((await get(`${list}&min_trades_24h=5&max_sells_24h=2`)).body.data).toEqual([row])
    expect((await get(`${list}&min_trades_24h=6`)).body.data).toEqual([])
    expect((await get(`${list}&min_volume_24h=0`)).body.data).toEqual([])
    const send = async (counts: object) => {
      const snapshot = { ...counts, snapshotAt: Date.now() }
      return submit(server.client, await server.client.register(), { ...submission(mint), snapshot })
    }
    const { status, body } = await send({ buys24h: 99_999, sells24h: 99_999 })
    expect([status, body.outcome]).toEqual([422, 'rejected'])
    expect((await send({ buys24h: 3, sells24h: 2 })).body).toMatchObject({ deviationPct: 0, validated: true })
  })

  it('are null and no 0 in lists too, which have such tokens last', async () => {
    const [mint, other] = [newMint(), newMint()]
    await server.client.push(
      trade(mint, 'buy', unpriced),
      { type: 'patch', mint, ts: Date.now(), fields: { holderCount: 5 } },
      trade(other, 'sell', { priceUsd: 2 }),
    )
    const rows = async (order: string) =>
      (await get(`/api/v1/market?sort=volume_24h&order=${order}&limit=500`)).body.data as {
        mint: string
        volume_24h_usd: number | null
      }[]
    for (const order of ['asc', 'desc']) {
      const list = await rows(order)
      expect(list.find((row) => row.mint === mint)).toMatchObject({ volume_24h_usd: null })
      const of = (wanted: string) => list.findIndex((row) => row.mint === wanted)
      expect(of(other)).toBeLessThan(of(mint))
    }
    const key = await server.client.register()
    const snapshot = { buys24h: 1, sells24h: 0, holderCount: 5, snapshotAt: Date.now() }
    const answer = await submit(server.client, key, { ...submission(mint), snapshot })
    expect(answer.status, answer.text).toBe(201)
    expect(answer.body.outcome).toBe('validated')
  })
})

it('a ban until a time that has passed is refused, and says where seconds were sent', async () => {
  const { data } = (await get('/api/v1/admin/agents', ADMIN_KEY)).body
  const { agentId } = data[0]
  const ban = (untilMs: number) => server.client.post('/api/v1/admin/ban', { agentId, untilMs }, ADMIN_KEY)
  expectProblem(await ban(5), 'validation_failed', '/untilMs')
  const inSeconds = await ban(Math.floor(Date.now() / 1_000) + 3_600)
  expectProblem(inSeconds, 'validation_failed', '/untilMs')
  expect(inSeconds.body.error).toContain('looks like seconds')
})

it('a researcher’s key, which sees what is withheld from agents, submits nothing, and the operator’s reads', async () => {
  const made = await server.client.post('/api/v1/admin/keys', { name: 'lab', type: 'researcher' }, ADMIN_KEY)
  const { key } = made.body.data
  const mint = await seedToken(server.client, Date.now())
  expectProblem(await submit(server.client, key, submission(mint)), 'key_not_allowed')
  expect((await get('/api/v1/market', key)).status).toBe(200)
  expect((await get('/api/v1/market', ADMIN_KEY)).status).toBe(200)
})

it('addresses of a profile are of the web', async () => {
  const key = await server.client.register()
  for (const field of ['avatarUrl', 'website']) {
    for (const address of ['javascript:alert(1)', ' data:text/html,x', 'vbscript:x'])
      expectProblem(
        await server.client.post('/api/v1/agent/profile', { [field]: address }, key),
        'validation_failed',
        `/${field}`,
      )
    for (const address of ['https://example.org/a', 'example.org', null])
      expect((await server.client.post('/api/v1/agent/profile', { [field]: address }, key)).status).toBe(200)
  }
})

it('a cursor that was cut, or has something behind it, is none', async () => {
  for (let count = 0; count < 12; count++) await seedToken(server.client, Date.now())
  const { nextCursor } = (await get('/api/v1/market?limit=10')).body.meta
  for (const cursor of [
    nextCursor.slice(0, -1),
    nextCursor.slice(0, -2),
    `${nextCursor}1`,
    `${nextCursor}AA`,
  ])
    expectProblem(await get(`/api/v1/market?cursor=${cursor}`), 'invalid_parameter', '/cursor')
  expect((await get(`/api/v1/market?cursor=${nextCursor}`)).body.meta.offset).toBe(10)
})

it('a limit that is clamped is told by a header where the format has no meta, and a range that ends before it begins is none', async () => {
  const mint = await seedToken(server.client, Date.now())
  const clamped = async (path: string) => (await get(path)).headers.get('x-clamped')
  for (const format of ['json', 'ndjson', 'msgpack', 'arrow'])
    expect(await clamped(`/api/v1/ohlc?mint=${mint}&limit=5000&format=${format}`), format).toBe('limit=1000')
  expect(await clamped('/api/v1/market?limit=5000&format=arrow')).toBe('limit=500')
  expect(await clamped('/api/v1/market?limit=500')).toBeNull()
  const now = Date.now()
  expectProblem(
    await get(`/api/v1/ohlc?mint=${mint}&from=${now}&to=${now - 60_000}`),
    'invalid_parameter',
    '/from',
  )
  const { headers } = await server.client.get(`/api/v1/ohlc?mint=${mint}`, { Origin: 'https://example.org' })
  expect(headers.get('access-control-expose-headers')).toMatch(/X-Held-From.*X-Clamped/)
})

it('a format that is refused by name leaves the others to a wildcard', async () => {
  const answer = await server.client.get('/api/v1/market', { Accept: 'application/json;q=0, */*;q=0.1' })
  expect(answer.status).toBe(200)
  expect(answer.headers.get('content-type')).toMatch(/^application\/x-ndjson/)
})

it('names that no patch has are told', async () => {
  const mint = await seedToken(server.client, Date.now())
  const fields = { holder_count: 5, Website: 'x', holderCount: 7 }
  const record = JSON.stringify({ type: 'patch', mint, ts: Date.now(), fields })
  const answer = await server.client.request('POST', '/api/v1/ingest', record, {
    ...{ 'Content-Type': 'application/x-ndjson', Authorization: `Bearer ${FEED_KEY}` },
  })
  expect(answer.body).toMatchObject({ accepted: 1, ignored: ['holder_count', 'Website'] })
  expect((await get(`/api/v1/datapoint?mint=${mint}`)).body.data.holderCount).toBe(7)
})

it('whole numbers may be written as msgpack leads some languages to: with a point', async () => {
  const mint = await seedToken(server.client, Date.now())
  const { version } = (await get('/api/v1/market?limit=2.0')).body.meta
  expect((await get(`/api/v1/ohlc?mint=${mint}&from=${Date.now() - 60_000}.0&to=${Date.now()}`)).status).toBe(
    200,
  )
  const follow = await fetch(`${server.url}/api/v1/market?follow=1&format=ndjson&since=${version}.0`)
  expect(follow.status).toBe(200)
  await follow.body?.cancel()
  for (const wrong of ['1.5', '1.', '.0', '1e3'])
    expectProblem(await get(`/api/v1/market?limit=${wrong}`), 'invalid_parameter', '/limit')
})

describe('requests that mean nothing', () => {
  it('an empty Idempotency-Key makes no retry safe: it is refused, and uses nothing of the rate', async () => {
    const key = await server.client.register()
    const body = submission(await seedToken(server.client, Date.now()))
    const send = (sent: string) =>
      server.client.post('/api/v1/analysis/submit', body, key, { 'Idempotency-Key': sent })
    const refused = await send('')
    expectProblem(refused, 'invalid_parameter', '/Idempotency-Key')
    const accepted = await send('one')
    expect([accepted.status, accepted.headers.get('x-ratelimit-remaining')]).toEqual([201, '9'])
  })

  it('an Idempotency-Key that cannot be told from others is refused, and told what would be taken', async () => {
    const key = await server.client.register()
    const body = submission(await seedToken(server.client, Date.now()))
    for (const sent of ['caf\u00e9 1', 'caf\u00e8 1', '\u00e9']) {
      const refused = await server.client.post('/api/v1/analysis/submit', body, key, {
        'Idempotency-Key': sent,
      })
      expectProblem(refused, 'invalid_parameter', '/Idempotency-Key')
      expect(refused.body.error).toContain('ASCII')
    }
  })

  it('a span that ends before it begins is refused by exports as by bars', async () => {
    expectProblem(await get('/api/v1/training/export?from=2&to=1', ADMIN_KEY), 'invalid_parameter', '/from')
  })

  it('a wrong word is told the words that there are, and not the empty one', async () => {
    const { body } = await get('/api/v1/analysis?outcome=valid')
    expect(body.errors[0]).toMatchObject({
      allowed: ['validated', 'unvalidated', 'rejected'],
      suggestion: 'validated',
    })
    expect(body.error).not.toContain('of ,')
  })
})
