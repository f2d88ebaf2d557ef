// Pushes events to a real server and reads the lake: versions of token profiles and closed bars are recorded once each.
import { afterEach, beforeEach, expect, test } from 'vitest'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import { lakeGlob, readSql } from '../store/support.ts'
import { clockOf } from '../support/clock.ts'
import { openTestServer, type TestServer } from '../support/test-server.ts'

const MINUTE_MS = 60_000
const MINT = mintOfSymbol('records')
let nowMs = Date.UTC(2025, 5, 1, 12)
let server: TestServer

beforeEach(async () => {
  nowMs = Date.UTC(2025, 5, 1, 12)
  // Each start begins with an empty market. That of one that goes on is tested in test/checkpoint.
  server = await openTestServer({ record: 'false' }, { clock: clockOf(() => nowMs) })
})
afterEach(() => server.remove())

const lake = (sql: string) =>
  readSql(sql, `ATTACH '${server.dataDir}/lake/catalog.duckdb' AS lake (READ_ONLY)`)
const token = (over: object = {}) => ({
  type: 'token',
  mint: MINT,
  ts: nowMs,
  name: 'First',
  symbol: 'ONE',
  ...over,
})
const patch = (fields: object) => ({ type: 'patch', mint: MINT, ts: nowMs, fields })
const trade = (priceUsd: number, mint = MINT) => ({
  type: 'trade',
  mint,
  ts: nowMs,
  side: 'sell',
  tokenAmount: 4,
  priceUsd,
})
const bySilence = mintOfSymbol('known by its trades alone')

test('each version of a token profile is recorded once, and the view of tokens shows the latest', {
  tags: 'drill',
}, async () => {
  const { client } = server
  const versions = () =>
    lake(`SELECT name, description, graduated FROM read_parquet(
    '${server.dataDir}/lake/tokens/*/*.parquet') ORDER BY updated_at`)
  const settled = async (count: number) => {
    await expect
      .poll(
        async () => {
          await server.store.flushLake()
          return (await versions()).length
        },
        { timeout: 20_000 },
      )
      .toBe(count)
  }
  await client.push(token({ description: 'as it was' }), trade(2, bySilence))
  await settled(1)
  nowMs += 1_000
  // The same profile again, and figures that no profile has.
  await client.push(token({ description: 'as it was' }), patch({ holderCount: 5 }), trade(3))
  nowMs += 1_000
  await client.push(patch({ name: 'Second', website: 'https://example.org' }), patch({ name: 'Third' }))
  await settled(2)
  nowMs += 1_000
  await client.push({ type: 'graduated', mint: MINT, ts: nowMs })
  await settled(3)
  expect(await versions()).toEqual([
    { name: 'First', description: 'as it was', graduated: false },
    { name: 'Third', description: 'as it was', graduated: false },
    { name: 'Third', description: 'as it was', graduated: true },
  ])
  const inForce = await lake('SELECT mint, name, symbol, website, graduated, created_at FROM lake.tokens')
  expect(inForce).toEqual([
    {
      mint: MINT,
      name: 'Third',
      symbol: 'ONE',
      website: 'https://example.org',
      graduated: true,
      created_at: new Date(Date.UTC(2025, 5, 1, 12)),
    },
  ])
})

test('closed bars are in the lake when the server has stopped, open bars are not, and a restart writes none twice', {
  tags: 'drill',
}, async () => {
  const { client } = server
  const startMs = nowMs
  for (let minute = 0; minute < 6; minute++) {
    nowMs = startMs + minute * MINUTE_MS
    await client.push(trade(minute + 1))
  }
  nowMs += 30_000
  await expect.poll(() => server.market.timeMs, { timeout: 10_000 }).toBe(nowMs)
  const bars = () =>
    readSql(`SELECT tf, epoch_ms(t)::DOUBLE - ${startMs} AS t, o, c, v, n::INT AS n, buys::INT AS buys,
      epoch_ms(watched_since)::DOUBLE - ${startMs} AS since FROM ${lakeGlob(server.dataDir, 'bars')} ORDER BY ALL`)
  const minuteBar = (minute: number) => ({
    tf: '1m',
    t: minute * MINUTE_MS,
    o: minute + 1,
    c: minute + 1,
    v: 4 * (minute + 1),
    n: 1,
    buys: 0,
    since: 0,
  })
  const expected = [
    ...[0, 1, 2, 3, 4].map(minuteBar),
    { tf: '5m', t: 0, o: 1, c: 5, v: 60, n: 5, buys: 0, since: 0 },
  ]
  server = await server.restart()
  expect(await bars()).toEqual(expected)
  nowMs = startMs + 8 * MINUTE_MS
  await server.client.push({ ...trade(9), ts: startMs + 4 * MINUTE_MS })
  server = await server.restart()
  expect(await bars()).toEqual(expected)
})

test('a server whose lake lacks bars that the engine has closed says so in /health and as a metric', {
  tags: 'drill',
}, async () => {
  const { client, store } = server
  expect((await client.get('/health')).body.reasons).toEqual([])
  // As the count of an engine of whose bars five were lost on their way.
  store.bars.compareWith(() => [0, 0, 0, 5, 0, 0, 0, 0, 0])
  const healthAfterFlush = async () => {
    await store.flushLake()
    return (await client.get('/health')).body
  }
  await expect.poll(healthAfterFlush, { timeout: 10_000 }).toMatchObject({
    status: 'degraded',
    reasons: ['closed bars of this run are missing in the lake: 5 of 1m'],
  })
  expect((await client.get('/metrics')).text).toContain('\nmintlake_lake_bars_missing 5\n')
})
