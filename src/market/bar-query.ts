// In: a token's bars and what a reader wants of them. Out: bars ascending, the forming one last, filled when asked, as
// columns or as objects, and a version that is cheap to tell. Never changes a bar.
import { assert } from '../lib/assert.ts'
import { type Bar, TIMEFRAME_MS, TIMEFRAMES } from '../schema/bar.ts'
import { BAR_STRIDE, C, H, L, N, O, T, tradesOf, V } from './bar-ring.ts'
import type { BarStore } from './bars.ts'
import { BARS_ANSWERED_MAX, intervalStart, TIMEFRAME_LENGTHS_MS } from './limits.ts'
import type { BarColumns, Bars, BarsQuery } from './types.ts'

/** The most recent bars that qualify, as objects. `watermarkMs`: a bar that ended by then is closed. */
export function readBars(store: BarStore, slot: number, query: BarsQuery, watermarkMs: number): Bars {
  const { rowCount, gaps, version, ...columns } = readColumns(store, slot, query, watermarkMs)
  const bars = Array.from({ length: rowCount }, (_, row) => barAt(columns, row))
  return { bars, gaps, version }
}

function barAt({ t, o, h, l, c, v, n, closed }: Omit<BarColumns, keyof Bars | 'rowCount'>, row: number): Bar {
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

/** The same as columns. */
export function readColumns(
  store: BarStore,
  slot: number,
  query: BarsQuery,
  watermarkMs: number,
): BarColumns {
  const { limit, tf } = query
  assert(limit >= 1 && limit <= BARS_ANSWERED_MAX, 'an answer holds between one bar and the maximum')
  const { fromMs, toMs, filled } = rangeOf(query)
  const length = TIMEFRAME_MS[tf]
  const timeframe = TIMEFRAMES.indexOf(tf)
  const rows = new Rows(Math.min(limit, intervalsOf(store, slot, timeframe, fromMs, toMs)))
  let newerT = 0
  store.backwards(slot, timeframe, (values, at) => {
    const t = values[at + T]
    if (filled && newerT !== 0) {
      const last = Math.min(newerT - length, intervalStart(toMs, length))
      rows.fill(last, Math.max(t + length, fromMs), length, values[at + C])
    }
    newerT = t
    if (t >= fromMs && t <= toMs) rows.put(values, at, t + length <= watermarkMs)
    return rows.hasRoom && t >= fromMs
  })
  return rows.taken(length, (firstT, lastT, rowCount) =>
    versionOf(store, slot, timeframe, watermarkMs, firstT, lastT, rowCount),
  )
}

/** No more rows than this can qualify: intervals between the first bar and the last, or the bounds. */
function intervalsOf(store: BarStore, slot: number, timeframe: number, fromMs: number, toMs: number): number {
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
  store: BarStore,
  slot: number,
  timeframe: number,
  watermarkMs: number,
  firstT: number,
  lastT: number,
  rowCount: number,
): string {
  const ring = store.ring(timeframe)
  const newest = ring.newest(slot)
  const settledT = newest === -1 ? 0 : ring.values[newest + T]
  const extent = `${slot}.${store.generation(slot)}.${firstT}.${rowCount}`
  if (rowCount > 0 && lastT <= settledT) return `${extent}.${lastT}`
  let trades = 0
  let closed = 0
  const length = TIMEFRAME_MS[TIMEFRAMES[timeframe]]
  const open = store.foldOpen(slot, timeframe)
  for (let row = 0; row < open; row++) {
    trades += tradesOf(store.scratch[row * BAR_STRIDE + N])
    if (store.scratch[row * BAR_STRIDE + T] + length <= watermarkMs) closed++
  }
  return `${extent}.${settledT}-${trades}-${closed}`
}

/** Rows of an answer, put newest first. */
class Rows {
  readonly #limit: number
  readonly #t: Float64Array
  readonly #prices: readonly Float64Array[]
  readonly #n: Int32Array
  readonly #closed: Uint8Array
  /** The place of the row put last. */
  #first: number
  #traded = 0

  constructor(limit: number) {
    const column = () => new Float64Array(limit)
    this.#limit = limit
    this.#first = limit
    this.#t = column()
    this.#prices = [column(), column(), column(), column(), column()]
    this.#n = new Int32Array(limit)
    this.#closed = new Uint8Array(limit)
  }

  get hasRoom(): boolean {
    return this.#first > 0
  }

  put(values: Float64Array, at: number, closed: boolean): void {
    if (!this.hasRoom) return
    const row = --this.#first
    const [o, h, l, c, v] = this.#prices
    this.#t[row] = values[at + T]
    o[row] = values[at + O]
    h[row] = values[at + H]
    l[row] = values[at + L]
    c[row] = values[at + C]
    v[row] = values[at + V]
    this.#n[row] = tradesOf(values[at + N])
    this.#closed[row] = closed ? 1 : 0
    this.#traded++
  }

  /** Empty bars at the close before them, from `lastT` down to no earlier than `fromMs`. */
  fill(lastT: number, fromMs: number, lengthMs: number, close: number): void {
    for (let t = lastT; t >= fromMs && this.hasRoom; t -= lengthMs) {
      const row = --this.#first
      this.#t[row] = t
      for (let price = 0; price < 4; price++) this.#prices[price][row] = close
      this.#closed[row] = 1
    }
  }

  taken(lengthMs: number, version: (firstT: number, lastT: number, rowCount: number) => string): BarColumns {
    const first = this.#first
    const rowCount = this.#limit - first
    const [o, h, l, c, v] = this.#prices.map((column) => column.subarray(first))
    const t = this.#t.subarray(first)
    const lastT = rowCount === 0 ? 0 : t[rowCount - 1]
    const firstT = rowCount === 0 ? 0 : t[0]
    return {
      rowCount,
      t,
      o,
      h,
      l,
      c,
      v,
      n: this.#n.subarray(first),
      closed: this.#closed.subarray(first),
      gaps: gapsOf(firstT, lastT, lengthMs, rowCount, this.#traded),
      version: version(firstT, lastT, rowCount),
    }
  }
}

export const emptyColumns = (): BarColumns => new Rows(0).taken(1, () => '')

/** Intervals without a trade, filled or not, between the first and the last row. */
export const gapsOf = (
  firstT: number,
  lastT: number,
  lengthMs: number,
  rowCount: number,
  traded: number,
): number => (rowCount === 0 ? 0 : (lastT - firstT) / lengthMs + 1 - traded)
