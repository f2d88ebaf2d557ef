// Sums over the sliding windows 1m, 1h, 6h and 24h, and the changes of price across them. A window consists of whole bars of its
// resolution, and covers between (length - resolution) and length.
//
// No sum drifts: it is computed again from the bars whenever its window has moved. Only writes store a sum, since sums of doubles
// depend on their order, and what is served must not depend on earlier reads.
import { keysOf, recordFrom } from '../../lib/record.ts'
import {
  numbersSection,
  type Saved,
  type Section,
  type SectionReader,
  wrongLength,
} from '../../lib/sections/sections.ts'
import { intervalStart } from '../../lib/time.ts'
import { TIMEFRAMES } from '../../schema/bar.ts'
import type { DataPoint } from '../../schema/datapoint.ts'
import { TIMEFRAME_LENGTHS_MS } from '../../schema/timeframe.ts'
import { numberOrNull } from '../tokens/figure.ts'
import { type Columns, rowIndex } from '../tokens/token-table.ts'
import type { BarCascade } from './bar-cascade.ts'
import { buyCount, COUNT_UNIT, tradeCount } from './bar-ring.ts'
import { LIST_WINDOWS, type ListWindowName, type WindowName } from './limits.ts'
import { UnpricedCounts } from './unpriced-counts.ts'

export const WINDOW_FIELDS = [
  'volume1m',
  'volume1h',
  'volume6h',
  'volume24h',
  'buys24h',
  'sells24h',
  'tradeRate1m',
  'buySellImbalance1m',
  'priceChange1h',
  'priceChange6h',
  'priceChange24h',
] as const satisfies readonly (keyof DataPoint)[]
export type WindowField = (typeof WINDOW_FIELDS)[number]
export type WindowFigures = Pick<DataPoint, WindowField>

/** The sums of the 24-hour window, NaN for unknown. */
export type DayFigures = Record<'volume24h' | 'buys24h' | 'sells24h', number>
const DAY_FIELDS = ['volume24h', 'buys24h', 'sells24h'] as const satisfies readonly (keyof DayFigures)[]

/** Sums that a patch may set. Later trades are added to the patched value until the window has moved past the patch; other
 *  figures keep a patched value until the next trade. */
const CARRIED: Partial<Record<WindowField, { window: WindowName; of: 'volume' | 'buys' | 'sells' }>> = {
  volume1m: { window: '1m', of: 'volume' },
  volume1h: { window: '1h', of: 'volume' },
  volume6h: { window: '6h', of: 'volume' },
  volume24h: { window: '24h', of: 'volume' },
  buys24h: { window: '24h', of: 'buys' },
  sells24h: { window: '24h', of: 'sells' },
}

/** Figures that a trade without a price changes, too. */
const COUNTS: ReadonlySet<WindowField> = new Set<WindowField>(['buys24h', 'sells24h', 'tradeRate1m'])

interface Patched {
  value: number | null
  /** From this time on the figure is computed from the trades again. */
  untilMs: number
  /** At the patch: the lifetime sum of a carried figure, the lifetime count of trades for any other. */
  lifetimeAt: number
}

/** A window by its length, and the timeframe whose bars it consists of. */
interface Window {
  lengthMs: number
  /** Index of the timeframe. */
  timeframe: number
  resolutionMs: number
}

const windowByName = recordFrom(keysOf(LIST_WINDOWS), (name): Window => {
  const { lengthMs, timeframe } = LIST_WINDOWS[name]
  const index = TIMEFRAMES.indexOf(timeframe)
  return { lengthMs, timeframe: index, resolutionMs: TIMEFRAME_LENGTHS_MS[index] }
})
const DAY = windowByName['24h']
const MINUTE = windowByName['1m']

/** Start of the oldest bar that a window holds at `nowMs`. */
const windowStartMs = ({ lengthMs, resolutionMs }: Window, nowMs: number): number =>
  intervalStart(nowMs, resolutionMs) - lengthMs + resolutionMs

/** Start of the oldest bar that a window holds at `nowMs`: until this moves, its figures change by events alone. */
export const windowFromMs = (name: ListWindowName, nowMs: number): number =>
  windowStartMs(windowByName[name], nowMs)

/** When a window no longer holds `atMs`. As all of a window, this changes only when the window moves. */
const windowPassesMs = ({ lengthMs, resolutionMs }: Window, atMs: number): number =>
  intervalStart(atMs, resolutionMs) + lengthMs

/** Start of the 24-hour window's oldest bar at `nowMs`: until this moves, its sums change by trades alone. */
export const dayFromMs = (nowMs: number): number => windowStartMs(DAY, nowMs)

/** When the 24-hour window moved last. Patches of its sums end then, too. */
export const dayMovedAtMs = (nowMs: number): number => intervalStart(nowMs, DAY.resolutionMs)

/** Timeframe of the bars that a window consists of, by its index. */
export const timeframeOf = (name: ListWindowName): number => windowByName[name].timeframe

/** Numbers of a saved patched figure: slot, index in WINDOW_FIELDS, value (NaN for unknown), end, lifetime sum. */
const SAVED_STRIDE = 5

export class Windows implements Saved {
  readonly #bars: BarCascade
  // Columns of tokens/token-table.ts.
  readonly #dayFromMs: Float64Array
  readonly #dayVolume: Float64Array
  readonly #dayCounts: Float64Array
  readonly #lifetimeVolume: Float64Array
  readonly #lifetimeCounts: Float64Array
  /** By slot. */
  readonly #patched = new Map<number, Partial<Record<WindowField, Patched>>>()
  // A window's figures are unknown until it has passed these times, and those bars of its own timeframe that the token has lost.
  /** By slot: volumes of trades before this time may be missing from all bars, as one had no price. */
  readonly #volumesFromMs = new Map<number, number>()
  /** By slot: trades before this time may be missing from all bars, and are not counted elsewhere. */
  readonly #countsFromMs = new Map<number, number>()
  readonly #unpriced = new UnpricedCounts()
  readonly #day: DayFigures = { volume24h: Number.NaN, buys24h: Number.NaN, sells24h: Number.NaN }

  constructor(bars: BarCascade, columns: Columns) {
    this.#bars = bars
    this.#dayFromMs = columns.dayFromMs
    this.#dayVolume = columns.dayVolume
    this.#dayCounts = columns.dayCounts
    this.#lifetimeVolume = columns.lifetimeVolume
    this.#lifetimeCounts = columns.lifetimeCounts
  }

  /** Counts a trade that is in the bars already. */
  add(slot: number, tsMs: number, volume: number, isBuy: boolean, nowMs: number): void {
    const counts = countsOf(isBuy)
    const row = rowIndex(slot)
    this.#lifetimeVolume[row] += volume
    this.#lifetimeCounts[row] += counts
    if (!this.isDayOf(slot, nowMs)) {
      this.moveTo(slot, nowMs)
    } else if (tsMs >= this.#dayFromMs[row]) {
      this.#dayVolume[row] += volume
      this.#dayCounts[row] += counts
    }
  }

  /** Counts a trade that has no price, and thus no bar: no volume of a window that contains it is known. */
  addUnpriced(slot: number, tsMs: number, isBuy: boolean, nowMs: number): void {
    this.#unpriced.add(slot, tsMs, countsOf(isBuy), nowMs)
    raise(this.#volumesFromMs, slot, tsMs + 1)
  }

  /** Whether the stored sums are those of the 24-hour window of `nowMs`. */
  isDayOf(slot: number, nowMs: number): boolean {
    return this.#dayFromMs[rowIndex(slot)] === dayFromMs(nowMs)
  }

  /** Moves the stored sums to the 24-hour window of `nowMs`. Only writes may call this. */
  moveTo(slot: number, nowMs: number): void {
    const from = dayFromMs(nowMs)
    const { volume, counts } = this.#bars.sum(slot, DAY.timeframe, from)
    const row = rowIndex(slot)
    this.#dayFromMs[row] = from
    this.#dayVolume[row] = volume
    this.#dayCounts[row] = counts
  }

  /** The sums of the 24-hour window as of `nowMs`, which is no earlier than the token's last change. The object is reused. */
  day(slot: number, nowMs: number): DayFigures {
    const row = rowIndex(slot)
    const from = dayFromMs(nowMs)
    let volume = this.#dayVolume[row]
    let counts = this.#dayCounts[row]
    if (this.#dayFromMs[row] !== from) ({ volume, counts } = this.#bars.sum(slot, DAY.timeframe, from))
    if (!this.#unpriced.isEmpty) counts += this.#unpriced.since(slot, '24h', from)
    const figures = this.#day
    const buys = buyCount(counts)
    const areCountsKnown = this.#isKnown(this.#countsFromMs, slot, DAY, from)
    figures.volume24h = this.#isKnown(this.#volumesFromMs, slot, DAY, from) ? volume : Number.NaN
    figures.buys24h = areCountsKnown ? buys : Number.NaN
    figures.sells24h = areCountsKnown ? tradeCount(counts) - buys : Number.NaN
    if (this.#patched.has(slot)) {
      for (const field of DAY_FIELDS) {
        const patched = this.#patchedValue(slot, field, nowMs)
        if (patched !== undefined) figures[field] = patched ?? Number.NaN
      }
    }
    return figures
  }

  /** USD paid and received by the trades in the bars of the 24-hour window as of `nowMs`. Patches do not show in them. */
  dayVolumes(slot: number, nowMs: number): { buy: number; sell: number } {
    const { volume, buyVolume } = this.#bars.sum(slot, DAY.timeframe, dayFromMs(nowMs))
    return { buy: buyVolume, sell: Math.max(0, volume - buyVolume) }
  }

  /** Whether the 24-hour window has the volumes of all trades since `fromMs`: each had a price, and no bar was lost. */
  hasDayVolumes(slot: number, fromMs: number): boolean {
    return this.#isKnown(this.#volumesFromMs, slot, DAY, fromMs)
  }

  /** Every windowed figure of a DataPoint. `priceUsd` is the token's price, NaN when unknown. */
  figures(slot: number, priceUsd: number, nowMs: number): WindowFigures {
    const day = this.day(slot, nowMs)
    const minuteFromMs = windowStartMs(MINUTE, nowMs)
    const minute = this.#bars.sum(slot, MINUTE.timeframe, minuteFromMs)
    const volume1m = this.#isKnown(this.#volumesFromMs, slot, MINUTE, minuteFromMs)
      ? minute.volume
      : Number.NaN
    const counts1m = minute.counts + this.#unpriced.since(slot, '1m', minuteFromMs)
    const trades1m = this.#isKnown(this.#countsFromMs, slot, MINUTE, minuteFromMs)
      ? tradeCount(counts1m)
      : null
    const imbalance = volume1m > 0 ? clamp((2 * minute.buyVolume - volume1m) / volume1m) : null
    return {
      priceChange1h: this.#unlessPatched(slot, 'priceChange1h', this.#change(slot, '1h', priceUsd, nowMs)),
      priceChange6h: this.#unlessPatched(slot, 'priceChange6h', this.#change(slot, '6h', priceUsd, nowMs)),
      priceChange24h: this.#unlessPatched(slot, 'priceChange24h', this.#change(slot, '24h', priceUsd, nowMs)),
      volume1m: this.#carried(slot, 'volume1m', volume1m, nowMs),
      volume1h: this.#carried(slot, 'volume1h', this.#volume(slot, '1h', nowMs), nowMs),
      volume6h: this.#carried(slot, 'volume6h', this.#volume(slot, '6h', nowMs), nowMs),
      volume24h: numberOrNull(day.volume24h),
      buys24h: numberOrNull(day.buys24h),
      sells24h: numberOrNull(day.sells24h),
      tradeRate1m: this.#unlessPatched(slot, 'tradeRate1m', trades1m),
      buySellImbalance1m: this.#unlessPatched(slot, 'buySellImbalance1m', imbalance),
    }
  }

  /** The volume of the last hour; NaN for unknown. */
  hourVolume(slot: number, nowMs: number): number {
    return this.#carried(slot, 'volume1h', this.#volume(slot, '1h', nowMs), nowMs) ?? Number.NaN
  }

  /** The change of price across a window, percent; NaN for unknown. */
  change(slot: number, name: '5m' | '1h' | '6h' | '24h', priceUsd: number, nowMs: number): number {
    const change = this.#change(slot, name, priceUsd, nowMs)
    return (name === '5m' ? change : this.#unlessPatched(slot, `priceChange${name}`, change)) ?? Number.NaN
  }

  /** Whether a patch has set windowed figures of the token. */
  isPatched(slot: number): boolean {
    return this.#patched.has(slot)
  }

  /** Sets a windowed figure to a patched value; null means unknown. */
  patch(slot: number, field: WindowField, value: number | null, nowMs: number): void {
    let patched = this.#patched.get(slot)
    if (patched === undefined) {
      patched = {}
      this.#patched.set(slot, patched)
    }
    const carried = value === null ? undefined : CARRIED[field]
    patched[field] = {
      value,
      untilMs:
        carried === undefined
          ? Number.POSITIVE_INFINITY
          : windowPassesMs(windowByName[carried.window], nowMs),
      lifetimeAt: carried === undefined ? this.#tradesBehind(slot, field) : this.#lifetime(slot, carried.of),
    }
  }

  /** Market time has gone back: what was patched later was patched now. */
  rewindTo(timeMs: number): void {
    for (const fromMs of [this.#volumesFromMs, this.#countsFromMs])
      for (const [slot, atMs] of fromMs) fromMs.set(slot, Math.min(atMs, timeMs + 1))
    for (const slot of this.#unpriced.rewindTo(timeMs)) raise(this.#countsFromMs, slot, timeMs + 1)
    for (const fields of this.#patched.values())
      for (const field of WINDOW_FIELDS) {
        const [patched, carried] = [fields[field], CARRIED[field]]
        if (patched === undefined || carried === undefined || patched.untilMs === Number.POSITIVE_INFINITY)
          continue
        patched.untilMs = Math.min(patched.untilMs, windowPassesMs(windowByName[carried.window], timeMs))
      }
  }

  /** Forgets what is known of a token besides its bars. Its stored sums are columns, which begin at zero with the next token. */
  clear(slot: number): void {
    this.#patched.delete(slot)
    this.#volumesFromMs.delete(slot)
    this.#countsFromMs.delete(slot)
    this.#unpriced.clear(slot)
  }

  *save(): Iterable<Section> {
    const numbers: number[] = []
    for (const [slot, fields] of this.#patched)
      for (const [index, field] of WINDOW_FIELDS.entries()) {
        const patched = fields[field]
        if (patched !== undefined)
          numbers.push(slot, index, patched.value ?? Number.NaN, patched.untilMs, patched.lifetimeAt)
      }
    yield numbersSection('windows.patched', Float64Array.from(numbers))
    yield numbersSection('windows.volumeFrom', Float64Array.from([...this.#volumesFromMs].flat()))
    yield numbersSection('windows.countsFrom', Float64Array.from([...this.#countsFromMs].flat()))
    yield* this.#unpriced.save()
  }

  restore(sections: SectionReader): void {
    const numbers = sections.float64('windows.patched')
    if (numbers.length % SAVED_STRIDE !== 0) throw wrongLength('windows.patched')
    for (let at = 0; at < numbers.length; at += SAVED_STRIDE) {
      const [slot, index, value, untilMs, lifetimeAt] = numbers.subarray(at, at + SAVED_STRIDE)
      const field = WINDOW_FIELDS[index]
      const fields = this.#patched.get(slot) ?? {}
      fields[field] = { value: Number.isNaN(value) ? null : value, untilMs, lifetimeAt }
      this.#patched.set(slot, fields)
    }
    if (!sections.has('windows.volumeFrom')) return
    restoreTimes(this.#volumesFromMs, sections, 'windows.volumeFrom')
    // In a checkpoint without it trades that have no price were not counted: counts are known where volumes are.
    const counts = sections.has('windows.countsFrom') ? 'windows.countsFrom' : 'windows.volumeFrom'
    restoreTimes(this.#countsFromMs, sections, counts)
    this.#unpriced.restore(sections)
  }

  /** NaN for unknown. */
  #volume(slot: number, name: WindowName, nowMs: number): number {
    const window = windowByName[name]
    const fromMs = windowStartMs(window, nowMs)
    return this.#isKnown(this.#volumesFromMs, slot, window, fromMs)
      ? this.#bars.sum(slot, window.timeframe, fromMs).volume
      : Number.NaN
  }

  /** Whether nothing may be missing since `fromMs` of a window's bars, and of what is known from the time of each slot on. */
  #isKnown(
    knownFromMs: ReadonlyMap<number, number>,
    slot: number,
    { timeframe, resolutionMs }: Window,
    fromMs: number,
  ): boolean {
    if (fromMs < this.#bars.ring(timeframe).lostMs(slot) + resolutionMs) return false
    return knownFromMs.size === 0 || fromMs >= (knownFromMs.get(slot) ?? 0)
  }

  #change(slot: number, name: ListWindowName, priceUsd: number, nowMs: number): number | null {
    const window = windowByName[name]
    const then = this.#bars.closeBefore(slot, window.timeframe, windowStartMs(window, nowMs))
    return then === null ? null : numberOrNull((100 * (priceUsd - then)) / then)
  }

  #lifetime(slot: number, of: 'volume' | 'buys' | 'sells'): number {
    if (of === 'volume') return this.#lifetimeVolume[rowIndex(slot)]
    const counts = this.#lifetimeCounts[rowIndex(slot)] + this.#unpriced.lifetime(slot)
    return of === 'buys' ? buyCount(counts) : tradeCount(counts) - buyCount(counts)
  }

  /** Counts of all trades so far that may have changed a figure: one without a price changes no volume, and no change of price. */
  #tradesBehind(slot: number, field: WindowField): number {
    return this.#lifetimeCounts[rowIndex(slot)] + (COUNTS.has(field) ? this.#unpriced.lifetime(slot) : 0)
  }

  /** The patched value of a figure as of now; undefined when it is computed from the trades. */
  #patchedValue(slot: number, field: WindowField, nowMs: number): number | null | undefined {
    const patched = this.#patched.get(slot)?.[field]
    if (patched === undefined) return undefined
    const carried = CARRIED[field]
    if (patched.value === null || carried === undefined) {
      return patched.lifetimeAt === this.#tradesBehind(slot, field) ? patched.value : undefined
    }
    // The difference first: a small value that is added to a large sum loses its digits.
    return nowMs < patched.untilMs
      ? patched.value + (this.#lifetime(slot, carried.of) - patched.lifetimeAt)
      : undefined
  }

  #carried(slot: number, field: WindowField, value: number, nowMs: number): number | null {
    const patched = this.#patchedValue(slot, field, nowMs)
    const figure = patched === undefined ? value : patched
    return figure === null ? null : numberOrNull(figure)
  }

  #unlessPatched(slot: number, field: WindowField, value: number | null): number | null {
    const patched = this.#patchedValue(slot, field, 0)
    return patched === undefined ? value : patched
  }
}

const countsOf = (isBuy: boolean): number => (isBuy ? COUNT_UNIT + 1 : COUNT_UNIT)

/** What was known of a slot is known from `fromMs` on at the earliest. */
function raise(knownFromMs: Map<number, number>, slot: number, fromMs: number): void {
  knownFromMs.set(slot, Math.max(fromMs, knownFromMs.get(slot) ?? 0))
}

function restoreTimes(times: Map<number, number>, sections: SectionReader, name: string): void {
  const saved = sections.float64(name)
  for (let at = 0; at < saved.length; at += 2) times.set(saved[at], saved[at + 1])
}

const clamp = (ratio: number): number => Math.min(1, Math.max(-1, ratio))
