// Replays recorded trades as market events: at the recorded speed, a multiple of it, or as fast as possible with pauses for the
// rest of the server. The same file always gives the same events.

import type { Clock } from '../../lib/clock.ts'
import { errorMessage } from '../../lib/error-text.ts'
import { nextTurn } from '../../lib/wait.ts'
import type { EventSink } from '../../schema/event.ts'
import { FeedParts } from '../feed-parts.ts'
import { REPLAY_DEFAULTS, REPLAY_PROGRESS_MS, REPLAY_SLICE_ROWS } from '../limits.ts'
import { ALWAYS_ROOM, type Feed, type FeedLog, type FeedStatus, type Room } from '../types.ts'
import { unlessAborted, untilRoom, wait } from '../wait.ts'
import { type ReplaySpeed, SpeedPace } from './pace.ts'
import type { ProgressReport } from './progress-report.ts'
import type { TradeBatch } from './trade-batch.ts'
import { TradeTranslator } from './trade-translator.ts'

export type { ReplaySpeed } from './pace.ts'
export type { TradeBatch } from './trade-batch.ts'

/** `recorded` keeps the trades' own times; `now` moves them all so that the first trade happens at the start. */
export type ReplayTime = 'recorded' | 'now'

export interface ReplayProgress {
  rows: number
  /** Null where the number of rows is not known. */
  rowsTotal: number | null
  percent: number | null
  rowsPerSecond: number
  /** Time until the end at the rate so far. */
  etaMs: number | null
  /** Market time of the latest trade, Unix ms. */
  atMs: number | null
}

export interface ReplayOptions {
  /** Iterated once to its end, or closed early when the replay is stopped. */
  trades: AsyncIterable<TradeBatch>
  rowsTotal?: number | null
  speed?: ReplaySpeed
  time?: ReplayTime
  /** Whether the trades are made up. */
  simulated?: boolean
  /** A name of the source, for people. */
  label?: string
  /** Shows how far it is. */
  report?: ProgressReport
}

export interface ReplayFeed extends Feed {
  /** Resolves when the last trade is applied, the replay was stopped or its source failed; `describe` says which. */
  readonly done: Promise<void>
  progress(): ReplayProgress
}

/** Starts a replay. It is ready when its first trades are applied; `ready` rejects when the source fails before that. */
export function startReplay(
  options: ReplayOptions,
  sink: EventSink,
  clock: Clock,
  log: FeedLog,
  room: Room = ALWAYS_ROOM,
): ReplayFeed {
  return new Replay(options, sink, clock, log, room)
}

/**
 * Where a slice of rows that begins at `row` ends. Rows of one recorded time stay in one slice, so that clients that read between
 * two slices see the complete state of a time; the batch bounds how many rows that can be.
 */
function findSliceEnd({ rows, tsMs }: TradeBatch, row: number): number {
  let end = Math.min(row + REPLAY_SLICE_ROWS, rows)
  while (end < rows && tsMs[end] === tsMs[end - 1]) end++
  return end
}

class Replay implements ReplayFeed {
  readonly ready: Promise<void>
  readonly done: Promise<void>
  #error: string | null = null
  #rows = 0
  #startedAtMs: number
  #endedAtMs: number | null = null
  #reportedAtMs: number
  #hasBegun = false
  /** Added to recorded times. */
  #shiftMs = 0
  #latestMs = Number.NEGATIVE_INFINITY
  readonly #options: ReplayOptions
  readonly #speed: ReplaySpeed
  readonly #pace: SpeedPace
  readonly #translator = new TradeTranslator()
  readonly #clock: Clock
  readonly #room: Room
  readonly #parts: FeedParts
  readonly #readiness = Promise.withResolvers<void>()

  constructor(options: ReplayOptions, sink: EventSink, clock: Clock, log: FeedLog, room: Room) {
    this.#options = options
    this.#speed = options.speed ?? REPLAY_DEFAULTS.speed
    this.#parts = new FeedParts('replay', sink, clock, log)
    this.#pace = new SpeedPace(this.#speed, () => clock.now())
    this.#clock = clock
    this.#room = room
    this.#startedAtMs = this.#reportedAtMs = clock.now()
    this.ready = this.#readiness.promise
    this.done = this.#run()
  }

  async #run(): Promise<void> {
    const batches = this.#options.trades[Symbol.asyncIterator]()
    try {
      for (;;) {
        const batch = await this.#nextBatch(batches)
        if (batch === null) break
        await this.#play(batch)
      }
    } finally {
      // A source that hangs must not hold up the end.
      await unlessAborted(Promise.resolve(batches.return?.()), this.#parts.stopping.signal)
    }
    this.#end()
  }

  /** The next batch; null at the end, after a stop, or when the source has failed. */
  async #nextBatch(batches: AsyncIterator<TradeBatch>): Promise<TradeBatch | null> {
    if (this.#parts.stopping.signal.aborted) return null
    try {
      const next = await unlessAborted(batches.next(), this.#parts.stopping.signal)
      return next === null || next.done === true ? null : next.value
    } catch (error) {
      this.#fail(error)
      return null
    }
  }

  #fail(error: unknown): void {
    this.#parts.state.set('failed')
    this.#error = errorMessage(error)
    this.#parts.log.error(
      { error: this.#error, rows: this.#rows, label: this.#options.label },
      'the replay failed',
    )
    this.#readiness.reject(error)
    const atMs = this.#rows === 0 ? this.#clock.now() : this.#latestMs
    this.#parts.linkOf().lose(atMs, atMs)
  }

  #end(): void {
    this.#endedAtMs = this.#clock.now()
    this.#readiness.resolve()
    if (this.#parts.state.current !== 'failed')
      this.#parts.state.set(this.#parts.stopping.signal.aborted ? 'stopped' : 'finished')
    this.#options.report?.end()
    const refused = this.#parts.counters.end()
    if (refused === null) this.#parts.log.info(this.describe(), `the replay has ${this.#parts.state.current}`)
    else this.#parts.log.warn(this.describe(), `the replay has ${this.#parts.state.current}: ${refused}`)
  }

  async #play(batch: TradeBatch): Promise<void> {
    for (let row = 0; row < batch.rows && !this.#parts.stopping.signal.aborted; ) {
      const end = findSliceEnd(batch, row)
      row = this.#applyDue(batch, row, end)
      this.#report()
      const waitMs = row < end ? this.#pace.waitMs(batch.tsMs[row]) : 0
      await (waitMs > 0 ? wait(waitMs, this.#parts.stopping.signal) : nextTurn())
      await untilRoom(this.#room, this.#parts.stopping.signal)
    }
  }

  /** Applies rows from `row` up to `end`, or up to the first that is not due yet. @returns the first row not applied. */
  #applyDue(batch: TradeBatch, row: number, end: number): number {
    let dueMs = this.#pace.dueMs()
    let next = row
    for (; next < end; next++) {
      const tsMs = batch.tsMs[next]
      // A row without a time says nothing of when the others are due.
      if (!this.#hasBegun && tsMs > 0) {
        this.#begin(tsMs)
        dueMs = this.#pace.dueMs()
      }
      if (tsMs > dueMs) break
      this.#applyRow(batch, next)
    }
    if (next > row && this.#parts.state.current === 'starting') {
      this.#parts.state.set('running')
      this.#readiness.resolve()
    }
    return next
  }

  #begin(firstMs: number): void {
    this.#hasBegun = true
    this.#startedAtMs = this.#reportedAtMs = this.#clock.now()
    this.#pace.begin(firstMs)
    if (this.#options.time === 'now') this.#shiftMs = Math.floor(this.#startedAtMs - firstMs)
  }

  #applyRow(batch: TradeBatch, row: number): void {
    this.#rows++
    const { token, trade, fault } = this.#translator.translate(batch, row, this.#shiftMs)
    if (trade === null) {
      this.#parts.counters.countRejected(fault.reason, () => fault.sample)
      return
    }
    if (trade.ts > this.#latestMs) this.#latestMs = trade.ts
    const { counters } = this.#parts
    try {
      if (token !== null) counters.apply(token, this.#latestMs)
      counters.apply(trade, this.#latestMs)
    } catch (error) {
      this.#parts.noteFault(error)
    }
  }

  #report(): void {
    const nowMs = this.#clock.now()
    if (nowMs - this.#reportedAtMs < REPLAY_PROGRESS_MS) return
    this.#reportedAtMs = nowMs
    const { rows: done, rowsTotal: total, percent, rowsPerSecond: perSecond, etaMs, atMs } = this.progress()
    this.#options.report?.note({ done, total, percent, perSecond, etaMs }, { atMs })
  }

  /** One that goes as fast as it can brings the market to its state: until then half of it is there. */
  whyWarming(): string | null {
    if (this.#speed !== 'max' || this.#parts.state.current !== 'running') return null
    const { rows, rowsTotal, percent } = this.progress()
    const part = percent === null ? `${rows} rows` : `${rows} of ${rowsTotal} rows (${Math.floor(percent)} %)`
    return `The replay has brought ${part} so far`
  }

  progress(): ReplayProgress {
    const rows = this.#rows
    const rowsTotal = this.#options.rowsTotal ?? null
    const elapsedMs = (this.#endedAtMs ?? this.#clock.now()) - this.#startedAtMs
    const hasEta = rowsTotal !== null && rows > 0
    return {
      rows,
      rowsTotal,
      percent: rowsTotal === null ? null : rowsTotal === 0 ? 100 : Math.min(100, (100 * rows) / rowsTotal),
      rowsPerSecond: elapsedMs > 0 ? Math.round((1_000 * rows) / elapsedMs) : 0,
      etaMs: hasEta ? Math.max(0, Math.round((elapsedMs / rows) * (rowsTotal - rows))) : null,
      atMs: Number.isFinite(this.#latestMs) ? this.#latestMs : null,
    }
  }

  async stop(): Promise<void> {
    this.#parts.stopping.abort()
    await this.done
  }

  describe(): FeedStatus {
    const status = this.#parts.status({
      simulated: this.#options.simulated ?? false,
      label: this.#options.label ?? null,
      speed: this.#speed,
      time: this.#options.time ?? REPLAY_DEFAULTS.time,
      symbols: this.#translator.symbolCount,
      ...this.progress(),
    })
    return { ...status, error: this.#error }
  }
}
