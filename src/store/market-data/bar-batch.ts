// Collects closed bars into batches: mints beside one array of numbers. Holds at most BARS_WAITING_MAX bars; beyond that a bar
// is dropped and counted.
import type { ClosedBar } from '../../schema/bar.ts'
import { TIMEFRAME_MS, TIMEFRAMES } from '../../schema/timeframe.ts'
import { BARS_BATCH_ROWS, BARS_WAITING_MAX } from '../limits.ts'
import { type BarCounts, noBars, sumBars } from './bar-counts.ts'

/**
 * The numbers of one bar, in the order in which a batch has them. `tf` is an index in TIMEFRAMES, `close_no` the place of the bar
 * among those of its timeframe that this run has closed, from 1.
 */
export const BAR_NUMBERS = [
  'tf',
  't',
  'o',
  'h',
  'l',
  'c',
  'v',
  'n',
  'buy_v',
  'buys',
  'closed_at',
  'watched_since',
  'complete',
  'close_no',
] as const
export const BAR_NUMBER_COUNT = BAR_NUMBERS.length

const TF = BAR_NUMBERS.indexOf('tf')
const T = BAR_NUMBERS.indexOf('t')
const LENGTHS_MS = TIMEFRAMES.map((tf) => TIMEFRAME_MS[tf])

/** Bars in order of arrival, cheap to send to another process. */
export interface BarBatch {
  mints: string[]
  /** BAR_NUMBER_COUNT numbers for each bar. */
  numbers: Float64Array
}

const newBatch = (): BarBatch => ({
  mints: [],
  numbers: new Float64Array(BARS_BATCH_ROWS * BAR_NUMBER_COUNT),
})

export class BarBuffer {
  /** Bars that were added, whether there was room or not. */
  readonly closed: BarCounts = noBars()
  /** Bars for which there was no room. */
  readonly droppedBars: BarCounts = noBars()
  /** Bars that the lake process does not have yet. */
  waiting = 0
  /** Oldest first. Bars are added to the last one. */
  #batches: BarBatch[] = []
  /** The batch that is on its way to the lake process. */
  #taken: BarBatch | null = null
  /** Batches that the lake process has, but no file: they are lost to it when it ends. */
  #sent: BarBatch[] = []
  #sentBars = 0
  /** Bars that were sent to the present lake process and are in files. */
  #confirmedBars = 0

  get dropped(): number {
    return sumBars(this.droppedBars)
  }

  add(bar: ClosedBar): void {
    const timeframe = TIMEFRAMES.indexOf(bar.tf)
    const closeNo = ++this.closed[timeframe]
    if (this.waiting + this.#sentBars >= BARS_WAITING_MAX) {
      this.droppedBars[timeframe]++
      return
    }
    let batch = this.#batches.at(-1)
    if (batch === undefined || batch.mints.length === BARS_BATCH_ROWS) {
      batch = newBatch()
      this.#batches.push(batch)
    }
    writeNumbers(batch.numbers, batch.mints.length * BAR_NUMBER_COUNT, bar, timeframe, closeNo)
    batch.mints.push(bar.mint)
    this.waiting++
  }

  /** Takes the oldest batch. Its bars count as waiting until `markSent`. */
  take(): BarBatch | null {
    const batch = this.#batches.shift()
    if (batch === undefined) return null
    this.#taken = { ...batch, numbers: batch.numbers.slice(0, batch.mints.length * BAR_NUMBER_COUNT) }
    return this.#taken
  }

  /** The earliest end of a bar that may be in no file yet, Unix ms; Infinity: all are. */
  get firstEndMs(): number {
    let firstMs = Number.POSITIVE_INFINITY
    for (const { mints, numbers } of [this.#taken ?? [], this.#sent, this.#batches].flat())
      for (let at = 0; at < mints.length * BAR_NUMBER_COUNT; at += BAR_NUMBER_COUNT)
        firstMs = Math.min(firstMs, numbers[at + T] + LENGTHS_MS[numbers[at + TF]])
    return firstMs
  }

  /** Bars that were sent to the present lake process. */
  get handedOver(): number {
    return this.#confirmedBars + this.#sentBars
  }

  /** A batch from `take` has arrived. */
  markSent(batch: BarBatch): void {
    this.#taken = null
    this.waiting -= batch.mints.length
    this.#sentBars += batch.mints.length
    if (batch.mints.length > 0) this.#sent.push(batch)
  }

  /** Puts batches back in front of the others: they did not arrive, or the process that had them ended. */
  requeue(...batches: BarBatch[]): void {
    this.#taken = null
    // Bars must not be added to a batch that was cut to its size.
    if (this.#batches.length === 0) this.#batches.push(newBatch())
    this.#batches.unshift(...batches)
  }

  /** Drops the batches whose bars are in files. @param bars how many of those sent to the present process are */
  confirm(bars: number): void {
    for (let [oldest] = this.#sent; oldest !== undefined; [oldest] = this.#sent) {
      const count = oldest.mints.length
      if (this.#confirmedBars + count > bars) return
      this.#sent.shift()
      this.#confirmedBars += count
      this.#sentBars -= count
    }
  }

  /** Puts back all batches that are in no file: the lake process that had them has ended. */
  requeueSent(): void {
    if (this.#sent.length > 0) this.requeue(...this.#sent)
    this.waiting += this.#sentBars
    this.#sent = []
    this.#sentBars = 0
    this.#confirmedBars = 0
  }
}

/** In the order of BAR_NUMBERS. Unrolled because it runs inside the market's write. */
function writeNumbers(
  numbers: Float64Array,
  at: number,
  bar: ClosedBar,
  timeframe: number,
  closeNo: number,
): void {
  numbers[at] = timeframe
  numbers[at + 1] = bar.t
  numbers[at + 2] = bar.o
  numbers[at + 3] = bar.h
  numbers[at + 4] = bar.l
  numbers[at + 5] = bar.c
  numbers[at + 6] = bar.v
  numbers[at + 7] = bar.n
  numbers[at + 8] = bar.buyV
  numbers[at + 9] = bar.buys
  numbers[at + 10] = bar.closedAtMs
  numbers[at + 11] = bar.watchedSinceMs
  numbers[at + 12] = bar.complete ? 1 : 0
  numbers[at + 13] = closeNo
}
