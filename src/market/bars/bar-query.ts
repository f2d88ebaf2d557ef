// In: a token's bars and what a reader wants of them. Out: bars ascending, the forming one last, filled when asked, as
// columns or as objects, and a version that is cheap to tell. Never changes a bar.
import { assert } from '../../lib/assert.ts'
import { type Bar, TIMEFRAME_MS, TIMEFRAMES } from '../../schema/bar.ts'
import { BARS_ANSWERED_MAX, intervalStart, TIMEFRAME_LENGTHS_MS } from '../limits.ts'
import type { BarColumns, Bars, BarsQuery } from '../types.ts'
import type { BarCascade } from './bar-cascade.ts'
import * as layout from './bar-ring.ts'

/** As constants of this module: imported ones are looked up each time, which is a quarter of what reading a bar costs. */
const { BAR_STRIDE, C, H, L, N, O, T, tradesOf, V } = layout

/** The most recent bars that qualify, as objects. `watermarkMs`: a bar that ended by then is closed. */
export function readBars(store: BarCascade, slot: number, query: BarsQuery, watermarkMs: number): Bars {
  const columns = readColumns(store, slot, query, watermarkMs)
  const bars = Array.from({ length: columns.rowCount }, (_, row) => barAt(columns, row))
  return { bars, gaps: columns.gaps, version: columns.version }
}

/** One of them. */
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

/** The same as columns, of `space` where it is large enough: then they are valid until it is used again. */
export function readColumns(
  store: BarCascade,
  slot: number,
  query: BarsQuery,
  watermarkMs: number,
  space?: ColumnBuffer,
): BarColumns {
  const { limit, tf } = query
  assert(limit >= 1 && limit <= BARS_ANSWERED_MAX, 'an answer holds between one bar and the maximum')
  const { fromMs, toMs, filled } = rangeOf(query)
  const timeframe = TIMEFRAMES.indexOf(tf)
  const rowsMax = Math.min(limit, intervalsOf(store, slot, timeframe, fromMs, toMs))
  const range = { fromMs, toMs, filled, lengthMs: TIMEFRAME_MS[tf], watermarkMs, rowsMax }
  const rows = new Rows(
    range,
    space !== undefined && space.rows >= rowsMax ? space : new ColumnBuffer(rowsMax),
  )
  const open = store.foldOpen(slot, timeframe)
  const ring = store.ring(timeframe)
  if (rows.take(store.scratch, 0, open * BAR_STRIDE))
    ring.runs(slot, (first, end) => rows.take(ring.values, first, end))
  return rows.taken((firstT, lastT, rowCount) =>
    versionOf(store, slot, timeframe, watermarkMs, firstT, lastT, rowCount),
  )
}

/** No more rows than this can qualify: intervals between the first bar and the last, or the bounds. */
function intervalsOf(
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
  fromMs: number
  toMs: number
  filled: boolean
}

export const rangeOf = ({ fromMs, toMs, fill }: BarsQuery): BarRange => ({
  fromMs: fromMs ?? Number.NEGATIVE_INFINITY,
  toMs: toMs ?? Number.POSITIVE_INFINITY,
  filled: fill === 'prev',
})

/**
 * Changes whenever the rows of an answer may have. Settled bars never do, so their extent says all; of the others every
 * trade raises the count, and the passing of time the number of closed ones.
 */
export function versionOf(
  store: BarCascade,
  slot: number,
  timeframe: number,
  watermarkMs: number,
  firstT: number,
  lastT: number,
  rowCount: number,
): string {
  const ring = store.ring(timeframe)
  const newest = ring.newest(slot)
  const closedT = newest === -1 ? 0 : ring.values[newest + T]
  const extent = `${slot}.${store.generation(slot)}.${firstT}.${rowCount}`
  if (rowCount > 0 && lastT <= closedT) return `${extent}.${lastT}`
  let trades = 0
  let closed = 0
  const length = TIMEFRAME_MS[TIMEFRAMES[timeframe]]
  const open = store.foldOpen(slot, timeframe)
  for (let row = 0; row < open; row++) {
    trades += tradesOf(store.scratch[row * BAR_STRIDE + N])
    if (store.scratch[row * BAR_STRIDE + T] + length <= watermarkMs) closed++
  }
  return `${extent}.${closedT}-${trades}-${closed}`
}

/** Memory for the columns of an answer. Making it anew costs as much as reading the bars. */
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

/** Rows of an answer, put newest first. */
class Rows {
  readonly #range: RowsRange
  readonly #space: ColumnBuffer
  /** The place of the row put last. */
  #first: number
  #traded = 0
  /** Start of the bar seen last, 0 before the first. */
  #newerT = 0

  constructor(range: RowsRange, space: ColumnBuffer) {
    this.#range = range
    this.#space = space
    this.#first = range.rowsMax
  }

  /**
   * Takes what qualifies of the bars that lie side by side from `first` to before `end`, last one first.
   * @returns whether older bars are wanted.
   */
  take(values: Float64Array, first: number, end: number): boolean {
    if (!this.#range.filled) return this.#takeBars(values, first, end)
    for (let at = end - BAR_STRIDE; at >= first; at -= BAR_STRIDE) {
      this.#fillAfter(values[at + T], values[at + C])
      if (!this.#takeBars(values, at, at + BAR_STRIDE)) return false
    }
    return true
  }

  /** In one loop that calls nothing: a call for each bar costs more than the bar. */
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
      n[row] = tradesOf(values[at + N])
      closed[row] = time <= closedToMs ? 1 : 0
    }
    this.#first = row
    this.#traded += traded
    return row > 0 && time >= fromMs
  }

  /** Empty bars at the close before them, between the bar of `time` and the newer one, as far as they qualify. */
  #fillAfter(time: number, close: number): void {
    const { fromMs, toMs, lengthMs } = this.#range
    const { t, o, h, l, c, v, n, closed } = this.#space
    const newerT = this.#newerT
    this.#newerT = time
    if (newerT === 0) return
    const last = Math.min(newerT - lengthMs, intervalStart(toMs, lengthMs))
    for (let empty = last; empty > time && empty >= fromMs && this.#first > 0; empty -= lengthMs) {
      const row = --this.#first
      t[row] = empty
      o[row] = h[row] = l[row] = c[row] = close
      v[row] = n[row] = 0
      closed[row] = 1
    }
  }

  taken(version: (firstT: number, lastT: number, rowCount: number) => string): BarColumns {
    const first = this.#first
    const { rowsMax, lengthMs } = this.#range
    const { t, o, h, l, c, v, n, closed } = this.#space
    const rowCount = rowsMax - first
    const firstT = rowCount === 0 ? 0 : t[first]
    const lastT = rowCount === 0 ? 0 : t[rowsMax - 1]
    return {
      rowCount,
      t: t.subarray(first, rowsMax),
      o: o.subarray(first, rowsMax),
      h: h.subarray(first, rowsMax),
      l: l.subarray(first, rowsMax),
      c: c.subarray(first, rowsMax),
      v: v.subarray(first, rowsMax),
      n: n.subarray(first, rowsMax),
      closed: closed.subarray(first, rowsMax),
      gaps: gapsOf(firstT, lastT, lengthMs, rowCount, this.#traded),
      version: version(firstT, lastT, rowCount),
    }
  }
}

const NOTHING: RowsRange = { fromMs: 0, toMs: 0, filled: false, lengthMs: 1, watermarkMs: 0, rowsMax: 0 }

export const emptyColumns = (): BarColumns => new Rows(NOTHING, new ColumnBuffer(0)).taken(() => '')

/** Intervals without a trade, filled or not, between the first and the last row. */
export const gapsOf = (
  firstT: number,
  lastT: number,
  lengthMs: number,
  rowCount: number,
  traded: number,
): number => (rowCount === 0 ? 0 : (lastT - firstT) / lengthMs + 1 - traded)
