import type { HttpServer } from '../http/server.ts'
import type { Broadcaster } from '../http/stream/broadcaster.ts'
import type { Feed, FeedStatus } from '../ingest/types.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import { LogThrottle } from '../lib/log-throttle.ts'
import type { Metrics } from '../lib/metrics/metrics.ts'
import type { Market } from '../market/market.ts'
import { CONSTANT_SOURCE } from '../market/tokens/sol-price.ts'
import type { LakeFileServer } from '../store/download/downloads.ts'
import type { LakeJobs } from '../store/lake-jobs.ts'
import type { Store } from '../store/store.ts'
import type { LakeTableStatus } from '../store/types.ts'
import type { Forgotten } from '../submissions/types.ts'
import type { Health } from './health.ts'
import type { RecordingStatus } from './recording-status.ts'

const MS_PER_SECOND = 1_000
/** How often it is logged that something was forgotten before its time. */
const FORGOTTEN_LOG_EVERY_MS = 60_000

export function addMarketMetrics(metrics: Metrics, market: Market): void {
  metrics.readAll(() => market.stats(), {
    mintlake_market_tokens: ['Tokens held', 'tokens'],
    mintlake_market_events_total: ['Events received', 'events'],
    mintlake_market_trades_total: ['Trades applied', 'trades'],
    mintlake_market_late_trades_total: ['Trades dropped because they came too late', 'lateDropped'],
    mintlake_market_evicted_tokens_total: ['Tokens evicted at the maximum', 'evicted'],
    mintlake_market_feed_disconnects_total: ['Feeds that lost their source', 'disconnects'],
    mintlake_market_gaps_total: [
      'Intervals in which events may be missing: feeds away, downtime, leaps of the clock, events that could not be recorded',
      'gaps',
    ],
    mintlake_market_feeds_away: ['Feeds that have lost their source and are not back', 'gapsOpen'],
    mintlake_market_gaps_healing: ['Gaps that go on whose feeds bring what is missing', 'gapsHealing'],
    mintlake_market_gaps_healed_total: [
      'Gaps whose feeds have brought what was missing, wholly or in part',
      'gapsHealed',
    ],
    mintlake_market_held_seconds: [
      'Seconds of tokens with trades that are held open because a feed heals',
      'heldSeconds',
    ],
    mintlake_market_trades_earlier_priced_total: [
      'Trades of gaps that were healed that were worth what SOL was before the gap',
      'earlierPriced',
    ],
    mintlake_market_bars: ['Closed bars held', 'barsHeld'],
    mintlake_market_versions: ['DataPoint versions held', 'versionsHeld'],
  })
  metrics.readAll(() => market.solPrice, {
    mintlake_sol_price_age_seconds: [
      'Age of the latest price of SOL; NaN: none is known, or it is set',
      ({ source, atMs }) => (source === CONSTANT_SOURCE ? null : (market.timeMs - atMs) / MS_PER_SECOND),
    ],
  })
  metrics.read(
    'mintlake_sol_price_stale',
    '1 while the price of SOL is too old for trades to be priced with it',
    () => Number(market.solPrice?.isStale ?? false),
  )
  metrics.readEach(
    'mintlake_enrichment_contradictions_total',
    'Answers about enriched fields that contradict a fresh one of another source, by field',
    'field',
    () => Object.entries(market.stats().enrichmentContradictions),
  )
}

/** What is recorded of the market, and what a restart goes on from. */
export function addRecordingMetrics(metrics: Metrics, status: () => RecordingStatus): void {
  metrics.readAll(status, {
    mintlake_journal_recording: [
      '1 while market events are recorded, 0 while they should be and are not',
      ({ isOn, journal }) => (isOn ? Number(journal?.trouble === null) : null),
    ],
  })
  metrics.readAll(() => status().journal, {
    mintlake_journal_events_total: ['Market events recorded', 'recorded'],
    mintlake_journal_lost_total: ['Market events that could not be recorded', 'lost'],
    mintlake_journal_bytes: ['Size of the journal', 'bytes'],
    mintlake_journal_waiting_bytes: ['Recorded events that wait for the disk', 'waitingBytes'],
    mintlake_journal_unwritten_seconds: [
      'Age of the oldest market event that a kill of the server would lose',
      ({ unwrittenMs }) => unwrittenMs / MS_PER_SECOND,
    ],
  })
  metrics.readAll(() => status().checkpoints, {
    mintlake_checkpoints_total: ['Checkpoints made', 'made'],
    mintlake_checkpoints_copied_total: [
      'Of these: copies of the running market, since journal or checkpoints are damaged and lack events of it',
      'copied',
    ],
    mintlake_checkpoint_failures_total: ['Checkpoints that could not be made', 'failures'],
    mintlake_checkpoint_age_seconds: [
      'For how long events may have been recorded that the newest checkpoint lacks: a start has to apply them again; 0: it has all',
      ({ newest }) => newest && newest.ageMs / MS_PER_SECOND,
    ],
    mintlake_checkpoint_bytes: ['Size of the newest checkpoint', ({ newest }) => newest?.bytes],
    mintlake_checkpoint_seconds: [
      'How long the latest checkpoint took',
      ({ latest }) => latest && (latest.restoreMs + latest.replayMs + latest.writeMs) / MS_PER_SECOND,
    ],
    mintlake_checkpoint_peak_bytes: [
      'The most memory that the process of the latest checkpoint used',
      ({ latest }) => latest?.peakBytes,
    ],
  })
}

/** Of the log, the lake and the disk. */
export function addStoreMetrics(metrics: Metrics, store: Pick<Store, 'figures'>): void {
  metrics.readAll(() => store.figures().log, {
    mintlake_log_commits_total: ['Commits made durable', 'commits'],
    mintlake_log_refused_total: ['Commits refused before they were written', 'refused'],
    mintlake_log_failures_total: ['Disk operations that failed or took too long', 'failures'],
    mintlake_log_write_max_seconds: [
      'The slowest of the latest writes of the log with their sync',
      ({ slowestGroupMs }) => slowestGroupMs / MS_PER_SECOND,
    ],
    mintlake_log_damage: ['Damaged parts of the log that were found', 'damage'],
    mintlake_log_unflushed_commits: ['Commits that wait for the lake', 'unflushedCommits'],
    mintlake_log_unflushed_bytes: ['Bytes of the log that wait for the lake', 'unflushedBytes'],
  })
  metrics.readAll(() => store.figures(), {
    mintlake_store_writable: ['1 while the store takes commits', ({ isWritable }) => Number(isWritable)],
    mintlake_lake_lag_seconds: [
      'How long the lake may have been behind the log; 0: it has every commit',
      ({ lakeLagMs }) => lakeLagMs / MS_PER_SECOND,
    ],
    mintlake_lake_process_up: [
      '1 while the lake process runs',
      ({ lakeProcess }) => Number(lakeProcess.isRunning),
    ],
    mintlake_lake_process_starts_total: [
      'Starts of the lake process',
      ({ lakeProcess }) => lakeProcess.starts,
    ],
    mintlake_state_database_bytes: ['Size of the state database', 'databaseBytes'],
    mintlake_disk_free_bytes: ['Free space on the disk of the data folder', 'freeBytes'],
    mintlake_lake_files_set_aside: [
      'Files of the lake that are lost or damaged',
      ({ setAside }) => setAside.files,
    ],
    mintlake_lake_rows_lost: [
      'Rows of the lake that were in those files and are nowhere else',
      ({ setAside }) => setAside.rowsLost,
    ],
    mintlake_losses: [
      'What the data folder has lost and mintlake lake repair has not acknowledged',
      'losses',
    ],
    mintlake_lake_bars_missing: [
      'Closed bars of this run that the lake should have and does not',
      'barsMissing',
    ],
  })
  addLakeTableMetrics(metrics, store)
}

function addLakeTableMetrics(metrics: Metrics, store: Pick<Store, 'figures'>): void {
  const readEach = (name: string, help: string, value: (table: LakeTableStatus) => number): void =>
    metrics.readEach(name, help, 'table', () =>
      store.figures().lake.map((table) => [table.table, value(table)]),
    )
  readEach('mintlake_lake_rows', 'Rows in the lake', ({ rows }) => rows)
  readEach('mintlake_lake_files', 'Files of the lake', ({ files }) => files)
  readEach('mintlake_lake_bytes', 'Bytes of the lake', ({ bytes }) => bytes)
  readEach('mintlake_lake_waiting_rows', 'Rows that wait for the lake', ({ backlog }) => backlog)
}

/** Of the server's phase and its feeds. */
export function addStateMetrics(
  metrics: Metrics,
  health: Pick<Health, 'notReady'>,
  feeds: readonly Feed[],
): void {
  metrics.read('mintlake_ready', '1 while the server takes requests', () =>
    Number(health.notReady() === null),
  )
  const readEach = (name: string, help: string, value: (feed: FeedStatus) => number): void =>
    metrics.readEach(name, help, 'feed', () =>
      feeds.map((feed) => feed.describe()).map((status) => [status.feed, value(status)]),
    )
  readEach('mintlake_feed_up', '1 while a feed delivers, or has delivered all it has', ({ state }) =>
    Number(state === 'running' || state === 'finished'),
  )
  readEach(
    'mintlake_feed_accepted_total',
    'Events of a feed that the market accepted',
    ({ accepted }) => accepted,
  )
  readEach(
    'mintlake_feed_unpriced_trades_total',
    'Trades of a feed that were refused for lack of a price of SOL, or because the latest was too old',
    ({ rejected }) => (rejected.sol_price_unknown ?? 0) + (rejected.sol_price_stale ?? 0),
  )
  readEach('mintlake_feed_rejected_total', 'Events of a feed that the market rejected', ({ rejected }) =>
    Object.values(rejected).reduce((sum, count) => sum + count, 0),
  )
  readEach(
    'mintlake_feed_refused_ratio',
    'Share of its latest input that a feed has refused, 0 to 1; of one that has ended: of all',
    ({ refusals }) => refusals.share,
  )
  readEach('mintlake_feed_refusing', '1 while a feed refuses too much of what it gets', ({ refusals }) =>
    Number(refusals.isTooMuch),
  )
}

/** Counts evaluated submissions by outcome. @returns what is to be called for each */
export function countSubmissions(metrics: Metrics): (outcome: string) => void {
  const counts = new Map(['validated', 'unvalidated', 'rejected'].map((outcome) => [outcome, 0]))
  metrics.readEach('mintlake_submissions_total', 'Evaluated submissions', 'outcome', () => counts)
  return (outcome) => void counts.set(outcome, (counts.get(outcome) ?? 0) + 1)
}

/** @returns what to call with the kind of each thing that was forgotten before its time, since there were too many */
export function countForgotten(metrics: Metrics, log: Log, clock: Clock): (kind: Forgotten) => void {
  const counts = new Map<Forgotten, number>([
    ['cooldown', 0],
    ['idempotency_key', 0],
    ['withheld_labels', 0],
  ])
  const throttle = new LogThrottle(FORGOTTEN_LOG_EVERY_MS, clock)
  metrics.readEach(
    'mintlake_submissions_forgotten_total',
    'Cooldowns, remembered responses and withheld labels that gave way to newer ones before their time',
    'kind',
    () => counts,
  )
  return (kind) => {
    const count = (counts.get(kind) ?? 0) + 1
    counts.set(kind, count)
    const suppressed = throttle.due('forgotten')
    if (suppressed !== null)
      log.warn(
        { kind, count, suppressed },
        'more is to be remembered of submissions than its limit: the oldest is forgotten',
      )
  }
}

export function addDownloadMetrics(metrics: Metrics, downloads: LakeFileServer): void {
  metrics.readAll(() => downloads, {
    mintlake_lake_downloads: ['Files of the lake that are being read over HTTP', 'running'],
    mintlake_lake_downloaded_bytes_total: ['Bytes of the lake that were read over HTTP', 'sentBytes'],
  })
}

export function addLakeJobMetrics(metrics: Metrics, { exports, queries }: LakeJobs): void {
  metrics.readAll(() => exports, {
    mintlake_exports: ['Exports under way', 'running'],
    mintlake_exports_held_bytes: ['Bytes of exports that wait for their clients', ({ held }) => held.bytes],
  })
  metrics.readAll(() => queries, {
    mintlake_queries: ['Queries on the lake that run', 'running'],
    mintlake_queries_waiting: ['Queries that wait for their turn', 'waiting'],
  })
  metrics.readEach(
    'mintlake_queries_total',
    'Queries by what became of them',
    'outcome',
    () => queries.outcomes,
  )
}

export function addStreamMetrics(metrics: Metrics, broadcaster: Broadcaster): void {
  metrics.readAll(() => broadcaster, {
    mintlake_streams: ['Streams that follow, over HTTP and WebSocket', 'size'],
    mintlake_streams_stalled: ['Streams whose socket is full', 'stalled'],
    mintlake_streams_slow_total: [
      'Streams ended because they were too slow',
      ({ disconnects }) => disconnects.slow_consumer,
    ],
    mintlake_streams_overloaded_total: [
      'Streams ended because there was too much to do',
      ({ disconnects }) => disconnects.overloaded,
    ],
  })
}

export function addServerMetrics(metrics: Metrics, server: Pick<HttpServer, 'bodyBytes'>): void {
  metrics.read('mintlake_request_bodies_bytes', 'Memory that request bodies take', () => server.bodyBytes())
}
