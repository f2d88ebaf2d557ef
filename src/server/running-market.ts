// The market over the lives of servers: goes on with what was restored, records what it takes, makes checkpoints, and leaves it to the
// next start.

import { join } from 'node:path'
import { beginRun } from '../checkpoint/begin-run.ts'
import { checkpointNames } from '../checkpoint/checkpoint-file.ts'
import type { StoredCheckpoint } from '../checkpoint/checkpoint-folder.ts'
import { CheckpointScheduler } from '../checkpoint/checkpoint-scheduler.ts'
import { lostThrough } from '../checkpoint/find-base.ts'
import { redo } from '../checkpoint/restoration.ts'
import { followsRecordedTime, healingFeedOf } from '../ingest/feed-settings.ts'
import { TRANSACTIONS_SEEN_MAX } from '../ingest/solana/limits.ts'
import type { RecordedPlace, RecordedTo } from '../ingest/types.ts'
import type { EventJournal } from '../journal/journal.ts'
import { errorMessage } from '../lib/error-text.ts'
import type { Market } from '../market/market.ts'
import { LATE_GRACE_MS, SILENCE_MS } from '../market/time/limits.ts'
import { recordedSinks, SERVER_FEED, type SinkOf } from '../recording/event-recorder.ts'
import type { MarketRecorder } from '../recording/market-recorder.ts'
import type { Gap } from '../schema/event.ts'
import { type OpenedMarket, openMarket, type RunningMarketDeps } from './open-market.ts'
import { readRecordedPlaces } from './recorded-places.ts'
import { RECORDED_TWICE, type RecordingStatus, recordingReasons } from './recording-status.ts'
import { ServerEvents } from './server-events.ts'
import { Timekeeper } from './timekeeper.ts'

export class RunningMarket {
  readonly market: Market
  readonly recorder: MarketRecorder
  readonly runId: string
  /** What the server itself brings to the market. */
  readonly serverEvents: ServerEvents
  readonly timekeeper: Timekeeper
  readonly #deps: RunningMarketDeps
  readonly #opened: OpenedMarket
  /** Where a feed of this name delivers its events. */
  readonly sinkOf: SinkOf
  readonly #checkpoints: CheckpointScheduler | null
  #isHalted = false
  #hasBegun = false
  #redone: RecordingStatus['restored'] = null
  /** How many recorded events the market lacks. */
  #lostEvents = 0
  /** Whether a replay in recorded time is recorded beside what runs before have recorded. */
  readonly #isRecordedTwice: boolean
  /** Where the runs before have left the market; null: there were none. */
  #recordedTo: { timeMs: number; open: readonly Gap[] } | null = null

  constructor(deps: RunningMarketDeps, opened: OpenedMarket) {
    const { journal, market, recorder } = opened
    this.#deps = deps
    this.#opened = opened
    this.market = market
    this.recorder = recorder
    this.runId = opened.header.runId
    this.sinkOf = recordedSinks(market, journal, deps.publisher === null, deps.store.noteData)
    this.#isRecordedTwice = (journal?.lastEventNo ?? 0) > 0 && followsRecordedTime(deps.config)
    const ownSink = this.sinkOf(SERVER_FEED)
    this.serverEvents = new ServerEvents(ownSink)
    this.timekeeper = new Timekeeper(deps, market, ownSink)
    this.#checkpoints = journal === null ? null : this.#createCheckpoints(journal)
    if (journal !== null) deps.store.events.follow(journal, () => void this.#checkpoints?.removeSegments())
  }

  /** Whether `begin` first has to apply recorded events again, which may take a while. */
  get hasRedo(): boolean {
    const { restored } = this.#opened
    return restored !== null && restored.redone === null
  }

  /** Whether the events of feeds are recorded. */
  get isRecorded(): boolean {
    return this.#opened.recording.isOn
  }

  /**
   * The places on the chain of trades that a feed of this name has brought, oldest first, as far as the journal keeps them. Where it
   * cannot be read there are none: what is told again may count twice then, which the log says.
   */
  async recordedPlaces(feed: string): Promise<RecordedPlace[]> {
    const { recorded, restoreOptions } = this.#opened
    if (recorded === null) return []
    const throughEventNo = recorded.end.lastEventNo
    const afterEventNo = Math.max(0, throughEventNo - TRANSACTIONS_SEEN_MAX)
    try {
      return await readRecordedPlaces(feed, restoreOptions, { afterEventNo, throughEventNo })
    } catch (error) {
      this.#deps.log.error(
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

  /** As `EventJournal.room`; where nothing is recorded there always is. */
  room(): Promise<void> | null {
    return this.#opened.journal?.room() ?? null
  }

  /** Brings the market to where the run before left it, and begins this one: feeds may start then. @returns false where it was halted */
  async begin(): Promise<boolean> {
    const { recorded, restored, restoreOptions } = this.#opened
    const { log, positions, replayed, steps } = this.#deps
    const { market } = this
    if (restored !== null && recorded !== null) {
      const { base } = restored
      // Of these the last run may have taken some with it. The lake drops those that it has, as long as bars come in their order.
      market.emitBarsEndedSince(base.head?.barsInLakeToMs ?? 0)
      const { events, lost, tookMs } =
        restored.redone ?? (await redo(restoreOptions, recorded, market, base, () => this.#isHalted))
      if (this.#isHalted) return false
      this.recorder.noteAllRewound()
      // The last run may have taken some with it that had not come to the lake.
      if (base.head?.profilesInLake !== true || events + lost > 0) this.recorder.noteAllProfiles()
      this.#redone = { fromEventNo: base.afterEventNo, events, lost, tookMs: Math.round(tookMs) }
      log.info(
        { ...this.#redone, tokens: market.stats().tokens },
        'the market goes on where the last run ended',
      )
    }
    if (restored !== null) this.#recordedTo = { timeMs: market.timeMs, open: market.gaps(1).open }
    const nowMs = this.timekeeper.beginMs()
    // What is replayed has all that was recorded of then, runs and counts of analyses too.
    const runEventNo = (this.#opened.journal?.lastEventNo ?? 0) + 1
    if (restored !== null)
      this.#lostEvents = lostThrough(runEventNo - 1, restored.base, this.#redone?.events ?? 0)
    if (replayed === null) await this.#beginRun(nowMs)
    if (this.#isHalted) return false
    // Before the first reader has to wait for it.
    for (const _ of market.ranking());
    // Where the market waits, whoever takes it on says when they are recorded: by the machine’s time they would differ each time.
    if (steps === undefined) this.recorder.start()
    positions.keepAhead(() => market.seq)
    await this.#checkpoints?.start()
    this.#publish(runEventNo)
    this.#hasBegun = true
    return true
  }

  #beginRun(nowMs: number): Promise<void> {
    const { header, journal, market, restored } = this.#opened
    const { config, positions, store } = this.#deps
    return beginRun({
      market,
      journal,
      header,
      nowMs,
      isRestored: restored !== null,
      healing: healingFeedOf(config),
      apply: this.sinkOf(SERVER_FEED).apply,
      firstSeq: positions.first,
      coverage: store.recovered.coverage,
    })
  }

  #publish(runEventNo: number): void {
    const { header, journal, restored } = this.#opened
    if (journal === null) return
    // What a checkpoint of before has is not lost in it, and is in this market.
    const hasLost = this.#lostEvents !== (restored?.base.head?.lostEvents ?? 0)
    this.#deps.publisher?.begin({
      runId: header.runId,
      simulated: header.simulated,
      runEventNo,
      originEventNo: journal.originEventNo,
      lostEvents: this.#lostEvents,
      now: () => ({ eventNo: journal.lastEventNo, timeMs: this.market.timeMs }),
      writeNow: () => void journal.written(0),
      newestCheckpoint: () => {
        const eventNo = this.#checkpoints?.status().newest?.eventNo
        return eventNo === undefined || (eventNo < runEventNo && hasLost) ? null : this.#checkpointOf(eventNo)
      },
      makeCheckpoint: () => this.makeCheckpoint(),
    })
  }

  #checkpointOf(eventNo: number): StoredCheckpoint {
    return {
      eventNo,
      path: join(this.#opened.restoreOptions.checkpointFolder, checkpointNames.nameOf(eventNo)),
    }
  }

  status(): RecordingStatus {
    const { journal, recording } = this.#opened
    const isOn = recording.isOn
    const parts = { journal: journal?.stats() ?? null, checkpoints: this.#checkpoints?.status() ?? null }
    const reasons = recordingReasons(this.#opened, parts, this.#deps.store.events.progress.eventNo)
    if (this.#isRecordedTwice) reasons.push(RECORDED_TWICE)
    return { isOn, reasons, ...parts, restored: this.#redone }
  }

  /** Makes a checkpoint now. For tests and benchmarks. */
  async makeCheckpoint(): Promise<void> {
    await this.#checkpoints?.make()
  }

  /** Time stands still from now on, and what is being applied again is given up. */
  halt(): void {
    this.#isHalted = true
    this.timekeeper.stop()
  }

  /** Closes the journal and writes the market for the next start. To be called when no more events come. */
  async stop(): Promise<void> {
    const { journal, recording } = this.#opened
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
    await this.#deps.publisher?.stop()
  }

  #createCheckpoints(journal: EventJournal): CheckpointScheduler {
    const { recording, restored, restoreOptions } = this.#opened
    const { config, clock, log, publisher, store } = this.#deps
    const { journalFolder, checkpointFolder, folderId } = restoreOptions
    return new CheckpointScheduler({
      journal,
      market: this.market,
      journalFolder,
      checkpointFolder,
      folderId,
      clock,
      log,
      // What a feed from the chain may be told again after a restart.
      eventsKeptMin: config.feeds.includes('solana') ? TRANSACTIONS_SEEN_MAX : 0,
      intervalMs: recording.hasCheckpoints ? config.record.checkpointMs : 0,
      lostEvents: () => this.#lostEvents,
      lakeProgress: () => store.events.progress,
      emitBars: () => this.recorder.emitBarsInSlices(),
      barsInLakeToMs: () =>
        Math.min(
          Math.max(store.barsInLakeToMs, restored?.base.head?.barsInLakeToMs ?? 0),
          this.timekeeper.rewoundToMs - SILENCE_MS - LATE_GRACE_MS,
          store.barsWaitFromMs - 1,
        ),
      // A writer has done so before it stopped taking requests, and its successor waits: what has come since is emitted again there.
      flushLake: () => (publisher === null ? store.flushLake() : Promise.resolve()),
      profilesInLake: () => this.recorder.hasAllProfiles && store.profiles.unconfirmed === 0,
      mayWrite: (bytes) => store.mayRecord(bytes),
      unusable: restored?.unusable ?? [],
      onMade: (eventNo) => publisher?.onCheckpoint(this.#checkpointOf(eventNo)),
    })
  }
}

/** Opens the market and the journal; `RunningMarket.begin` goes on from there. */
export async function openRunningMarket(deps: RunningMarketDeps): Promise<RunningMarket> {
  let running: RunningMarket | null = null
  const opened = await openMarket(deps, (interval) => running?.serverEvents.noteLost(interval))
  running = new RunningMarket(deps, opened)
  return running
}
