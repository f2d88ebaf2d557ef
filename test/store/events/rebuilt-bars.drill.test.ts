// @module-tag drill
// Bars made from recorded trades are those of the engine, in a market with late trades, silent tokens and evictions.
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Random } from '../../../src/ingest/simulator/random.ts'
import { Simulation } from '../../../src/ingest/simulator/simulation.ts'
import type { EventJournal } from '../../../src/journal/journal.ts'
import { createLog } from '../../../src/lib/log.ts'
import { MINUTE_MS } from '../../../src/lib/time.ts'
import { Market } from '../../../src/market/market.ts'
import { type FeedSink, recordedSinks } from '../../../src/recording/event-recorder.ts'
import { type MarketRecorder, prepareRecorder } from '../../../src/recording/market-recorder.ts'
import type { MarketEvent, RunHeader } from '../../../src/schema/event.ts'
import { TIMEFRAME_MS, TIMEFRAMES } from '../../../src/schema/timeframe.ts'
import { readFolderInfo } from '../../../src/store/data-folder/folder-info.ts'
import { journalFolder } from '../../../src/store/paths.ts'
import { withLakeReader } from '../../../src/store/query/lake-reader.ts'
import type { Store } from '../../../src/store/store.ts'
import { verifyLake } from '../../../src/store/verify/verify.ts'
import { openTestJournal } from '../../journal/support.ts'
import { NOON_MS, openTestStore, removeFolder, temporaryFolder } from '../support.ts'

const START_MS = NOON_MS
const HOURS = 5
const STEP_MS = 1_000
/** Fewer than there are: some give way to others and come back. */
const TOKENS_MAX = 40

let dataDir: string
let store: Store
let journal: EventJournal
let market: Market
let recorder: MarketRecorder
let sink: FeedSink
beforeEach(async () => {
  dataDir = temporaryFolder()
  store = await openTestStore(dataDir)
  journal = await openTestJournal(journalFolder(dataDir), { folderId: readFolderInfo(dataDir)!.logId })
  store.events.follow(journal, () => {})
  const log = createLog('warn')
  const { callbacks, recorderOf } = prepareRecorder(store, log)
  market = new Market({ tokensMax: TOKENS_MAX, ...callbacks })
  recorder = recorderOf(market)
  sink = recordedSinks(market, journal)('push')
})
afterEach(async () => {
  await store.close()
  await journal.close()
  removeFolder(dataDir)
})

/** A simulated market, of which some trades come late, and some too late. None of those brings back a token that was evicted: it would be
 *  in none of the bars that its token had closed. */
function runMarket(): void {
  const random = new Random(7)
  const options = { seed: 7, tokens: 60, tradesPerSecond: 3, startMs: START_MS }
  const simulation = new Simulation(options)
  const late = (event: MarketEvent): MarketEvent =>
    event.type === 'trade' && market.has(event.mint) && random.chance(0.2)
      ? { ...event, ts: event.ts - Math.floor(random.next() * 8_000) }
      : event
  for (let nowMs = START_MS; nowMs <= START_MS + HOURS * 60 * MINUTE_MS; nowMs += STEP_MS) {
    simulation.advance(nowMs, { apply: (event, receivedAtMs) => sink.apply(late(event), receivedAtMs) })
    market.advanceTo(nowMs)
  }
}

/** SQL of the bars of a timeframe, made from trades. */
const rebuilt = (tf: string, lengthMs: number): string =>
  `SELECT '${tf}' AS tf, mint, epoch_ms(epoch_ms(ts) // ${lengthMs} * ${lengthMs}) AS t,
     arg_min(price_usd, (ts, event_no)) AS o, max(price_usd) AS h, min(price_usd) AS l, arg_max(price_usd, (ts, event_no)) AS c,
     sum(volume_usd) AS v, count(*) AS n, count(*) FILTER (side = 'buy') AS buys FROM lake.trades GROUP BY ALL`

test('every bar of the lake is made of the recorded trades of its interval', async () => {
  const header = { settings: { tokensMax: TOKENS_MAX }, checkpointEventNo: null } as RunHeader
  sink.apply({ type: 'run', ts: START_MS, firstSeq: 0, header }, START_MS)
  runMarket()
  recorder.emitAllBars()
  await recorder.stop()
  await store.bars.flush()
  await store.flushLake()
  await store.compactLake()
  const lakeFrames = TIMEFRAMES.filter((tf) => TIMEFRAME_MS[tf] >= MINUTE_MS)
  const sql = `WITH made AS (${lakeFrames.map((tf) => rebuilt(tf, TIMEFRAME_MS[tf])).join(' UNION ALL ')}),
    both_ AS (SELECT b.complete, b.tf, b.n AS bar_n, made.n AS made_n,
      (b.o, b.h, b.l, b.c, b.n, b.buys) = (made.o, made.h, made.l, made.c, made.n, made.buys) AND abs(b.v - made.v) <= 1e-9 * b.v AS same
      FROM lake.bars b LEFT JOIN made USING (tf, mint, t))
    SELECT tf, count(*)::INT AS bars, count(*) FILTER (same)::INT AS same, count(*) FILTER (complete)::INT AS complete,
      count(*) FILTER (complete AND NOT coalesce(same, false))::INT AS wrong FROM both_ GROUP BY tf ORDER BY min(bar_n)`
  const rows = await withLakeReader({ dataDir }, async ({ connection }) =>
    (await connection.run(sql)).getRowObjectsJS(),
  )
  const byFrame = new Map(rows.map((row) => [row.tf, row]))
  for (const row of rows) expect(row).toMatchObject({ wrong: 0 })
  expect(byFrame.get('1m')?.complete).toBeGreaterThan(5_000)
  // A token that was evicted and came back has a bar of each stay.
  expect(Number(byFrame.get('1m')?.same)).toBeGreaterThan(0.85 * Number(byFrame.get('1m')?.bars))
  expect(store.figures().barsMissing).toBe(0)
  await store.close()
  expect(await verifyLake({ dataDir, nowMs: NOON_MS })).toMatchObject({ scope: 'whole', findings: [] })
}, 60_000)
