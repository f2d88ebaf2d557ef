// Replays recorded trades as market events: at the recorded speed, a multiple of it, or as fast as possible with pauses for the
// rest of the server. The same file always gives the same events.

import type { Clock } from '../../lib/clock.ts'
import { nextTurn } from '../../lib/wait.ts'
import type { EventSink } from '../../schema/event.ts'
import { FeedParts } from '../feed-parts.ts'
import { REPLAY_DEFAULTS, REPLAY_SLICE_ROWS } from '../limits.ts'
import { ALWAYS_ROOM, type FeedLog, type FeedStatus, type Room } from '../types.ts'
import { untilRoom, wait } from '../wait.ts'
import { type ReplaySpeed, SpeedPace } from './pace.ts'
import { Playback } from './playback.ts'
import type { ProgressReport } from './progress-report.ts'
import type { TradeBatch } from './trade-batch.ts'
import { TradeTranslator } from './trade-translator.ts'

/** `recorded` keeps the trades' own times; `now` moves them all so that the first trade happens at the start. */
export type ReplayTime = 'recorded' | 'now'

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

/**
 * Where a slice of rows that begins at `row` ends. Rows of one recorded time stay in one slice, so that clients that read between
 * two slices see the complete state of a time; the batch bounds how many rows that can be.
 */
function findSliceEnd({ rows, tsMs }: TradeBatch, row: number): number {
  let end = Math.min(row + REPLAY_SLICE_ROWS, rows)
  while (end < rows && tsMs[end] === tsMs[end - 1]) end++
  return end
}

/** A replay of trades. It is ready when its first trades are applied; `ready` rejects when the source fails before that. */
export class Replay extends Playback<TradeBatch> {
  #hasBegun = false
  /** Added to recorded times. */
  #shiftMs = 0
  readonly #options: ReplayOptions
  readonly #speed: ReplaySpeed
  readonly #pace: SpeedPace
  readonly #translator = new TradeTranslator()
  readonly #room: Room

  constructor(options: ReplayOptions, sink: EventSink, clock: Clock, log: FeedLog, room: Room = ALWAYS_ROOM) {
    const { trades: batches, rowsTotal: total = null, speed = REPLAY_DEFAULTS.speed, label, report } = options
    const pace = new SpeedPace(speed, () => clock.monotonicMs())
    const parts = new FeedParts('replay', sink, clock, log)
    super(parts, { batches, unit: 'rows', total, speed, pace, label, report })
    this.#options = options
    this.#speed = speed
    this.#pace = pace
    this.#room = room
  }

  protected async play(batch: TradeBatch): Promise<void> {
    const { signal } = this.parts.stopping
    for (let row = 0; row < batch.rows && !signal.aborted; ) {
      const end = findSliceEnd(batch, row)
      row = this.#applyDue(batch, row, end)
      this.report()
      const waitMs = row < end ? this.#pace.waitMs(batch.tsMs[row]) : 0
      await (waitMs > 0 ? wait(waitMs, signal) : nextTurn())
      await untilRoom(this.#room, signal)
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
    if (next > row) this.markReady()
    return next
  }

  #begin(firstMs: number): void {
    this.#hasBegun = true
    this.restart()
    this.#pace.begin(firstMs)
    if (this.#options.time === 'now') this.#shiftMs = Math.floor(this.parts.clock.now() - firstMs)
  }

  #applyRow(batch: TradeBatch, row: number): void {
    this.count++
    const { counters } = this.parts
    const { token, trade, fault } = this.#translator.translate(batch, row, this.#shiftMs)
    if (trade === null) {
      counters.countRejected(fault.reason, () => fault.sample)
      return
    }
    const latestMs = Math.max(trade.ts, this.latestMs ?? trade.ts)
    this.latestMs = latestMs
    try {
      if (token !== null) counters.apply(token, latestMs)
      counters.apply(trade, latestMs)
    } catch (error) {
      this.parts.noteFault(error)
    }
  }

  /** How far it is. */
  progress() {
    const { done: rows, total: rowsTotal, percent, perSecond: rowsPerSecond, etaMs } = this.part()
    return { rows, rowsTotal, percent, rowsPerSecond, etaMs, atMs: this.latestMs }
  }

  describe(): FeedStatus {
    return this.status({
      simulated: this.#options.simulated ?? false,
      label: this.#options.label ?? null,
      speed: this.#speed,
      time: this.#options.time ?? REPLAY_DEFAULTS.time,
      symbols: this.#translator.symbolCount,
      ...this.progress(),
    })
  }
}
