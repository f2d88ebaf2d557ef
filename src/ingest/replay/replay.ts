// In: recorded trades in batches, in the order of their file; a speed; a clock. Out: the same trades as events, at recorded
// speed, n times it, or flat out with pauses in which the server stays alive. The same file gives the same events.
// Never reads a file: the store does.

import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Clock } from '../../lib/clock.ts'
import { errorMessage } from '../../lib/error-text.ts'
import type { EventSink } from '../../schema/event.ts'
import { EventCounters } from '../event-counters.ts'
import { REPLAY_DEFAULTS, REPLAY_PROGRESS_MS, REPLAY_SLICE_ROWS, REPLAY_WAIT_MS_MAX } from '../limits.ts'
import type { Feed, FeedLog, FeedStatus } from '../types.ts'
import { wait } from '../wait.ts'
import { type TradeBatch, TradeTranslator } from './trade-translator.ts'

export type { TradeBatch } from './trade-translator.ts'

/** How fast: times the recorded speed, or as fast as the market takes them. */
export type ReplaySpeed = number | 'max'
/** `recorded` keeps the trades' own times; `now` moves them all so that the first trade happens at the start. */
export type ReplayTime = 'recorded' | 'now'

export interface ReplayProgress {
  rows: number
  /** Null where the number of rows was not known beforehand. */
  rowsTotal: number | null
  percent: number | null
  rowsPerSecond: number
  /** Until the end, at the rate so far. */
  etaMs: number | null
  /** Time of the latest trade as the market sees it, Unix ms. */
  atMs: number | null
}

export interface ReplayOptions {
  /** Read to its end once; closed early when the replay is stopped. */
  trades: AsyncIterable<TradeBatch>
  rowsTotal?: number | null
  speed?: ReplaySpeed
  time?: ReplayTime
  /** What is replayed, for people. */
  label?: string
  /** Called about once a second and at the end. */
  onProgress?: (progress: ReplayProgress) => void
}

export interface ReplayFeed extends Feed {
  /** Resolves when the last trade is applied, the replay was stopped, or its source failed (see `describe`). */
  readonly done: Promise<void>
  progress(): ReplayProgress
}

/** Starts a replay. It is ready when its first trades are applied, and rejects when there is nothing to read. */
export function startReplay(options: ReplayOptions, sink: EventSink, clock: Clock, log: FeedLog): ReplayFeed {
  return new Replay(options, sink, clock, log)
}

/**
 * Where a slice that begins at `row` ends: where the recorded time moves on, so that what is read between two slices stays
 * what was in effect at that time. Rows of one time may be many in a file of whole seconds; a batch bounds them.
 */
function sliceEnd({ rows, tsMs }: TradeBatch, row: number): number {
  let end = Math.min(row + REPLAY_SLICE_ROWS, rows)
  while (end < rows && tsMs[end] === tsMs[end - 1]) end++
  return end
}

class Replay implements ReplayFeed {
  readonly ready: Promise<void>
  readonly done: Promise<void>
  private state: FeedStatus['state'] = 'starting'
  private error: string | null = null
  private rows = 0
  private startedAtMs: number
  private endedAtMs: number | null = null
  private reportedAtMs: number
  /** Recorded time of the first trade, and what is added to recorded times. */
  private firstMs: number | null = null
  private shiftMs = 0
  private latestMs = Number.NEGATIVE_INFINITY
  private settleReady: { resolve: () => void; reject: (error: unknown) => void }
  private readonly options: ReplayOptions
  private readonly speed: ReplaySpeed
  private readonly counters: EventCounters
  private readonly translator = new TradeTranslator()
  private readonly clock: Clock
  private readonly log: FeedLog
  private readonly stopping = new AbortController()

  constructor(options: ReplayOptions, sink: EventSink, clock: Clock, log: FeedLog) {
    this.options = options
    this.speed = options.speed ?? REPLAY_DEFAULTS.speed
    this.counters = new EventCounters(sink)
    this.clock = clock
    this.log = log
    this.startedAtMs = this.reportedAtMs = clock.now()
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.ready = promise
    this.settleReady = { resolve, reject }
    this.done = this.run()
  }

  private async run(): Promise<void> {
    const batches = this.options.trades[Symbol.asyncIterator]()
    try {
      for (;;) {
        const batch = await this.nextBatch(batches)
        if (batch === null) break
        await this.play(batch)
      }
    } finally {
      await batches.return?.()
    }
    this.end()
  }

  /** A source that fails ends the replay; it is the world's fault, not the code's. */
  private async nextBatch(batches: AsyncIterator<TradeBatch>): Promise<TradeBatch | null> {
    if (this.stopping.signal.aborted) return null
    try {
      const { done, value } = await batches.next()
      return done === true ? null : value
    } catch (error) {
      this.fail(error)
      return null
    }
  }

  private fail(error: unknown): void {
    this.state = 'failed'
    this.error = errorMessage(error)
    this.log.error({ error: this.error, rows: this.rows, label: this.options.label }, 'the replay failed')
    this.settleReady.reject(error)
    const atMs = this.rows === 0 ? this.clock.now() : this.latestMs
    this.counters.apply({ type: 'disconnect', ts: atMs, feed: 'replay' }, atMs)
  }

  private end(): void {
    this.endedAtMs = this.clock.now()
    this.settleReady.resolve()
    if (this.state !== 'failed') this.state = this.stopping.signal.aborted ? 'stopped' : 'finished'
    this.options.onProgress?.(this.progress())
    this.log.info(this.describe(), `the replay has ${this.state}`)
  }

  private async play(batch: TradeBatch): Promise<void> {
    for (let row = 0; row < batch.rows && !this.stopping.signal.aborted; ) {
      const end = sliceEnd(batch, row)
      row = this.applyDue(batch, row, end)
      this.report()
      const waitMs = row < end ? this.waitMs(batch.tsMs[row]) : 0
      await (waitMs > 0 ? wait(waitMs, this.stopping.signal) : nextTurn())
    }
  }

  /** Applies rows from `row` up to `end`, or up to the first that is not due yet, and answers where it stopped. */
  private applyDue(batch: TradeBatch, row: number, end: number): number {
    if (this.firstMs === null) this.begin(batch.tsMs[row])
    const dueMs = this.dueMs()
    let next = row
    for (; next < end && !(batch.tsMs[next] > dueMs); next++) this.applyRow(batch, next)
    if (next > row && this.state === 'starting') {
      this.state = 'running'
      this.settleReady.resolve()
    }
    return next
  }

  private begin(firstMs: number): void {
    this.firstMs = firstMs
    this.startedAtMs = this.reportedAtMs = this.clock.now()
    if (this.options.time === 'now') this.shiftMs = Math.floor(this.startedAtMs - firstMs)
  }

  /** Up to which recorded time trades have happened by now. */
  private dueMs(): number {
    if (this.speed === 'max') return Number.POSITIVE_INFINITY
    return (this.firstMs as number) + (this.clock.now() - this.startedAtMs) * this.speed
  }

  private waitMs(tsMs: number): number {
    if (this.speed === 'max') return 0
    return Math.min(Math.ceil((tsMs - this.dueMs()) / this.speed), REPLAY_WAIT_MS_MAX)
  }

  private applyRow(batch: TradeBatch, row: number): void {
    this.rows++
    const { token, trade, fault } = this.translator.translate(batch, row, this.shiftMs)
    if (trade === null) {
      this.counters.refuse(fault)
      return
    }
    if (trade.ts > this.latestMs) this.latestMs = trade.ts
    if (token !== null) this.counters.apply(token, this.latestMs)
    this.counters.apply(trade, this.latestMs)
  }

  private report(): void {
    const nowMs = this.clock.now()
    if (nowMs - this.reportedAtMs < REPLAY_PROGRESS_MS) return
    this.reportedAtMs = nowMs
    this.options.onProgress?.(this.progress())
  }

  progress(): ReplayProgress {
    const { rows } = this
    const rowsTotal = this.options.rowsTotal ?? null
    const elapsedMs = (this.endedAtMs ?? this.clock.now()) - this.startedAtMs
    const isKnown = rowsTotal !== null && rows > 0
    return {
      rows,
      rowsTotal,
      percent: rowsTotal === null ? null : rowsTotal === 0 ? 100 : Math.min(100, (100 * rows) / rowsTotal),
      rowsPerSecond: elapsedMs > 0 ? Math.round((1_000 * rows) / elapsedMs) : 0,
      etaMs: isKnown ? Math.max(0, Math.round((elapsedMs / rows) * (rowsTotal - rows))) : null,
      atMs: Number.isFinite(this.latestMs) ? this.latestMs : null,
    }
  }

  async stop(): Promise<void> {
    this.stopping.abort()
    await this.done
  }

  describe(): FeedStatus {
    return {
      feed: 'replay',
      state: this.state,
      simulated: false,
      label: this.options.label ?? null,
      speed: this.speed,
      time: this.options.time ?? REPLAY_DEFAULTS.time,
      symbols: this.translator.symbols,
      ...this.progress(),
      accepted: this.counters.accepted,
      rejected: { ...this.counters.rejected },
      error: this.error,
    }
  }
}
