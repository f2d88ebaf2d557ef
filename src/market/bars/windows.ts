// In: trades already in the bars, and patches of windowed figures. Out: sums over the sliding windows 1m, 1h, 6h, 24h
// and the changes of price across them. A window is the newest bars of its resolution that reach back at most its
// length: what it shows covers between (length - resolution) and length. Never keeps a sum that could drift: a sum is
// taken anew from the bars whenever the window has moved. Reads keep nothing: a sum is stored by writes alone, as sums of
// doubles depend on their order, and what is served must not depend on who has read before.

import { TIMEFRAMES } from '../../schema/bar.ts'
import { bounded } from '../../schema/bounds.ts'
import type { DataPoint } from '../../schema/datapoint.ts'
import { intervalStart, TIMEFRAME_LENGTHS_MS, WINDOWS, type WindowName } from '../limits.ts'
import { type Columns, rowOf } from '../tokens/token-table.ts'
import type { BarCascade } from './bar-cascade.ts'
import { buysOf, COUNT_UNIT, tradesOf } from './bar-ring.ts'

export type WindowField =
  | 'volume1m'
  | 'volume1h'
  | 'volume6h'
  | 'volume24h'
  | 'buys24h'
  | 'sells24h'
  | 'tradeRate1m'
  | 'buySellImbalance1m'
  | 'priceChange1h'
  | 'priceChange6h'
  | 'priceChange24h'
export type WindowFigures = Pick<DataPoint, WindowField>

/** The figures of the 24-hour window, NaN for unknown. */
export type DayFigures = Record<'volume24h' | 'buys24h' | 'sells24h', number>
const DAY_FIELDS = ['volume24h', 'buys24h', 'sells24h'] as const satisfies readonly (keyof DayFigures)[]

/** Sums that a patch may set: later trades are added to it until the window has passed over the patch. */
const CARRIED: Partial<Record<WindowField, { window: WindowName; of: 'volume' | 'buys' | 'sells' }>> = {
  volume1m: { window: '1m', of: 'volume' },
  volume1h: { window: '1h', of: 'volume' },
  volume6h: { window: '6h', of: 'volume' },
  volume24h: { window: '24h', of: 'volume' },
  buys24h: { window: '24h', of: 'buys' },
  sells24h: { window: '24h', of: 'sells' },
}

interface Patched {
  value: number | null
  /** The figure falls back to the trades from here on. */
  untilMs: number
  /** Lifetime sum at the patch, for a carried figure; the lifetime count of trades for any other. */
  lifetimeAt: number
}

const windowOf = (name: WindowName) => {
  const { lengthMs, timeframe } = WINDOWS[name]
  const index = TIMEFRAMES.indexOf(timeframe)
  return { lengthMs, index, resolutionMs: TIMEFRAME_LENGTHS_MS[index] }
}
const DAY = windowOf('24h')
const MINUTE = windowOf('1m')

/** Start of the oldest bar that a window holds at `nowMs`. */
function windowFrom(
  { lengthMs, resolutionMs }: { lengthMs: number; resolutionMs: number },
  nowMs: number,
): number {
  return intervalStart(nowMs, resolutionMs) - lengthMs + resolutionMs
}

/** When a window has passed over `atMs`: as everything in a window, only when the window moves. */
const passesAt = (
  { lengthMs, resolutionMs }: { lengthMs: number; resolutionMs: number },
  atMs: number,
): number => intervalStart(atMs, resolutionMs) + lengthMs

/** The 24-hour window's oldest bar at `nowMs`: until this moves, its sums change by trades alone. */
export const dayFrom = (nowMs: number): number => windowFrom(DAY, nowMs)

export class Windows {
  #bars: BarCascade
  /** Columns of the tokens: see token-table.ts. */
  readonly #dayFrom: Float64Array
  readonly #dayVolume: Float64Array
  readonly #dayCounts: Float64Array
  readonly #lifetimeVolume: Float64Array
  readonly #lifetimeCounts: Float64Array
  #patched = new Map<number, Partial<Record<WindowField, Patched>>>()
  readonly #day: DayFigures = { volume24h: Number.NaN, buys24h: Number.NaN, sells24h: Number.NaN }

  constructor(bars: BarCascade, columns: Columns) {
    this.#bars = bars
    this.#dayFrom = columns.dayFrom
    this.#dayVolume = columns.dayVolume
    this.#dayCounts = columns.dayCounts
    this.#lifetimeVolume = columns.lifetimeVolume
    this.#lifetimeCounts = columns.lifetimeCounts
  }

  /** Counts a trade that is in the bars already. */
  add(slot: number, tsMs: number, volume: number, isBuy: boolean, nowMs: number): void {
    const counts = isBuy ? COUNT_UNIT + 1 : COUNT_UNIT
    const row = rowOf(slot)
    this.#lifetimeVolume[row] += volume
    this.#lifetimeCounts[row] += counts
    if (this.#dayFrom[row] !== dayFrom(nowMs)) {
      this.#refreshDay(slot, nowMs)
    } else if (tsMs >= this.#dayFrom[row]) {
      this.#dayVolume[row] += volume
      this.#dayCounts[row] += counts
    }
  }

  /** Moves the stored sums of the 24-hour window to where it stands at `nowMs`: only as part of a write. */
  moveTo(slot: number, nowMs: number): void {
    if (this.#dayFrom[rowOf(slot)] !== dayFrom(nowMs)) this.#refreshDay(slot, nowMs)
  }

  /** The figures of the 24-hour window as of `nowMs`. The object is reused. */
  day(slot: number, nowMs: number): DayFigures {
    const row = rowOf(slot)
    const from = dayFrom(nowMs)
    let volume = this.#dayVolume[row]
    let counts = this.#dayCounts[row]
    if (this.#dayFrom[row] !== from) ({ volume, counts } = this.#bars.sum(slot, DAY.index, from))
    const figures = this.#day
    const buys = buysOf(counts)
    figures.volume24h = volume
    figures.buys24h = buys
    figures.sells24h = tradesOf(counts) - buys
    if (this.#patched.has(slot)) {
      for (const field of DAY_FIELDS) {
        const patched = this.#patchedValue(slot, field, nowMs)
        if (patched !== undefined) figures[field] = patched ?? Number.NaN
      }
    }
    return figures
  }

  /** The 24-hour window that the sums of `slot` stand for; NaN when a patch rules any of them. */
  windowFromMs(slot: number, nowMs: number): number {
    const patched = this.#patched.get(slot)
    if (patched !== undefined) {
      for (const field of DAY_FIELDS) {
        if (this.#patchedValue(slot, field, nowMs) !== undefined) return Number.NaN
      }
    }
    return dayFrom(nowMs)
  }

  /** What lies between two positions of the 24-hour window: what must be added to the sums of the later to get those
   *  of the earlier. */
  between(slot: number, fromMs: number, beforeMs: number): { volume: number; buys: number; sells: number } {
    const { volume, counts } = this.#bars.sum(slot, DAY.index, fromMs, beforeMs)
    return { volume, buys: buysOf(counts), sells: tradesOf(counts) - buysOf(counts) }
  }

  /** Every windowed figure of a DataPoint. `priceUsd` is the token's price, NaN when unknown. */
  figures(slot: number, priceUsd: number, nowMs: number): WindowFigures {
    const day = this.day(slot, nowMs)
    const minute = this.#bars.sum(slot, MINUTE.index, windowFrom(MINUTE, nowMs))
    const volume1m = minute.volume
    const trades1m = tradesOf(minute.counts)
    const imbalance = volume1m > 0 ? clamp((2 * minute.buyVolume - volume1m) / volume1m) : null
    return {
      priceChange1h: this.#held(slot, 'priceChange1h', this.#change(slot, '1h', priceUsd, nowMs)),
      priceChange6h: this.#held(slot, 'priceChange6h', this.#change(slot, '6h', priceUsd, nowMs)),
      priceChange24h: this.#held(slot, 'priceChange24h', this.#change(slot, '24h', priceUsd, nowMs)),
      volume1m: this.#carried(slot, 'volume1m', volume1m, nowMs),
      volume1h: this.#carried(slot, 'volume1h', this.#volume(slot, '1h', nowMs), nowMs),
      volume6h: this.#carried(slot, 'volume6h', this.#volume(slot, '6h', nowMs), nowMs),
      volume24h: known(day.volume24h),
      buys24h: known(day.buys24h),
      sells24h: known(day.sells24h),
      tradeRate1m: this.#held(slot, 'tradeRate1m', trades1m),
      buySellImbalance1m: this.#held(slot, 'buySellImbalance1m', imbalance),
    }
  }

  /** A patch sets a windowed figure. */
  patch(slot: number, field: WindowField, value: number | null, nowMs: number): void {
    let patched = this.#patched.get(slot)
    if (patched === undefined) {
      patched = {}
      this.#patched.set(slot, patched)
    }
    const carried = value === null ? undefined : CARRIED[field]
    patched[field] = {
      value,
      untilMs: carried === undefined ? Number.POSITIVE_INFINITY : passesAt(windowOf(carried.window), nowMs),
      lifetimeAt:
        carried === undefined ? this.#lifetimeCounts[rowOf(slot)] : this.#lifetime(slot, carried.of),
    }
  }

  /** The sums of a slot begin anew with the token that takes it. */
  clear(slot: number): void {
    this.#patched.delete(slot)
  }

  #refreshDay(slot: number, nowMs: number): void {
    const from = dayFrom(nowMs)
    const { volume, counts } = this.#bars.sum(slot, DAY.index, from)
    const row = rowOf(slot)
    this.#dayFrom[row] = from
    this.#dayVolume[row] = volume
    this.#dayCounts[row] = counts
  }

  #volume(slot: number, name: WindowName, nowMs: number): number {
    const window = windowOf(name)
    return this.#bars.sum(slot, window.index, windowFrom(window, nowMs)).volume
  }

  #change(slot: number, name: WindowName, priceUsd: number, nowMs: number): number | null {
    const window = windowOf(name)
    const then = this.#bars.closeBefore(slot, window.index, windowFrom(window, nowMs))
    return then === null ? null : known((100 * (priceUsd - then)) / then)
  }

  #lifetime(slot: number, of: 'volume' | 'buys' | 'sells'): number {
    if (of === 'volume') return this.#lifetimeVolume[rowOf(slot)]
    const counts = this.#lifetimeCounts[rowOf(slot)]
    return of === 'buys' ? buysOf(counts) : tradesOf(counts) - buysOf(counts)
  }

  /** The patched value of a figure as of now; undefined when the trades rule. */
  #patchedValue(slot: number, field: WindowField, nowMs: number): number | null | undefined {
    const patched = this.#patched.get(slot)?.[field]
    if (patched === undefined) return undefined
    const carried = CARRIED[field]
    if (patched.value === null || carried === undefined) {
      return patched.lifetimeAt === this.#lifetimeCounts[rowOf(slot)] ? patched.value : undefined
    }
    return nowMs < patched.untilMs
      ? patched.value + this.#lifetime(slot, carried.of) - patched.lifetimeAt
      : undefined
  }

  #carried(slot: number, field: WindowField, value: number, nowMs: number): number | null {
    const patched = this.#patchedValue(slot, field, nowMs)
    const figure = patched === undefined ? value : patched
    return figure === null ? null : known(figure)
  }

  #held(slot: number, field: WindowField, value: number | null): number | null {
    const patched = this.#patchedValue(slot, field, 0)
    return patched === undefined ? value : patched
  }
}

/** NaN stands for unknown; a figure beyond the bounds is unknown too. */
const known = (value: number): number | null => {
  const figure = bounded(value)
  return Number.isNaN(figure) ? null : figure
}
const clamp = (ratio: number): number => Math.min(1, Math.max(-1, ratio))
