// @module-tag drill
// Random trades through the real server, with bursts, history, restarts, kills and merges: the bars of the lake are
// those that the trades give, in SQL and by `lake verify`, which finds bars that were taken away or changed.
import { createHash } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Random } from '../../../src/ingest/simulator/random.ts'
import { mintOfSymbol } from '../../../src/schema/mint.ts'
import { TIMEFRAME_MS, TIMEFRAMES } from '../../../src/schema/timeframe.ts'
import { lakeFolder, statePath } from '../../../src/store/paths.ts'
import { verifyLake } from '../../../src/store/verify/verify.ts'
import { clockOf } from '../../support/clock.ts'
import {
  type Client,
  FEED_KEY,
  openTestServer,
  spawnServer,
  type TestServer,
} from '../../support/test-server.ts'
import { lakeGlob, NOON_MS, readSql } from '../support.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const MINTS = Array.from({ length: 30 }, (_, i) => mintOfSymbol(`compared ${i}`))

let nowMs: number
let server: TestServer
let client: Client
let random: Random
/** Tokens that are traded. */
let traded: string[]
/** Every trade that was pushed and taken, in order. */
let taken: { mint: string; ts: number; side: string; tokenAmount: number; priceUsd: number }[]

beforeEach(async () => {
  nowMs = NOON_MS
  random = new Random(11)
  taken = []
  traded = MINTS
  server = await openTestServer({ 'lake-flush-ms': '300' }, { clock: clockOf(() => nowMs) })
  client = server.client
})
afterEach(() => server.remove())

/** Pushes trades of these times. Those that come too late are refused. */
async function push(times: readonly { mint: string; ts: number }[]): Promise<void> {
  const trades = times.map(({ mint, ts }) => ({
    ...{ mint, ts, side: random.chance(0.6) ? 'buy' : 'sell' },
    ...{ tokenAmount: 1 + random.next() * 1e6, priceUsd: 1e-6 * (1 + random.next()) },
  }))
  const lines = trades.map((trade) => JSON.stringify({ type: 'trade', ...trade })).join('\n')
  const headers = { 'Content-Type': 'application/x-ndjson', Authorization: `Bearer ${FEED_KEY}` }
  const { body } = await client.request('POST', '/api/v1/ingest', lines, headers)
  const late = new Set(body.errors.map(({ index }: { index: number }) => index))
  expect(late.size).toBe(body.rejected)
  taken.push(...trades.filter((_, index) => !late.has(index)))
}

const anyMint = (): string => traded[Math.floor(random.next() * traded.length)]

/** History of all tokens: trades of a time that is over, in their order, as fast as they can be sent. */
async function pushHistory(fromMs: number, toMs: number, count: number): Promise<void> {
  const times = Array.from({ length: count }, () => fromMs + Math.floor(random.next() * (toMs - fromMs)))
  times.sort((a, b) => a - b)
  for (let from = 0; from < count; from += 2_000)
    await push(times.slice(from, from + 2_000).map((ts) => ({ mint: anyMint(), ts })))
}

/** Trades as they happen, of which some come late, and some too late. */
async function pushLive(untilMs: number): Promise<void> {
  while (nowMs < untilMs) {
    nowMs += 4_000
    await push(
      Array.from({ length: 20 }, () => ({ mint: anyMint(), ts: nowMs - Math.floor(random.next() * 7_000) })),
    )
  }
}

const verify = () => verifyLake({ dataDir: server.dataDir, nowMs, confirmMs: 1 })
const FRAMES = TIMEFRAMES.filter((tf) => TIMEFRAME_MS[tf] >= MINUTE_MS)

/** Compares the lake's bars with those of the trades that were pushed. @returns how many differ, and how many there are */
async function compare(): Promise<{ bars: number; wrong: number; missing: number }> {
  const values = taken.map(
    ({ mint, ts, side, tokenAmount, priceUsd }, no) =>
      `(${no}, '${mint}', ${ts}, '${side}', '${priceUsd}'::DOUBLE, '${priceUsd}'::DOUBLE * '${tokenAmount}'::DOUBLE)`,
  )
  const made = FRAMES.map(
    (tf) => `SELECT mint, '${tf}' AS tf, epoch_ms(ts // ${TIMEFRAME_MS[tf]} * ${TIMEFRAME_MS[tf]}) AS t,
      arg_min(price, (ts, no)) AS o, max(price) AS h, min(price) AS l, arg_max(price, (ts, no)) AS c, sum(usd) AS v,
      count(*) AS n, count(*) FILTER (side = 'buy') AS buys, max(ts) AS newest FROM pushed GROUP BY ALL`,
  ).join(' UNION ALL ')
  const [row] = await readSql(
    `WITH made AS (${made}), bars AS (SELECT mint, tf, t, b.o, b.h, b.l, b.c, b.v, b.n, b.buys FROM lake.bars b)
     SELECT count(bars.n)::INT AS bars,
       count(*) FILTER (bars.n IS NOT NULL AND ((bars.o, bars.h, bars.l, bars.c, bars.n, bars.buys) IS DISTINCT FROM
         (made.o, made.h, made.l, made.c, made.n, made.buys) OR abs(bars.v - made.v) > 1e-9 * made.v))::INT AS wrong,
       count(*) FILTER (bars.n IS NULL AND epoch_ms(t) + CASE tf ${FRAMES.map((tf) => `WHEN '${tf}' THEN ${TIMEFRAME_MS[tf]}`).join(' ')} END
         <= ${nowMs - 60_000})::INT AS missing
     FROM made FULL JOIN bars USING (mint, tf, t)`,
    `ATTACH '${join(lakeFolder(server.dataDir), 'catalog.duckdb')}' AS lake (READ_ONLY)`,
    'CREATE TABLE pushed (no INTEGER, mint VARCHAR, ts BIGINT, side VARCHAR, price DOUBLE, usd DOUBLE)',
    ...Array.from(
      { length: Math.ceil(values.length / 5_000) },
      (_, part) => `INSERT INTO pushed VALUES ${values.slice(part * 5_000, (part + 1) * 5_000).join(', ')}`,
    ),
  )
  return row as { bars: number; wrong: number; missing: number }
}

test('bars of random trades, over bursts, history, restarts and merges', async () => {
  await pushHistory(NOON_MS - 24 * HOUR_MS, nowMs, 20_000)
  for (let round = 0; round < 3; round++) {
    await pushLive(nowMs + 5 * MINUTE_MS)
    await server.store.flushLake()
    // Trades that come too late are meant to, and told; nothing else may be wrong.
    const { reasons } = (await server.client.get('/health')).body
    expect(reasons.filter((reason: string) => !/ has refused .*\(late \d+\)/.test(reason))).toEqual([])
    await server.store.compactLake()
    expect(await verify()).toMatchObject({ scope: 'files', findings: [] })
    if (round === 1) server = await server.restart()
    client = server.client
  }
  await server.stop()
  const { bars, wrong, missing } = await compare()
  expect({ wrong, missing }).toEqual({ wrong: 0, missing: 0 })
  expect(bars).toBeGreaterThan(15_000)
  expect(await verify()).toMatchObject({ scope: 'whole', findings: [] })
})

test('bars of a server that is killed twice while history is pushed', async () => {
  nowMs = Date.now()
  const { dataDir } = server
  await server.stop()
  // Each life has tokens of its own: those that the market knows are past their history.
  for (const life of [0, 1, 2]) {
    const spawned = await spawnServer({ 'lake-flush-ms': '200' }, dataDir)
    client = spawned.client
    traded = MINTS.slice(10 * life, 10 * life + 10)
    await pushHistory(nowMs - 6 * HOUR_MS, nowMs - HOUR_MS, 6_000)
    await (life < 2 ? spawned.kill() : spawned.terminate())
  }
  const verified = await verify()
  expect(verified).toMatchObject({ scope: 'whole', findings: [] })
  const [{ bars }] = await readSql(`SELECT count(*)::INT AS bars FROM ${lakeGlob(dataDir, 'bars')}`)
  expect(bars).toBeGreaterThan(3_000)
})

/** Rewrites the only file of bars, as a bug of this program would. */
async function rewriteBars(select: (file: string) => string): Promise<void> {
  const [{ path, rows }] = await readSql(
    `SELECT path, row_count::INT AS rows FROM state.lake_files WHERE table_name = 'bars' AND replaced_at IS NULL
     ORDER BY row_count DESC LIMIT 1`,
    `ATTACH '${statePath(server.dataDir)}' AS state (READ_ONLY)`,
  )
  const file = join(lakeFolder(server.dataDir), '.files', String(path))
  await readSql(
    'SELECT 1',
    `CREATE TABLE kept AS FROM read_parquet('${file}', hive_partitioning = false)`,
    `COPY (${select('kept')}) TO '${file}' (FORMAT parquet)`,
  )
  const [{ left }] = await readSql(`SELECT count(*)::INT AS left FROM '${file}'`)
  const lost = Number(rows) - Number(left)
  const sha256 = createHash('sha256').update(readFileSync(file)).digest('hex')
  await readSql(
    'SELECT 1',
    `ATTACH '${statePath(server.dataDir)}' AS state`,
    `UPDATE state.lake_files SET row_count = ${Number(left)}, byte_count = ${statSync(file).size}, sha256 = '${sha256}' WHERE path = '${path}'`,
    `UPDATE state.bar_accounts SET written = written - ${lost}, closed = closed - ${lost} WHERE tf = '1m' AND run_id <> ''`,
  )
}

const messages = async (): Promise<string[]> =>
  (await verify()).findings
    .filter(({ table, file }) => table === 'bars' && file === null)
    .map(({ message }) => message)

test('bars that are not there, and bars that are others than the trades give, are found by lake verify', async () => {
  await pushHistory(NOON_MS - 5 * HOUR_MS, nowMs, 6_000)
  await pushLive(NOON_MS + MINUTE_MS)
  await server.stop()
  expect(await verify()).toMatchObject({ scope: 'whole', findings: [] })
  // Counted nowhere: only the trades know of them.
  await rewriteBars((kept) => `FROM ${kept} WHERE tf <> '1m' OR mint <> '${MINTS[3]}'`)
  expect(await messages()).toEqual([
    expect.stringMatching(/^\d+ bars missing, in a sample of 30 tokens, among them /),
  ])
  await rewriteBars((kept) => `SELECT * REPLACE (v * (1 + 1e-6) AS v) FROM ${kept}`)
  expect(await messages()).toEqual([
    expect.stringMatching(/^\d+ bars missing, in a sample of 30 tokens/),
    expect.stringMatching(/^\d+ bars not what the recorded trades give, in a sample of 30 tokens/),
  ])
})
