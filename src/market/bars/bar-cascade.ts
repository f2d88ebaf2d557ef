// In: priced trades, token by token. Out: OHLC bars of nine timeframes, and sums over them.
// A cascade: a trade touches one bar of one second; when time has passed it by, that bar is folded into the next
// timeframe, and so on upwards. Readers fold what is still open. Never knows a mint, a clock or a price's origin.
import { TIMEFRAMES } from '../../schema/bar.ts'
import {
  BARS_PER_TOKEN_MAX_DEFAULT,
  CHUNK_BARS,
  intervalStart,
  LATE_GRACE_MS,
  POOL_BARS_MIN,
  POOL_BARS_PER_TOKEN,
  TIMEFRAME_LENGTHS_MS,
} from '../limits.ts'
import * as layout from './bar-ring.ts'
import { BarRing } from './bar-ring.ts'

/** As constants of this module: imported ones are looked up each time, a sixth of what sparse ticks cost. */
const { BAR_STRIDE, BV, C, COUNT_UNIT, H, L, N, O, T, V } = layout

const SECOND_MS = 1_000
/** Seconds that may still change: those within the grace and the newest. A power of two above that. */
const PENDING_SECONDS = 8
const PENDING_MASK = PENDING_SECONDS - 1
/** A pending second also knows the times of its first and last trade, so that a late one finds its place. */
const FIRST_AT = BAR_STRIDE
const LAST_AT = BAR_STRIDE + 1
const PENDING_STRIDE = BAR_STRIDE + 2
const PENDING_BLOCK = PENDING_SECONDS * PENDING_STRIDE
const TIMEFRAME_COUNT = TIMEFRAMES.length
/** One open bar for each timeframe above a second. */
const OPEN_BLOCK = (TIMEFRAME_COUNT - 1) * BAR_STRIDE
/** What is not settled of a token lies side by side: its newest and its oldest second, open bars, pending seconds. */
const OPEN_AT = 2
const PENDING_AT = OPEN_AT + OPEN_BLOCK
const TOKEN_BLOCK = PENDING_AT + PENDING_BLOCK
/** No bar starts at or before zero: a bar's start of zero marks an empty place. */
const EMPTY = 0

export interface BarCascadeOptions {
  tokensMax: number
  barsPerTokenMax?: number
  /** Called once with every closed bar of `closedFrom` or coarser: where the lake gets them. The array is reused. */
  onClosed?: (slot: number, timeframe: number, values: Float64Array, address: number) => void
  /** Index of the finest timeframe that `onClosed` hears of. */
  closedFrom?: number
}

export interface WindowSum {
  volume: number
  counts: number
  buyVolume: number
}

export class BarCascade {
  readonly barsPerTokenMax: number
  #rings: BarRing[]
  /** Token after token; the next four are parts of it. */
  #unsettled: Float64Array
  /** Start of the newest pending second. */
  #head: Float64Array
  /** Start of the oldest second that may be pending. */
  #tail: Float64Array
  #open: Float64Array
  #pending: Float64Array
  #onClosed: NonNullable<BarCascadeOptions['onClosed']>
  #closedFrom: number
  /** By token: bars that ended by this time have been handed out, folded or not. Empty where nobody listens. */
  #emittedTo: Float64Array
  /** By token: how often its bars were forgotten, so that who keeps something made of them can tell. */
  #generations: Uint32Array
  /** Where readers fold the open partials of one timeframe: at most one each, and the pending seconds. */
  readonly scratch = new Float64Array((TIMEFRAME_COUNT + PENDING_SECONDS) * BAR_STRIDE)
  #sum: WindowSum = { volume: 0, counts: 0, buyVolume: 0 }

  constructor(options: BarCascadeOptions) {
    const { tokensMax, barsPerTokenMax = BARS_PER_TOKEN_MAX_DEFAULT, onClosed, closedFrom = 0 } = options
    this.#rings = TIMEFRAMES.map(
      (timeframe) =>
        new BarRing({
          tokensMax,
          barsPerTokenMax,
          chunkBars: CHUNK_BARS[timeframe],
          poolBars: Math.max(POOL_BARS_MIN, barsPerTokenMax * 8, POOL_BARS_PER_TOKEN[timeframe] * tokensMax),
        }),
    )
    this.#unsettled = new Float64Array(tokensMax * TOKEN_BLOCK)
    this.#head = this.#unsettled
    this.#tail = this.#unsettled.subarray(1)
    this.#open = this.#unsettled.subarray(OPEN_AT)
    this.#pending = this.#unsettled.subarray(PENDING_AT)
    this.#generations = new Uint32Array(tokensMax)
    this.#onClosed = onClosed ?? (() => {})
    this.#closedFrom = onClosed === undefined ? TIMEFRAME_COUNT : closedFrom
    this.#emittedTo = new Float64Array(onClosed === undefined ? 0 : tokensMax)
    this.barsPerTokenMax = barsPerTokenMax
  }

  get held(): number {
    return this.#rings.reduce((sum, ring) => sum + ring.held, 0)
  }

  get reclaimed(): number {
    return this.#rings.reduce((sum, ring) => sum + ring.reclaimedBars, 0)
  }

  /** Start of the newest second with a trade, or 0. */
  newestSecond(slot: number): number {
    return this.#head[slot * TOKEN_BLOCK]
  }

  /**
   * Adds a trade. The caller has made sure that `tsMs` is not older than `watermarkMs`, and that the watermark never
   * goes back: seconds that ended at or before it are closed.
   */
  add(slot: number, tsMs: number, price: number, volume: number, isBuy: boolean, watermarkMs: number): void {
    const second = intervalStart(tsMs, SECOND_MS)
    const block = slot * TOKEN_BLOCK
    if (second > this.#head[block]) {
      if (this.#head[block] !== EMPTY) this.#close(slot, watermarkMs)
      else this.#tail[block] = second
      this.#head[block] = second
    } else if (second < this.#tail[block]) {
      this.#tail[block] = second
    }
    const at = block + ((second / SECOND_MS) & PENDING_MASK) * PENDING_STRIDE
    const counts = isBuy ? COUNT_UNIT + 1 : COUNT_UNIT
    if (this.#pending[at + T] === second) this.#update(at, tsMs, price, volume, isBuy ? volume : 0, counts)
    else this.#start(at, second, tsMs, price, volume, isBuy ? volume : 0, counts)
  }

  #start(
    at: number,
    second: number,
    tsMs: number,
    price: number,
    volume: number,
    buyVolume: number,
    counts: number,
  ): void {
    const bars = this.#pending
    bars[at + T] = second
    bars[at + O] = price
    bars[at + H] = price
    bars[at + L] = price
    bars[at + C] = price
    bars[at + V] = volume
    bars[at + N] = counts
    bars[at + BV] = buyVolume
    bars[at + FIRST_AT] = tsMs
    bars[at + LAST_AT] = tsMs
  }

  #update(at: number, tsMs: number, price: number, volume: number, buyVolume: number, counts: number): void {
    const bars = this.#pending
    if (price > bars[at + H]) bars[at + H] = price
    if (price < bars[at + L]) bars[at + L] = price
    // Equal times keep the order of arrival: the earlier one opens, the later one closes.
    if (tsMs >= bars[at + LAST_AT]) {
      bars[at + C] = price
      bars[at + LAST_AT] = tsMs
    } else if (tsMs < bars[at + FIRST_AT]) {
      bars[at + O] = price
      bars[at + FIRST_AT] = tsMs
    }
    bars[at + V] += volume
    bars[at + N] += counts
    bars[at + BV] += buyVolume
  }

  /** Folds every pending second that ended at or before the watermark, oldest first. */
  #close(slot: number, watermarkMs: number): void {
    const block = slot * TOKEN_BLOCK
    const head = this.#head[block]
    let second = this.#tail[block]
    for (; second <= head && second + SECOND_MS <= watermarkMs; second += SECOND_MS) {
      const at = block + ((second / SECOND_MS) & PENDING_MASK) * PENDING_STRIDE
      if (this.#pending[at + T] === second) {
        this.#fold(slot, 0, this.#pending, at)
        this.#pending[at + T] = EMPTY
      }
    }
    // Nothing between the head and the newcomer is pending; a late trade may move the tail back within the grace.
    this.#tail[block] = second > head ? Math.max(second, intervalStart(watermarkMs, SECOND_MS)) : second
  }

  #emit(slot: number, timeframe: number, values: Float64Array, at: number): void {
    if (values[at + T] + TIMEFRAME_LENGTHS_MS[timeframe] > this.#emittedTo[slot])
      this.#onClosed(slot, timeframe, values, at)
  }

  /**
   * Hands out bars that ended at or before the watermark, though no later trade has folded them yet: a token that
   * fell silent has its last bars known too. Changes nothing that readers see.
   */
  emitEnded(slot: number, watermarkMs: number): void {
    if (this.#head[slot * TOKEN_BLOCK] === EMPTY) return
    const fromMs = this.#emittedTo[slot]
    for (let timeframe = this.#closedFrom; timeframe < TIMEFRAME_COUNT; timeframe++) {
      const length = TIMEFRAME_LENGTHS_MS[timeframe]
      // No interval ended since the last time, or the newest trade was handed out with an earlier one.
      if (intervalStart(watermarkMs, length) <= fromMs) continue
      if (intervalStart(this.#head[slot * TOKEN_BLOCK], length) + length <= fromMs) continue
      const made = this.foldOpen(slot, timeframe)
      for (let index = 0; index < made; index++) {
        const at = index * BAR_STRIDE
        if (this.scratch[at + T] + length <= watermarkMs) this.#emit(slot, timeframe, this.scratch, at)
      }
    }
    if (this.#closedFrom < TIMEFRAME_COUNT && watermarkMs > fromMs) this.#emittedTo[slot] = watermarkMs
  }

  /** A bar of `timeframe` is closed: into its ring, and into the open bar above. */
  #fold(slot: number, timeframe: number, source: Float64Array, at: number): void {
    const ring = this.#rings[timeframe]
    const address = ring.push(slot)
    const values = ring.values
    copyBar(values, address, source, at)
    if (timeframe >= this.#closedFrom) this.#emit(slot, timeframe, values, address)
    if (timeframe + 1 === TIMEFRAME_COUNT) return
    const open = slot * TOKEN_BLOCK + timeframe * BAR_STRIDE
    const start = values[address + T]
    const bucket = intervalStart(start, TIMEFRAME_LENGTHS_MS[timeframe + 1])
    if (this.#open[open + T] === bucket) {
      merge(this.#open, open, values, address)
      return
    }
    if (this.#open[open + T] !== EMPTY) this.#fold(slot, timeframe + 1, this.#open, open)
    copyBar(this.#open, open, values, address)
    this.#open[open + T] = bucket
  }

  /** The settled bars of a timeframe: closed for good. */
  ring(timeframe: number): BarRing {
    return this.#rings[timeframe]
  }

  /** Another number after every `clear` of the token. */
  generation(slot: number): number {
    return this.#generations[slot]
  }

  /**
   * Folds what is not settled of a token into bars of `timeframe`, ascending, in the scratch. They follow those of the
   * ring, and are valid until the next call.
   * @returns how many bars it made; read them in `scratch`.
   */
  foldOpen(slot: number, timeframe: number): number {
    const length = TIMEFRAME_LENGTHS_MS[timeframe]
    let made = 0
    const put = (source: Float64Array, at: number) => {
      const bucket = intervalStart(source[at + T], length)
      const last = (made - 1) * BAR_STRIDE
      if (made > 0 && this.scratch[last + T] === bucket) {
        merge(this.scratch, last, source, at)
        return
      }
      const next = made++ * BAR_STRIDE
      copyBar(this.scratch, next, source, at)
      this.scratch[next + T] = bucket
    }
    const block = slot * TOKEN_BLOCK
    for (let level = timeframe - 1; level >= 0; level--) {
      const open = block + level * BAR_STRIDE
      if (this.#open[open + T] !== EMPTY) put(this.#open, open)
    }
    const head = this.#head[block]
    if (head === EMPTY) return made
    for (
      let second = Math.max(this.#tail[block], head - PENDING_MASK * SECOND_MS);
      second <= head;
      second += SECOND_MS
    ) {
      const at = block + ((second / SECOND_MS) & PENDING_MASK) * PENDING_STRIDE
      if (this.#pending[at + T] === second) put(this.#pending, at)
    }
    return made
  }

  /**
   * Visits a token's bars of one timeframe, newest first, until `visit` returns false.
   * The values are valid during the call only.
   */
  backwards(slot: number, timeframe: number, visit: (values: Float64Array, at: number) => boolean): void {
    for (let index = this.foldOpen(slot, timeframe) - 1; index >= 0; index--) {
      if (!visit(this.scratch, index * BAR_STRIDE)) return
    }
    const ring = this.#rings[timeframe]
    ring.backwards(slot, (address) => visit(ring.values, address))
  }

  /** Sums the bars of `timeframe` that start at or after `fromMs` and before `beforeMs`. The result is reused. */
  sum(slot: number, timeframe: number, fromMs: number, beforeMs = Number.POSITIVE_INFINITY): WindowSum {
    const sum = this.#sum
    sum.volume = 0
    sum.counts = 0
    sum.buyVolume = 0
    this.backwards(slot, timeframe, (values, at) => {
      if (values[at + T] < fromMs) return false
      if (values[at + T] < beforeMs) {
        sum.volume += values[at + V]
        sum.counts += values[at + N]
        sum.buyVolume += values[at + BV]
      }
      return true
    })
    return sum
  }

  /** Close of the newest bar that starts before `beforeMs`, or null. */
  closeBefore(slot: number, timeframe: number, beforeMs: number): number | null {
    let close: number | null = null
    this.backwards(slot, timeframe, (values, at) => {
      if (values[at + T] >= beforeMs) return true
      close = values[at + C]
      return false
    })
    return close
  }

  /** Forgets a token's bars. */
  clear(slot: number): void {
    for (const ring of this.#rings) ring.clear(slot)
    this.#unsettled.fill(EMPTY, slot * TOKEN_BLOCK, (slot + 1) * TOKEN_BLOCK)
    if (this.#emittedTo.length > 0) this.#emittedTo[slot] = 0
    this.#generations[slot]++
  }
}

/** Written out: a loop over so few fields costs as much as they do. */
function copyBar(target: Float64Array, to: number, source: Float64Array, from: number): void {
  target[to] = source[from]
  target[to + O] = source[from + O]
  target[to + H] = source[from + H]
  target[to + L] = source[from + L]
  target[to + C] = source[from + C]
  target[to + V] = source[from + V]
  target[to + N] = source[from + N]
  target[to + BV] = source[from + BV]
}

/** Adds the later bar at `from` to the one at `to`. */
function merge(target: Float64Array, to: number, source: Float64Array, from: number): void {
  if (source[from + H] > target[to + H]) target[to + H] = source[from + H]
  if (source[from + L] < target[to + L]) target[to + L] = source[from + L]
  target[to + C] = source[from + C]
  target[to + V] += source[from + V]
  target[to + N] += source[from + N]
  target[to + BV] += source[from + BV]
}

// The pending seconds must cover the grace: a trade within it touches at most this many seconds and the newest.
if (LATE_GRACE_MS / SECOND_MS + 2 > PENDING_SECONDS)
  throw new Error('PENDING_SECONDS does not cover LATE_GRACE_MS')
