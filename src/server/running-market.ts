// The market over the lives of servers: restores it, records what it takes, makes checkpoints, and leaves it to the next start.

import { join } from 'node:path'
import { beginRun } from '../checkpoint/begin-run.ts'
import { checkpointNames } from '../checkpoint/checkpoint-file.ts'
import type { StoredCheckpoint } from '../checkpoint/checkpoint-folder.ts'
import { CheckpointScheduler, type CheckpointStatus } from '../checkpoint/checkpoint-scheduler.ts'
import { lastRecordedEvent, type Recorded } from '../checkpoint/find-base.ts'
import {
  findRecordedOnDisk,
  type Restored,
  type RestoreOptions,
  redo,
  restoreMarket,
} from '../checkpoint/restoration.ts'
import { MINTLAKE_VERSION } from '../checkpoint/version.ts'
import { solPriceMaxAgeMs } from '../config/settings.ts'
import { followsRecordedTime, healingFeedOf } from '../ingest/feed-settings.ts'
import type { Pace } from '../ingest/replay/pace.ts'
import { TRANSACTIONS_SEEN_MAX } from '../ingest/solana/limits.ts'
import type { RecordedPlace, RecordedTo } from '../ingest/types.ts'
import { openJournal } from '../journal/journal.ts'
import { FORMAT } from '../journal/segments/format.ts'
import type { EventJournal, JournalStats, LostInterval } from '../journal/types.ts'
import { errorMessage } from '../lib/error-text.ts'
import type { Log } from '../lib/log.ts'
import type { NumberRange } from '../lib/segments/types.ts'
import type { SteadyClock } from '../lib/steady-clock.ts'
import { HOUR_MS } from '../lib/time.ts'
import { LATE_GRACE_MS, SILENCE_MS } from '../market/limits.ts'
import { Market } from '../market/market.ts'
import { settingsOf } from '../market/market-parts.ts'
import { EventRecorder, type FeedSink, SERVER_FEED } from '../recording/event-recorder.ts'
import { type MarketRecorder, prepareRecorder } from '../recording/market-recorder.ts'
import type { EngineSettings, Gap, RunHeader } from '../schema/event.ts'
import type { Positions } from '../store/data-folder/positions.ts'
import { checkpointFolder, journalFolder, journalMarkPath } from '../store/paths.ts'
import type { Store } from '../store/types.ts'
import { clockReasons } from './clock-reasons.ts'
import { readRecordedPlaces } from './recorded-places.ts'
import { explainRecording, type Recording, type RecordingDeps, recordingOf } from './recording-mode.ts'
import type { Tuning } from './tuning.ts'

/** How often market time is carried forward, for tokens without events. */
const TICK_MS = 100

export interface RunningMarketDeps extends RecordingDeps {
  clock: SteadyClock
  store: Store
  positions: Positions
  tuning?: Tuning
  /** Who takes a market on that waits. */
  steps?: Pace | undefined
}

export interface RecordingStatus {
  /** Whether market events are to be recorded. */
  isOn: boolean
  /** A sentence for each thing that is wrong. */
  reasons: string[]
  journal: JournalStats | null
  checkpoints: CheckpointStatus | null
  /** What this run began with; null: an empty market. */
  restored: { fromEventNo: number; events: number; lost: number; tookMs: number } | null
}

export class RunningMarket {
  readonly market: Market
  readonly recorder: MarketRecorder
  readonly runId: string
  readonly #parts: RunningMarketParts
  readonly #events: EventRecorder
  readonly #checkpoints: CheckpointScheduler | null
  #ticker: NodeJS.Timeout | null = null
  #isHalted = false
  #hasBegun = false
  /** Counts of analyses that could not be recorded, by token: one for each token of the market at most. */
  readonly #lostCounts = new Map<string, number>()
  #redone: RecordingStatus['restored'] = null
  /** Where the runs before have left the market; null: there were none. */
  #recordedTo: { timeMs: number; open: readonly Gap[] } | null = null
  /** Where market time went back to: bars that end later may not be in the lake, whatever it was told before. */
  #rewoundToMs = Number.POSITIVE_INFINITY

  constructor(parts: RunningMarketParts) {
    const { deps, journal, market, recorder } = parts
    this.#parts = parts
    this.market = market
    this.recorder = recorder
    this.runId = parts.header.runId
    this.#events = new EventRecorder(market, journal, deps.publisher === null)
    this.#checkpoints = journal === null ? null : this.#createCheckpoints(journal)
    if (journal !== null) deps.store.events.follow(journal, () => void this.#checkpoints?.removeSegments())
  }

  /** Whether `begin` first has to apply recorded events again, which may take a while. */
  get hasRedo(): boolean {
    return this.#parts.restored !== null && this.#parts.restored.redone === null
  }

  /** Whether the events of feeds are recorded. */
  get isRecorded(): boolean {
    return this.#parts.recording.isOn
  }

  /**
   * The places on the chain of trades that a feed of this name has brought, oldest first, as far as the journal keeps them. Where it
   * cannot be read there are none: what is told again may count twice then, which the log says.
   */
  async recordedPlaces(feed: string): Promise<RecordedPlace[]> {
    const { deps, journal, restoreOptions } = this.#parts
    if (journal === null) return []
    const { journalFolder: folder, folderId } = restoreOptions
    const afterEventNo = Math.max(0, journal.lastEventNo - TRANSACTIONS_SEEN_MAX)
    try {
      return await readRecordedPlaces(feed, { folder, folderId, afterEventNo })
    } catch (error) {
      deps.log.error(
        { error: errorMessage(error) },
        'recorded trades cannot be read: those that are told again may count twice',
      )
      return []
    }
  }

  /** Until when the market has what a feed of this name has brought in the runs before; null: there were none. */
  recordedTo(feed: string): RecordedTo | null {
    if (this.#recordedTo === null) return null
    const { timeMs, open } = this.#recordedTo
    return { timeMs, awaySinceMs: open.find((gap) => gap.feed === feed)?.fromMs ?? null }
  }

  /** Where a feed of this name delivers its events. */
  sinkOf(feed: string): FeedSink {
    return this.#events.sinkOf(feed)
  }

  /** As `EventJournal.room`; where nothing is recorded there always is. */
  room(): Promise<void> | null {
    return this.#parts.journal?.room() ?? null
  }

  /** Brings the market to where the run before left it, and begins this one: feeds may start then. @returns false where it was halted */
  async begin(): Promise<boolean> {
    const { deps, recorded, restored, restoreOptions } = this.#parts
    const { config, log, positions } = deps
    const { market } = this
    if (restored !== null && recorded !== null) {
      const { base } = restored
      // Of these the last run may have taken some with it. The lake drops those that it has, as long as bars come in their order.
      market.emitBarsEndedSince(base.head?.barsInLakeToMs ?? 0)
      const { events, lost, tookMs } =
        restored.redone ?? (await redo(restoreOptions, recorded, market, base, () => this.#isHalted))
      if (this.#isHalted) return false
      // The last run may have taken some with it that had not come to the lake.
      if (base.head?.profilesInLake !== true || events + lost > 0) this.recorder.noteAllProfiles()
      this.#redone = { fromEventNo: base.afterEventNo, events, lost, tookMs: Math.round(tookMs) }
      log.info(
        { ...this.#redone, tokens: market.stats().tokens },
        'the market goes on where the last run ended',
      )
    }
    if (restored !== null) this.#recordedTo = { timeMs: market.timeMs, open: market.gaps(1).open }
    const isRecordedTime = followsRecordedTime(config)
    if (!isRecordedTime) deps.clock.notBefore(market.timeMs)
    // What is replayed has all that was recorded of then, runs and counts of analyses too.
    const runEventNo = (this.#parts.journal?.lastEventNo ?? 0) + 1
    if (deps.replayed === null) await this.#beginRun(isRecordedTime)
    if (this.#isHalted) return false
    // Before the first reader has to wait for it.
    market.rank()
    // Where the market waits, whoever takes it on says when they are recorded: by the machine’s time they would differ each time.
    if (deps.steps === undefined) this.recorder.start()
    positions.keepAhead(() => market.seq)
    if (!isRecordedTime) this.#ticker = setInterval(() => market.advanceTo(deps.clock.now()), TICK_MS)
    await this.#checkpoints?.start()
    this.#publish(runEventNo)
    this.#hasBegun = true
    return true
  }

  #beginRun(isRecordedTime: boolean): Promise<void> {
    const { deps, header, journal, restored } = this.#parts
    const { market } = this
    return beginRun({
      ...{ market, journal, header, isRestored: restored !== null, healing: healingFeedOf(deps.config) },
      apply: this.sinkOf(SERVER_FEED).apply,
      nowMs: isRecordedTime ? 0 : deps.clock.now(),
      firstSeq: deps.positions.first,
      coverage: deps.store.recovered.coverage,
    })
  }

  #publish(runEventNo: number): void {
    const { deps, header, journal } = this.#parts
    if (journal === null) return
    deps.publisher?.begin({
      ...{ runId: header.runId, simulated: header.simulated, runEventNo },
      originEventNo: journal.originEventNo,
      now: () => ({ eventNo: journal.lastEventNo, timeMs: this.market.timeMs }),
      writeNow: () => void journal.written(0),
      newestCheckpoint: () => {
        const eventNo = this.#checkpoints?.status().newest?.eventNo
        return eventNo === undefined ? null : this.#checkpointOf(eventNo)
      },
      makeCheckpoint: () => this.makeCheckpoint(),
    })
  }

  #checkpointOf(eventNo: number): StoredCheckpoint {
    return {
      eventNo,
      path: join(this.#parts.restoreOptions.checkpointFolder, checkpointNames.nameOf(eventNo)),
    }
  }

  /** The number of accepted analyses of a token has changed. */
  setAnalysisCount(mint: string, count: number): void {
    const { timeMs } = this.market
    const event = { type: 'analysisCount', mint, ts: timeMs, count } as const
    const isLost = this.sinkOf(SERVER_FEED).apply(event, timeMs) === 'not_recorded'
    if (isLost) this.#lostCounts.set(mint, count)
    else this.#lostCounts.delete(mint)
  }

  /** What was lost is told to the market, and recorded, as soon as that is possible again. */
  noteLost({ fromMs, toMs }: LostInterval): void {
    const nowMs = Math.max(this.market.timeMs, toMs)
    this.sinkOf(SERVER_FEED).apply({ type: 'gap', ts: nowMs, fromMs, toMs, reason: 'lost' }, nowMs)
    for (const [mint, count] of [...this.#lostCounts]) this.setAnalysisCount(mint, count)
  }

  status(): RecordingStatus {
    const { deps, journal, lostEnd, recording, trouble } = this.#parts
    const stats = journal?.stats() ?? null
    const checkpoints = this.#checkpoints?.status() ?? null
    const reasons = trouble === null ? [] : [trouble]
    // Once the lake is past them it tells of them itself, until `lake repair` acknowledges that.
    if (lostEnd !== null && deps.store.events.progress.eventNo < lostEnd.to)
      reasons.push(
        `the recorded events ${lostEnd.from} to ${lostEnd.to} are lost: the end of the journal is missing`,
      )
    if (stats !== null && stats.trouble !== null)
      reasons.push(`market events are not recorded: ${stats.trouble}`)
    if (stats !== null && stats.lost > 0)
      reasons.push(`market events of this run that could not be recorded: ${stats.lost}; see gaps`)
    if (checkpoints !== null && checkpoints.trouble !== null)
      reasons.push(`no checkpoint of the market can be made: ${checkpoints.trouble}`)
    return { isOn: recording.isOn, reasons, journal: stats, checkpoints, restored: this.#redone }
  }

  /**
   * Believes the machine's clock: an operator has confirmed it. Market time that is ahead of it goes back, and the market stays.
   * @returns how far market time has moved, ms
   */
  trustClock(): number {
    const { clock, config, log, publisher } = this.#parts.deps
    const beforeMs = this.market.timeMs
    clock.trust()
    if (followsRecordedTime(config)) return 0
    const nowMs = clock.now()
    if (nowMs < beforeMs) {
      this.sinkOf(SERVER_FEED).apply({ type: 'rewind', ts: nowMs }, nowMs)
      publisher?.noteTime()
      this.#rewoundToMs = Math.min(this.#rewoundToMs, nowMs)
    } else this.market.advanceTo(nowMs)
    const movedMs = this.market.timeMs - beforeMs
    log.warn({ movedMs }, 'the operator has confirmed the clock: market time follows it')
    return movedMs
  }

  /** What is wrong with the clock, as sentences. */
  clockReasons(): string[] {
    const { clock, config } = this.#parts.deps
    return clockReasons(clock, followsRecordedTime(config) ? null : this.market.timeMs)
  }

  /** Makes a checkpoint now. For tests and benchmarks. */
  async makeCheckpoint(): Promise<void> {
    await this.#checkpoints?.make()
  }

  /** Time stands still from now on, and what is being applied again is given up. */
  halt(): void {
    this.#isHalted = true
    if (this.#ticker !== null) clearInterval(this.#ticker)
  }

  /** Closes the journal and writes the market for the next start. To be called when no more events come. */
  async stop(): Promise<void> {
    const { journal, recording } = this.#parts
    await this.#checkpoints?.stop()
    const isRecorded = await journal?.close()
    // Where the disk hangs, a checkpoint would not be written either.
    if (isRecorded && this.#hasBegun && recording.isRestorable) await this.#checkpoints?.writeLast()
  }

  /**
   * Tells other processes that this run has ended. To be called last: another process may then begin with the data folder. Until then they see that
   * it still runs.
   */
  async leaveBus(): Promise<void> {
    await this.#parts.deps.publisher?.stop()
  }

  #createCheckpoints(journal: EventJournal): CheckpointScheduler {
    const { deps, recording, restored, restoreOptions } = this.#parts
    const { config, clock, log, store } = deps
    const { journalFolder, checkpointFolder, folderId } = restoreOptions
    return new CheckpointScheduler({
      ...{ journal, market: this.market, journalFolder, checkpointFolder, folderId, clock, log },
      // What a feed from the chain may be told again after a restart.
      eventsKeptMin: config.feeds.includes('solana') ? TRANSACTIONS_SEEN_MAX : 0,
      intervalMs: recording.hasCheckpoints ? config.checkpointIntervalMs : 0,
      lakeProgress: () => store.events.progress,
      emitBars: () => this.recorder.emitBarsInSlices(),
      barsInLakeToMs: () =>
        Math.min(
          Math.max(store.barsInLakeToMs, restored?.base.head?.barsInLakeToMs ?? 0),
          this.#rewoundToMs - SILENCE_MS - LATE_GRACE_MS,
          store.barsWaitFromMs - 1,
        ),
      // A writer has done so before it stopped taking requests, and its successor waits: what has come since is emitted again there.
      flushLake: () => (deps.publisher === null ? store.flushLake() : Promise.resolve()),
      profilesInLake: () => this.recorder.hasAllProfiles && store.profiles.unconfirmed === 0,
      mayWrite: (bytes) => store.mayRecord(bytes),
      unusable: restored?.unusable ?? [],
      onMade: (eventNo) => deps.publisher?.onCheckpoint(this.#checkpointOf(eventNo)),
      crash: deps.tuning?.checkpointCrash ?? null,
    })
  }
}

interface RunningMarketParts {
  deps: RunningMarketDeps
  recording: Recording
  market: Market
  recorder: MarketRecorder
  journal: EventJournal | null
  /** Why there is none although there should be; null: there is. */
  trouble: string | null
  recorded: Recorded | null
  restored: Restored | null
  restoreOptions: RestoreOptions
  header: RunHeader
  /** The newest events of the runs before, where they were deleted or cut off; null: they are there. */
  lostEnd: NumberRange | null
}

/** Restores the market of the run before, where this configuration goes on with it, and opens the journal. */
export async function openRunningMarket(deps: RunningMarketDeps): Promise<RunningMarket> {
  const { clock, config, log, replayed, store, tuning = {} } = deps
  const { changeLogEntriesMax } = tuning
  const recording = recordingOf(deps)
  explainRecording(deps, recording)
  const { callbacks, recorderOf } = prepareRecorder(store, log)
  const settings = settingsOf({
    tokensMax: config.tokensMax,
    newWindowMs: config.newHours * HOUR_MS,
    solPriceMaxAgeMs: solPriceMaxAgeMs(config),
  })
  const restoreOptions: RestoreOptions = {
    journalFolder: journalFolder(config.dataDir),
    journalMarkPath: journalMarkPath(config.dataDir),
    checkpointFolder: checkpointFolder(config.dataDir),
    folderId: store.folderId,
    marketOptions: { ...settings, ...callbacks, ...(changeLogEntriesMax && { changeLogEntriesMax }) },
    ...{ settings, log },
  }
  const { eventNo: lakeEventNo } = store.events.progress
  const found = recording.isOn
    ? await findQuietly(restoreOptions, lakeEventNo)
    : { recorded: null, trouble: null }
  const restored = await restore(recording, restoreOptions, found.recorded)
  const newOptions = { ...restoreOptions.marketOptions, firstSeq: deps.positions.first }
  const market = restored?.market ?? (await replayed?.createMarket(newOptions)) ?? new Market(newOptions)
  const header = headerOf(deps, restored, settings)
  let running: RunningMarket | null = null
  const opened = await openJournalQuietly(found, () =>
    openJournal({
      ...{ folder: restoreOptions.journalFolder, folderId: store.folderId, clock, log, settings },
      ...{ runId: header.runId, simulated: header.simulated },
      markPath: restoreOptions.journalMarkPath,
      originEventNo: restored?.base.originEventNo ?? null,
      afterEventNo: found.recorded === null ? lakeEventNo : lastRecordedEvent(found.recorded),
      lakeEventNo: () => store.events.progress.eventNo,
      mayRecord: (unflushedBytes) => store.mayRecord(unflushedBytes),
      waitingBytesMax: deps.tuning?.journalWaitingBytesMax,
      onBatch: (batch) => deps.publisher?.onBatch(batch),
      onLost: (interval) => running?.noteLost(interval),
    }),
  )
  running = new RunningMarket({
    ...{ deps, recording, market, recorder: recorderOf(market), ...opened },
    ...{ recorded: found.recorded, restored, restoreOptions, header },
    lostEnd: found.recorded && lostEndOf(found.recorded, log),
  })
  return running
}

interface Found {
  recorded: Recorded | null
  trouble: string | null
}

/** Tells of events that were recorded and are neither in the lake nor in the journal, at whose end they were. */
function lostEndOf({ end, knownEventNo }: Recorded, log: Log): NumberRange | null {
  const lost = { from: Math.max(end.heldEventNo, knownEventNo) + 1, to: end.lastEventNo }
  if (lost.from > lost.to) return null
  log.error(lost, 'the end of the journal is missing: these recorded events are lost')
  return lost
}

const notRecorded = (error: unknown): string => `market events are not recorded: ${errorMessage(error)}`

/** A folder that cannot be read must not keep the server from starting. */
async function findQuietly(options: RestoreOptions, lakeEventNo: number): Promise<Found> {
  try {
    return { recorded: await findRecordedOnDisk(options, lakeEventNo), trouble: null }
  } catch (error) {
    options.log.error(
      { error: errorMessage(error) },
      'what was recorded cannot be read: the market begins empty',
    )
    return { recorded: null, trouble: notRecorded(error) }
  }
}

async function openJournalQuietly(
  { recorded, trouble }: Found,
  open: () => Promise<EventJournal>,
): Promise<{ journal: EventJournal | null; trouble: string | null }> {
  if (recorded === null) return { journal: null, trouble }
  try {
    return { journal: await open(), trouble }
  } catch (error) {
    return { journal: null, trouble: notRecorded(error) }
  }
}

async function restore(
  recording: Recording,
  options: RestoreOptions,
  recorded: Recorded | null,
): Promise<Restored | null> {
  if (recorded === null || !recording.isRestorable) return null
  if (recorded.latest?.simulated === true) {
    options.log.warn({}, 'the market that was recorded last is simulated: the market begins empty')
    return null
  }
  return restoreMarket(options, recorded)
}

function headerOf(
  { clock, provenance, store }: RunningMarketDeps,
  restored: Restored | null,
  settings: EngineSettings,
): RunHeader {
  return {
    runId: store.runId,
    version: MINTLAKE_VERSION,
    formatVersion: FORMAT,
    node: process.version,
    settings,
    feeds: provenance?.feed.split(',') ?? [],
    simulated: provenance?.simulated ?? false,
    checkpointEventNo: restored?.base.afterEventNo ?? null,
    startedAtMs: clock.now(),
  }
}
