// In: closed bars, one by one. Out: batches of them as columns-to-be: mints beside one array of numbers, cheap to hand to
// another process. Holds at most BARS_WAITING_MAX bars: beyond that a bar is dropped and counted. Never waits.
import { TIMEFRAMES, type Timeframe } from '../../schema/timeframe.ts'
import { BARS_BATCH_ROWS, BARS_WAITING_MAX } from '../limits.ts'

/** The numbers of one bar, in the order in which they lie in a batch. `tf` is the timeframe's place among TIMEFRAMES. */
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
] as const
export const BAR_NUMBER_COUNT = BAR_NUMBERS.length

/** A closed bar as the market tells it; times are Unix ms. */
export interface ClosedBar {
  mint: string
  tf: Timeframe
  t: number
  o: number
  h: number
  l: number
  c: number
  v: number
  n: number
  buyV: number
  buys: number
  /** Market time at which it was known to be closed. */
  closedAtMs: number
  /** Market time since which this run has watched: a bar that starts before it may lack trades. */
  watchedSinceMs: number
}

/** Bars on their way to the lake, in order. */
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
  /** Bars that found no room. */
  dropped = 0
  /** Bars that the lake process does not have yet. */
  waiting = 0
  /** Oldest first; only the last one has room. */
  #batches: BarBatch[] = []
  /** What the lake process has and no file does: one that ends loses it. */
  #sent: BarBatch[] = []
  #sentBars = 0
  /** Bars that were sent to this process and are in a file by now. */
  #confirmedBars = 0

  add(bar: ClosedBar): void {
    if (this.waiting + this.#sentBars >= BARS_WAITING_MAX) {
      this.dropped++
      return
    }
    let batch = this.#batches.at(-1)
    if (batch === undefined || batch.mints.length === BARS_BATCH_ROWS) {
      batch = newBatch()
      this.#batches.push(batch)
    }
    write(batch.numbers, batch.mints.length * BAR_NUMBER_COUNT, bar)
    batch.mints.push(bar.mint)
    this.waiting++
  }

  /** The oldest bars; they still count as waiting until `sent`. */
  take(): BarBatch | null {
    const batch = this.#batches.shift()
    if (batch === undefined) return null
    return { ...batch, numbers: batch.numbers.slice(0, batch.mints.length * BAR_NUMBER_COUNT) }
  }

  /** Bars that the lake process has, or had. */
  get handedOver(): number {
    return this.#confirmedBars + this.#sentBars
  }

  /** A batch that was taken has arrived. */
  sent(batch: BarBatch): void {
    this.waiting -= batch.mints.length
    this.#sentBars += batch.mints.length
    if (batch.mints.length > 0) this.#sent.push(batch)
  }

  /** Batches that were taken did not arrive, or are gone: they come first again, and get no more bars. */
  giveBack(...batches: BarBatch[]): void {
    if (this.#batches.length === 0) this.#batches.push(newBatch())
    this.#batches.unshift(...batches)
  }

  /** So many of the bars sent are in a file. */
  confirm(bars: number): void {
    while (this.#sent.length > 0 && this.#confirmedBars + this.#sent[0].mints.length <= bars) {
      const count = this.#sent.shift()!.mints.length
      this.#confirmedBars += count
      this.#sentBars -= count
    }
  }

  /** The process that had them has ended. */
  sendAgain(): void {
    if (this.#sent.length > 0) this.giveBack(...this.#sent)
    this.waiting += this.#sentBars
    this.#sent = []
    this.#sentBars = 0
    this.#confirmedBars = 0
  }
}

/** In the order of BAR_NUMBERS. Written out: this runs inside the market's write. */
function write(numbers: Float64Array, at: number, bar: ClosedBar): void {
  numbers[at] = TIMEFRAMES.indexOf(bar.tf)
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
}
