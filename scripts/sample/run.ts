// Fills a lake with the real engine, submission service and store from a simulated market and scripted agents, in market time:
// two days in some seconds. The same seed gives the same rows, so nothing here reads a clock.
import { Random } from '../../src/ingest/simulator/random.ts'
import { Simulation } from '../../src/ingest/simulator/simulation.ts'
import { type EventJournal, openJournal } from '../../src/journal/journal.ts'
import { assert } from '../../src/lib/assert.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { createLog } from '../../src/lib/log.ts'
import { Market } from '../../src/market/market.ts'
import { type FeedSink, recordedSinks } from '../../src/recording/event-recorder.ts'
import { type MarketRecorder, prepareRecorder } from '../../src/recording/market-recorder.ts'
import { type DataPoint, SNAPSHOT_FIELDS } from '../../src/schema/datapoint.ts'
import type { MarketEvent } from '../../src/schema/event.ts'
import type { SubmittedSnapshot } from '../../src/schema/submission.ts'
import { readFolderInfo } from '../../src/store/data-folder/folder-info.ts'
import { journalFolder } from '../../src/store/paths.ts'
import { openStore, type Store } from '../../src/store/store.ts'
import { AgentRegistry } from '../../src/submissions/accounts/agent-registry.ts'
import { SubmissionError } from '../../src/submissions/errors.ts'
import { SubmissionService } from '../../src/submissions/submission-service.ts'
import type { Caller } from '../../src/submissions/types.ts'
import { type Opinion, quantFor, STRATEGIES, type Strategy } from './strategies.ts'

export interface RunOptions {
  dataDir: string
  seed: number
  /** End of the market's history and start of the agents, Unix ms. */
  startMs: number
  hours: number
  /** How long the agents submit; the market goes on longer, so that most outcomes are complete. */
  agentHours: number
  tokens: number
  tradesPerSecond: number
  /** Interval of flushes to the lake, ms of market time. */
  flushMs: number
}

export interface RunReport {
  agents: { agentId: string; strategy: Strategy }[]
  answers: Record<string, number>
}

const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000
const STEP_MS = 10_000
const TOKENS_MAX = 10_000
/** Simulated delay between the evaluation of a submission and its commit. */
const STORE_DELAY_MS_MEDIAN = 6
const POPULAR_ROWS = 24
/** The bars that an agent looks at. */
const BARS = { tf: '1m', limit: 30, fromMs: null, toMs: null, fill: 'none' } as const
const FEED = 'simulator'
const RUN_ID = 'sample'

const quietLog = { info: () => {}, warn: console.warn, error: console.error }

class Run {
  readonly report: RunReport = { agents: [], answers: {} }
  private nowMs: number
  private storeDelayMs = 0
  private flushAtMs: number
  private readonly options: RunOptions
  private readonly random: Random
  private readonly simulation: Simulation
  private readonly queue: { atMs: number; act: () => Promise<void> }[] = []
  private store!: Store
  private journal!: EventJournal
  private market!: Market
  private recorder!: MarketRecorder
  /** Applies events to the market, and records them. */
  private sink!: FeedSink
  private submissions!: SubmissionService

  constructor(options: RunOptions) {
    this.options = options
    this.random = new Random(options.seed + 1)
    const { seed, tokens, tradesPerSecond, startMs } = options
    this.simulation = new Simulation({ seed, tokens, tradesPerSecond, startMs })
    this.nowMs = startMs - 24 * HOUR_MS
    this.flushAtMs = this.nowMs + options.flushMs
  }

  async run(): Promise<RunReport> {
    const { startMs, hours, dataDir } = this.options
    this.store = await openStore({
      dataDir,
      lakeFlushMs: 0,
      lakeTidy: { everyMs: 0, graceMs: 0 },
      lakeQuietMs: 0,
      provenance: { feed: FEED, simulated: true },
      clock: { now: () => this.nowMs + this.storeDelayMs, monotonicMs: () => this.nowMs },
      log: quietLog,
    })
    const { callbacks, recorderOf } = prepareRecorder(this.store, createLog('warn'))
    this.market = new Market({ tokensMax: TOKENS_MAX, ...callbacks })
    this.recorder = recorderOf(this.market)
    await this.record()
    await this.advance(startMs)
    await this.hire()
    await this.actUntil(startMs + hours * HOUR_MS)
    await this.flush()
    // Outcomes that the last bars complete are computed in one flush and written by the next.
    await this.flush()
    await this.store.compactLake()
    await this.store.close()
    await this.journal.close()
    return this.report
  }

  /** From now on all events that the market takes are recorded. */
  private async record(): Promise<void> {
    const { dataDir } = this.options
    this.journal = await openJournal({
      folder: journalFolder(dataDir),
      folderId: readFolderInfo(dataDir)!.logId,
      runId: RUN_ID,
      settings: this.market.settings,
      originEventNo: 1,
      simulated: true,
      afterEventNo: 0,
      clock: systemClock,
      log: quietLog,
      lakeEventNo: () => this.store.events.progress.eventNo,
      mayRecord: () => true,
      onLost: () => assert(false, 'the disk keeps up'),
    })
    this.store.events.follow(this.journal, () => {})
    this.sink = recordedSinks(this.market, this.journal)(FEED)
    const run: MarketEvent = {
      type: 'run',
      ts: this.nowMs,
      firstSeq: 0,
      header: {
        ...{ runId: RUN_ID, version: 'sample', formatVersion: 1, node: 'sample', feeds: ['simulator'] },
        settings: this.market.settings,
        ...{ simulated: true, checkpointEventNo: null, startedAtMs: this.nowMs },
      },
    }
    this.sink.apply(run, this.nowMs)
  }

  /** Advances market time and applies the events on the way. */
  private async advance(untilMs: number): Promise<void> {
    while (this.nowMs < untilMs) {
      this.nowMs = Math.min(untilMs, this.nowMs - (this.nowMs % STEP_MS) + STEP_MS)
      this.simulation.advance(this.nowMs, this.sink)
      this.market.advanceTo(this.nowMs)
      if (this.nowMs % MINUTE_MS === 0) await this.recorder.stop()
      if (this.nowMs >= this.flushAtMs) await this.flush()
    }
  }

  private async flush(): Promise<void> {
    this.flushAtMs = this.nowMs + this.options.flushMs
    await this.recorder.stop()
    await this.store.bars.flush()
    await this.store.flushLake()
  }

  private async actUntil(endMs: number): Promise<void> {
    for (;;) {
      this.queue.sort((a, b) => a.atMs - b.atMs)
      const next = this.queue.shift()
      if (next === undefined || next.atMs > endMs) break
      await this.advance(next.atMs)
      await next.act()
    }
    await this.advance(endMs)
  }

  private async hire(): Promise<void> {
    const { store, market, random } = this
    const clock = { now: () => this.nowMs, monotonicMs: () => this.nowMs }
    const agents = new AgentRegistry({
      recovered: store.recovered,
      store,
      clock,
      random: () => random.next(),
      randomBytes: (count) => Uint8Array.from({ length: count }, () => random.below(256)),
      registrationOpen: true,
    })
    this.submissions = new SubmissionService({
      market,
      store,
      agents,
      clock,
      random: () => random.next(),
      marketMs: () => market.timeMs,
      recovered: store.recovered,
      onAccepted: (mint, count) =>
        void this.sink.apply({ type: 'analysisCount', mint, ts: this.nowMs, count }, this.nowMs),
    })
    for (const strategy of STRATEGIES.flatMap((one) =>
      Array.from({ length: one.accounts ?? 1 }, () => one),
    )) {
      const { key, agentId } = await agents.register({
        name: strategy.name,
        description: strategy.description,
      })
      this.report.agents.push({ agentId, strategy })
      this.plan(strategy, agents.authenticate(key))
    }
  }

  private plan(strategy: Strategy, caller: Caller): void {
    const { startMs, agentHours } = this.options
    const wait = this.random.exponential(strategy.everyMinutes * MINUTE_MS)
    const atMs = Math.round(this.nowMs + 5_000 + wait)
    if (atMs > startMs + agentHours * HOUR_MS) return
    this.queue.push({ atMs, act: () => this.look(strategy, caller) })
  }

  /** Reads a token and submits an analysis of it some seconds later, when the market has moved on. */
  private async look(strategy: Strategy, caller: Caller): Promise<void> {
    const { random } = this
    const datapoint = this.chooseToken(strategy)
    const token = this.simulation.snapshotTokens().find(({ mint }) => mint === datapoint.mint)
    const seen = { datapoint, mood: token?.mood ?? ('dead' as const), random }
    const thought = strategy.think(seen)
    const lean = (thought.sentiment === 'bearish' ? -1 : 1) * (thought.score / 50 - 1)
    const read = this.snapshotOf(datapoint)
    const { bars } = this.market.bars({ mint: datapoint.mint, ...BARS })!
    const body = {
      mint: datapoint.mint,
      sentiment: thought.sentiment,
      score: thought.score,
      summary: summaryOf(datapoint, thought),
      snapshot: strategy.tamper?.(read, random) ?? read,
      quant: quantFor(strategy, seen, bars, lean),
    }
    const atMs = Math.round(this.nowMs + 1_000 + random.next() * strategy.dawdlesSeconds * 1_000)
    this.queue.push({
      atMs,
      act: async () => {
        await this.submit(caller, body)
        this.plan(strategy, caller)
      },
    })
  }

  private chooseToken(strategy: Strategy): DataPoint {
    const isPopular = this.random.chance(strategy.popularShare)
    const mints = isPopular
      ? this.market.first('hot', POPULAR_ROWS)
      : this.market.first('created_timestamp', this.options.tokens)
    return this.market.datapoint(this.random.pick(mints))!
  }

  private snapshotOf(datapoint: DataPoint): SubmittedSnapshot {
    const values = SNAPSHOT_FIELDS.map((field) => [field, datapoint[field]])
    return { ...Object.fromEntries(values), snapshotAt: this.nowMs }
  }

  private async submit(caller: Caller, body: unknown): Promise<void> {
    this.storeDelayMs = Math.ceil(this.random.lognormal(STORE_DELAY_MS_MEDIAN, 0.5))
    const answer = await this.submissions
      .submit(caller, { body: Buffer.from(JSON.stringify(body)), idempotencyKey: null })
      .then(({ receipt }): string => receipt.outcome)
      .catch((error: unknown) => {
        if (error instanceof SubmissionError) return error.code
        throw error
      })
    this.report.answers[answer] = (this.report.answers[answer] ?? 0) + 1
  }
}

function summaryOf(
  { symbol, buys24h, sells24h, priceChange1h }: DataPoint,
  { sentiment, reason }: Opinion,
): string {
  const change = priceChange1h === null ? 'no price an hour ago' : `${priceChange1h.toFixed(1)} % in an hour`
  return `${reason}: ${sentiment} on ${symbol}, ${buys24h ?? 0} buys, ${sells24h ?? 0} sells, ${change}.`
}

/** Runs the market and its agents. The lake is in `dataDir` afterwards. */
export const runSample = (options: RunOptions): Promise<RunReport> => new Run(options).run()
