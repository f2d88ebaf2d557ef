// Answers queries for a token's bars: ascending, the forming bar last, empty intervals filled where asked. As columns or as objects.
import { assert } from '../../lib/assert.ts'
import { intervalStart } from '../../lib/time.ts'
import { type Bar, TIMEFRAME_MS, TIMEFRAMES } from '../../schema/bar.ts'
import { TIMEFRAME_LENGTHS_MS } from '../../schema/timeframe.ts'
import type { BarColumns, Bars, BarsQuery } from '../types.ts'
import type { BarCascade } from './bar-cascade.ts'
import * as layout from './bar-ring.ts'
import { BARS_ANSWERED_MAX } from './limits.ts'

/** Copied into this module: looking up imported bindings takes a quarter of the time of reading a bar. */
const { BAR_STRIDE, C, H, L, N, O, T, tradeCount, V } = layout

/** The most recent bars that qualify, as objects. Bars that ended by `watermarkMs` are closed. */
export function readBars(store: BarCascade, slot: number, query: BarsQuery, watermarkMs: number): Bars {
  const columns = readColumns(store, slot, query, watermarkMs)
  const bars = Array.from({ length: columns.rowCount }, (_, row) => barAt(columns, row))
  return { bars, gaps: columns.gaps, version: columns.version }
}

/** One row as an object. */
export function barAt({ t, o, h, l, c, v, n, closed }: BarColumns, row: number): Bar {
  return {
    t: t[row],
    o: o[row],
    h: h[row],
    l: l[row],
    c: c[row],
    v: v[row],
    n: n[row],
    closed: closed[row] === 1,
  }
}

/** The most recent bars that qualify, as columns. They lie in `space` where it is large enough, and are then valid until it is
 *  used again. */
export function readColumns(
  store: BarCascade,
  slot: number,
  query: BarsQuery,
  watermarkMs: number,
  space?: ColumnBuffer,
): BarColumns {
  const { limit, tf } = query
  assert(limit >= 1 && limit <= BARS_ANSWERED_MAX, 'the limit on bars is between 1 and BARS_ANSWERED_MAX')
  const { fromMs, toMs, isFilled } = timeRange(query)
  const timeframe = TIMEFRAMES.indexOf(tf)
  const rowsMax = Math.min(limit, rowsAtMost(store, slot, timeframe, fromMs, toMs))
  const range = { fromMs, toMs, isFilled, lengthMs: TIMEFRAME_MS[tf], watermarkMs, rowsMax }
  const rows = new RowCollector(
    range,
    space !== undefined && space.rows >= rowsMax ? space : new ColumnBuffer(rowsMax),
  )
  const open = store.foldOpen(slot, timeframe)
  const ring = store.ring(timeframe)
  if (rows.take(store.scratch, 0, open * BAR_STRIDE))
    ring.runs(slot, (first, end) => rows.take(ring.values, first, end))
  const { firstMs, lastMs, rowCount } = rows
  return rows.columns(barsVersion(store, slot, timeframe, watermarkMs, firstMs, lastMs, rowCount))
}

/** An upper bound of the rows that qualify: the intervals between the token's first and last bar, within the query's bounds. */
function rowsAtMost(
  store: BarCascade,
  slot: number,
  timeframe: number,
  fromMs: number,
  toMs: number,
): number {
  const newestMs = store.newestSecond(slot)
  if (newestMs === 0) return 0
  const ring = store.ring(timeframe)
  const oldest = ring.oldest(slot)
  if (oldest === -1) store.foldOpen(slot, timeframe)
  const oldestMs = oldest === -1 ? store.scratch[T] : ring.values[oldest + T]
  const length = TIMEFRAME_LENGTHS_MS[timeframe]
  return Math.max(0, Math.floor((Math.min(newestMs, toMs) - Math.max(oldestMs, fromMs)) / length) + 2)
}

export interface BarRange {
  /** Inclusive; infinite where the query has no bound. */
  fromMs: number
  toMs: number
  isFilled: boolean
}

export const timeRange = ({ fromMs, toMs, fill }: BarsQuery): BarRange => ({
  fromMs: fromMs ?? Number.NEGATIVE_INFINITY,
  toMs: toMs ?? Number.POSITIVE_INFINITY,
  isFilled: fill === 'prev',
})

/**
 * Changes whenever the rows of an answer may have. Bars in the ring never change, so for them the first, the last and the number
 * suffice. Of the others every trade raises the count of trades, and time closes intervals, those without a trade too.
 */
export function barsVersion(
  store: BarCascade,
  slot: number,
  timeframe: number,
  watermarkMs: number,
  firstMs: number,
  lastMs: number,
  rowCount: number,
): string {
  const ring = store.ring(timeframe)
  const newest = ring.newest(slot)
  const ringMs = newest === -1 ? 0 : ring.values[newest + T]
  const extent = `${slot}.${store.generation(slot)}.${firstMs}.${rowCount}`
  if (rowCount > 0 && lastMs <= ringMs) return `${extent}.${lastMs}`
  let trades = 0
  const open = store.foldOpen(slot, timeframe)
  for (let row = 0; row < open; row++) trades += tradeCount(store.scratch[row * BAR_STRIDE + N])
  const length = TIMEFRAME_LENGTHS_MS[timeframe]
  const closed = Math.max(0, Math.floor((Math.min(watermarkMs, lastMs + length) - firstMs) / length))
  return `${extent}.${ringMs}-${trades}-${closed}`
}

/** Memory for the columns of an answer. It is reused, because allocating it takes as long as reading the bars. */
export class ColumnBuffer {
  readonly rows: number
  readonly t: Float64Array
  readonly o: Float64Array
  readonly h: Float64Array
  readonly l: Float64Array
  readonly c: Float64Array
  readonly v: Float64Array
  readonly n: Int32Array
  readonly closed: Uint8Array

  constructor(rows: number) {
    const column = () => new Float64Array(rows)
    this.rows = rows
    this.t = column()
    this.o = column()
    this.h = column()
    this.l = column()
    this.c = column()
    this.v = column()
    this.n = new Int32Array(rows)
    this.closed = new Uint8Array(rows)
  }
}

interface RowsRange extends BarRange {
  lengthMs: number
  watermarkMs: number
  rowsMax: number
}

/** Collects the rows of an answer, newest first, from the end of the columns towards their start. */
class RowCollector {
  readonly #range: RowsRange
  readonly #space: ColumnBuffer
  /** Index of the oldest row so far. */
  #first: number
  #traded = 0
  /** Start of the bar before, which is the next newer one; 0 at first. */
  #newerMs = 0

  constructor(range: RowsRange, space: ColumnBuffer) {
    this.#range = range
    this.#space = space
    this.#first = range.rowsMax
  }

  /**
   * Takes the bars that qualify of those from address `first` to before `end`, last one first.
   * @returns whether older bars are wanted.
   */
  take(values: Float64Array, first: number, end: number): boolean {
    if (!this.#range.isFilled) return this.#takeBars(values, first, end)
    for (let at = end - BAR_STRIDE; at >= first; at -= BAR_STRIDE) {
      this.#fillAfter(values[at + T], values[at + C])
      if (!this.#takeBars(values, at, at + BAR_STRIDE)) return false
    }
    return true
  }

  /** One loop without calls: a call for each bar would take longer than the bar. */
  #takeBars(values: Float64Array, first: number, end: number): boolean {
    const { fromMs, toMs, lengthMs, watermarkMs } = this.#range
    const { t, o, h, l, c, v, n, closed } = this.#space
    const closedToMs = watermarkMs - lengthMs
    let row = this.#first
    let traded = 0
    let time = Number.POSITIVE_INFINITY
    for (let at = end - BAR_STRIDE; at >= first; at -= BAR_STRIDE) {
      time = values[at + T]
      if (time < fromMs || row === 0) break
      if (time > toMs) continue
      row--
      traded++
      t[row] = time
      o[row] = values[at + O]
      h[row] = values[at + H]
      l[row] = values[at + L]
      c[row] = values[at + C]
      v[row] = values[at + V]
      n[row] = tradeCount(values[at + N])
      closed[row] = time <= closedToMs ? 1 : 0
    }
    this.#first = row
    this.#traded += traded
    return row > 0 && time >= fromMs
  }

  /** Fills the empty intervals between the bar that starts at `time` and the newer one with that bar's close. */
  #fillAfter(time: number, close: number): void {
    const { fromMs, toMs, lengthMs, watermarkMs } = this.#range
    const { t, o, h, l, c, v, n, closed } = this.#space
    const newerMs = this.#newerMs
    this.#newerMs = time
    if (newerMs === 0) return
    const last = Math.min(newerMs - lengthMs, intervalStart(toMs, lengthMs))
    for (let empty = last; empty > time && empty >= fromMs && this.#first > 0; empty -= lengthMs) {
      const row = --this.#first
      t[row] = empty
      o[row] = h[row] = l[row] = c[row] = close
      v[row] = n[row] = 0
      // A trade may still come into it, as into any other interval.
      closed[row] = empty <= watermarkMs - lengthMs ? 1 : 0
    }
  }

  get rowCount(): number {
    return this.#range.rowsMax - this.#first
  }

  /** Start of the first row; 0 without rows. */
  get firstMs(): number {
    return this.rowCount === 0 ? 0 : this.#space.t[this.#first]
  }

  /** Start of the last row; 0 without rows. */
  get lastMs(): number {
    return this.rowCount === 0 ? 0 : this.#space.t[this.#range.rowsMax - 1]
  }

  /** The rows, as views of the memory they were collected in. */
  columns(version: string): BarColumns {
    const first = this.#first
    const { rowsMax, lengthMs } = this.#range
    const { t, o, h, l, c, v, n, closed } = this.#space
    return {
      rowCount: this.rowCount,
      t: t.subarray(first, rowsMax),
      o: o.subarray(first, rowsMax),
      h: h.subarray(first, rowsMax),
      l: l.subarray(first, rowsMax),
      c: c.subarray(first, rowsMax),
      v: v.subarray(first, rowsMax),
      n: n.subarray(first, rowsMax),
      closed: closed.subarray(first, rowsMax),
      gaps: countGaps(this.firstMs, this.lastMs, lengthMs, this.rowCount, this.#traded),
      version,
    }
  }
}

export const NO_COLUMNS: BarColumns = { ...new ColumnBuffer(0), rowCount: 0, gaps: 0, version: '' }

/** Intervals without a trade, filled or not, between the first and the last row. @param traded rows with trades. */
export function countGaps(
  firstMs: number,
  lastMs: number,
  lengthMs: number,
  rowCount: number,
  traded: number,
): number {
  return rowCount === 0 ? 0 : (lastMs - firstMs) / lengthMs + 1 - traded
}
