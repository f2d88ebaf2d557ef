// In: a folder, a seed, a span of time. Out: a lake that the real engine, desk and store filled from a simulated market and
// scripted agents, in market time: two days in some seconds. The same seed gives the same rows. Never reads a clock.

import { Random } from '../../src/ingest/simulator/random.ts'
import { createSimulator, type Simulation } from '../../src/ingest/simulator/simulator.ts'
import { createLog } from '../../src/lib/log.ts'
import { Market } from '../../src/market/market.ts'
import { createMarketRecorder, type MarketRecorder } from '../../src/recording/market-recorder.ts'
import { type DataPoint, SNAPSHOT_FIELDS } from '../../src/schema/datapoint.ts'
import { ServiceError } from '../../src/schema/errors.ts'
import type { SubmittedSnapshot } from '../../src/schema/submission.ts'
import { openStore } from '../../src/store/store.ts'
import type { Store } from '../../src/store/types.ts'
import { createAgentRegistry } from '../../src/submissions/accounts/agent-registry.ts'
import { createSubmissionService } from '../../src/submissions/submission-service.ts'
import type { Caller, SubmissionService } from '../../src/submissions/types.ts'
import { type Opinion, quantOf, STRATEGIES, type Strategy } from './strategies.ts'

export interface RunOptions {
  dataDir: string
  seed: number
  /** When the market's history ends and the agents may begin, Unix ms. */
  startMs: number
  hours: number
  /** The agents stop after these, so that outcomes of most are known in full. */
  agentHours: number
  tokens: number
  tradesPerSecond: number
  /** What the market made goes to the lake this often, ms of market time. */
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
/** A submission is durable this much after it was judged; drawn, as the run knows no wall clock. */
const STORE_DELAY_MS_MEDIAN = 6
const POPULAR_ROWS = 24

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
  private market!: Market
  private recorder!: MarketRecorder
  private submissions!: SubmissionService

  constructor(options: RunOptions) {
    this.options = options
    this.random = new Random(options.seed + 1)
    const { seed, tokens, tradesPerSecond, startMs } = options
    this.simulation = createSimulator({ seed, tokens, tradesPerSecond, startMs })
    this.nowMs = startMs - 24 * HOUR_MS
    this.flushAtMs = this.nowMs + options.flushMs
  }

  async run(): Promise<RunReport> {
    const { startMs, hours, dataDir } = this.options
    this.store = await openStore({
      dataDir,
      lakeFlushMs: 0,
      lakeGraceMs: 0,
      lakeQuietMs: 0,
      provenance: { feed: 'simulator', simulated: true },
      clock: { now: () => this.nowMs + this.storeDelayMs, monotonicMs: () => this.nowMs },
      log: quietLog,
    })
    this.recorder = createMarketRecorder(this.store, createLog({ format: 'json', quiet: true }))
    this.market = new Market({ tokensMax: TOKENS_MAX, ...this.recorder.listeners })
    this.recorder.of(this.market)
    await this.advance(startMs)
    await this.hire()
    await this.actUntil(startMs + hours * HOUR_MS)
    await this.flush()
    // What the last bars say of earlier submissions is computed in one flush and written by the next.
    await this.flush()
    await this.store.compactLake()
    await this.store.close()
    return this.report
  }

  /** Carries the market's time forward, its events told as they happen. */
  private async advance(untilMs: number): Promise<void> {
    while (this.nowMs < untilMs) {
      this.nowMs = Math.min(untilMs, this.nowMs - (this.nowMs % STEP_MS) + STEP_MS)
      this.simulation.advance(this.nowMs, this.market)
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
    const agents = createAgentRegistry({
      recovered: store.recovered,
      store,
      clock,
      random: () => random.next(),
      randomBytes: (count) => Uint8Array.from({ length: count }, () => random.below(256)),
      registrationOpen: true,
    })
    this.submissions = createSubmissionService({
      market,
      store,
      agents,
      clock,
      random: () => random.next(),
      marketMs: () => market.timeMs,
      recovered: store.recovered,
      onAccepted: (mint, count) =>
        market.apply({ type: 'analysisCount', mint, ts: this.nowMs, count }, this.nowMs),
    })
    for (const strategy of STRATEGIES.flatMap((one) =>
      Array.from({ length: one.accounts ?? 1 }, () => one),
    )) {
      const { body } = await agents.register({ name: strategy.name, description: strategy.description })
      const { key, agentId } = body.data as { key: string; agentId: string }
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

  /** Reads a token, thinks, and submits a while later: by then the market has moved on. */
  private async look(strategy: Strategy, caller: Caller): Promise<void> {
    const { random } = this
    const datapoint = this.chooseToken(strategy)
    const token = this.simulation.snapshotTokens().find(({ mint }) => mint === datapoint.mint)
    const seen = { datapoint, mood: token?.mood ?? ('dead' as const), random }
    const thought = strategy.think(seen)
    const lean = (thought.sentiment === 'bearish' ? -1 : 1) * (thought.score / 50 - 1)
    const read = this.snapshotOf(datapoint)
    const body = {
      mint: datapoint.mint,
      sentiment: thought.sentiment,
      score: thought.score,
      summary: summaryOf(datapoint, thought),
      snapshot: strategy.tamper?.(read, random) ?? read,
      quant: quantOf(strategy, seen, lean),
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
    const page = this.market.page({
      tab: 'all',
      sort: isPopular ? 'hot' : 'created_timestamp',
      order: 'desc',
      limit: isPopular ? POPULAR_ROWS : this.options.tokens,
      offset: 0,
    })
    const rows = page.ndjson.toString().trimEnd().split('\n')
    return this.market.datapoint(JSON.parse(this.random.pick(rows)).mint)!
  }

  private snapshotOf(datapoint: DataPoint): SubmittedSnapshot {
    const values = SNAPSHOT_FIELDS.map((field) => [field, datapoint[field]])
    return { ...Object.fromEntries(values), snapshotAt: this.nowMs }
  }

  private async submit(caller: Caller, body: unknown): Promise<void> {
    this.storeDelayMs = Math.ceil(this.random.lognormal(STORE_DELAY_MS_MEDIAN, 0.5))
    const answer = await this.submissions
      .submit(caller, { body: Buffer.from(JSON.stringify(body)), idempotencyKey: null })
      .then(({ body: { outcome } }) => String(outcome))
      .catch((error: unknown) => {
        if (error instanceof ServiceError) return error.code
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

/** Runs the market and its agents, and leaves the lake in `dataDir`. */
export const runSample = (options: RunOptions): Promise<RunReport> => new Run(options).run()
