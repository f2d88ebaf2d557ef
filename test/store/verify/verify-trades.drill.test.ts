// @module-tag drill
// Random trades through the real server: `lake verify` finds bars that were taken away, or that are others than the trades give.
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, statSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Random } from '../../../src/ingest/simulator/random.ts'
import { mintOfSymbol } from '../../../src/schema/mint.ts'
import { lakeFolder, statePath } from '../../../src/store/paths.ts'
import { verifyLake } from '../../../src/store/verify/verify.ts'
import { clockOf } from '../../support/clock.ts'
import {
  ADMIN_KEY,
  type Client,
  FEED_KEY,
  openTestServer,
  type TestServer,
} from '../../support/test-server.ts'
import { NOON_MS, readSql } from '../support.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const MINTS = Array.from({ length: 30 }, (_, i) => mintOfSymbol(`compared ${i}`))

const UNKNOWN_QUOTE = mintOfSymbol('unknown quote')

let nowMs: number
let server: TestServer
let client: Client
let random: Random
/** Tokens that are traded. */
let traded: string[]
/** Every trade that was pushed and taken, in order. */
let taken: { mint: string; ts: number; side: string; tokenAmount: number }[]

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
    ...{ mint, ts, side: random.chance(0.6) ? 'buy' : 'sell', tokenAmount: 1 + random.next() * 1e6 },
    // What is paid in something whose price nobody knows makes no bar.
    ...(random.chance(0.1)
      ? { quoteMint: UNKNOWN_QUOTE, quoteAmount: 5 }
      : { priceUsd: 1e-6 * (1 + random.next()) }),
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

/** A minute and a half in which these tokens are traded in turn, one a second, each trade at its time. */
async function pushInTurn(mints: readonly string[]): Promise<void> {
  for (let i = 0; i < 90; i++) {
    nowMs += 1_000
    await push([{ mint: mints[i % mints.length], ts: nowMs }])
  }
}

const verify = () => verifyLake({ dataDir: server.dataDir, nowMs, confirmMs: 1 })
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

/** With less room for tokens than are traded. All bars are written at the end, in one file. */
async function restartWithRoomFor(tokens: number): Promise<void> {
  server = await server.restart({ 'tokens-max': String(tokens), 'lake-flush-ms': '0' })
  client = server.client
}

test('where every token has given way to others, bars that lack trades are no finding', async () => {
  await restartWithRoomFor(10)
  await pushInTurn(MINTS.slice(0, 20))
  await restartWithRoomFor(10)
  await pushInTurn(MINTS.slice(0, 5))
  await pushInTurn(MINTS.slice(0, 5))
  await server.stop()
  expect(await verify()).toMatchObject({ scope: 'whole', findings: [] })
})

test('the bars of a token that stayed while others gave way are compared', async () => {
  await restartWithRoomFor(10)
  const [stays, ...others] = MINTS.slice(0, 20)
  for (const half of [others.slice(0, 10), others.slice(10)])
    await pushInTurn(half.flatMap((mint) => [stays, mint]))
  await server.stop()
  expect(await verify()).toMatchObject({ scope: 'whole', findings: [] })
  await rewriteBars(
    (kept) =>
      `FROM ${kept} WHERE mint <> '${stays}' OR t > (SELECT min(t) FROM ${kept} WHERE mint = '${stays}')`,
  )
  expect(await messages()).toEqual([expect.stringMatching(`^1 bar missing, in a sample of .*${stays} 1m `)])
})

test('a damaged file of trades that is settled is a note, also while the server runs', async () => {
  await pushHistory(NOON_MS - HOUR_MS, nowMs, 1_000)
  await server.store.flushLake()
  // No merge takes the damaged file away meanwhile.
  server = await server.restart({ 'lake-tidy': 'every-ms=0' })
  client = server.client
  await pushLive(NOON_MS + 2 * MINUTE_MS)
  const folder = join(lakeFolder(server.dataDir), '.files', 'trades')
  const [oldest] = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.parquet'))
    .sort()
  truncateSync(join(folder, oldest), 100)
  const { status, body } = await client.request('POST', '/api/v1/admin/lake/repair', '{}', {
    Authorization: `Bearer ${ADMIN_KEY}`,
  })
  expect(status).toBe(200)
  expect(body.data.lost).toMatchObject([{ table: 'trades' }])
  // Flushes go on: a second pass sees their end.
  const { scope, findings, notes } = await verifyLake({ dataDir: server.dataDir, nowMs, confirmMs: 500 })
  expect({ scope, findings, notes }).toEqual({
    ...{ scope: 'files', findings: [] },
    notes: [expect.stringMatching(/^trades\/.* rows? missing, settled$/)],
  })
})
