// Makes OHLC bars of nine timeframes from priced trades, as a cascade: a trade touches the bar of its second only. Once that second
// is closed, its bar is folded into the open bar of the next timeframe, and so on upwards. Readers fold what is still open.
//
//   trade ─► pending seconds ─► open 5s ─► open 15s ─► … ─► open 1d      one of each for every token
//                  │ closed       │ closed    │ closed          │ closed
//                  ▼              ▼           ▼                 ▼
//              ring of 1s     ring of 5s  ring of 15s  …    ring of 1d   closed bars, read by everyone
import {
  numbersSection,
  type Saved,
  type Section,
  type SectionReader,
  slotRanges,
  wrongLength,
} from '../../lib/sections/sections.ts'
import * as time from '../../lib/time.ts'
import { intervalStart } from '../../lib/time.ts'
import { TIMEFRAMES } from '../../schema/bar.ts'
import { TIMEFRAME_LENGTHS_MS } from '../../schema/timeframe.ts'
import * as layout from './bar-ring.ts'
import { BarRing } from './bar-ring.ts'
import { HeldSeconds } from './held-seconds.ts'
import { CHUNK_BARS, POOL_BARS_MIN, POOL_BARS_PER_TOKEN } from './limits.ts'
import * as pendingSecond from './pending-second.ts'
import * as blockLayout from './token-block.ts'
import { packBlocks, tokenBlocks, unpackBlocks } from './token-block.ts'

/** Copied into this module: looking up imported bindings takes a sixth of the time of sparse ticks. */
const { BAR_STRIDE, BV, C, COUNT_UNIT, H, L, N, O, T, V } = layout
const { BARS_END, EMPTY, OPEN_AT, PENDING_AT, PENDING_SECONDS, PENDING_STRIDE, TOKEN_BLOCK } = blockLayout
const { reopenedSecond, startSecond, updateSecond } = pendingSecond
const { SECOND_MS } = time

const PENDING_MASK = PENDING_SECONDS - 1
const TIMEFRAME_COUNT = TIMEFRAMES.length
const MINUTE_INDEX = TIMEFRAMES.indexOf('1m')

export interface BarCascadeOptions {
  tokensMax: number
  barsPerTokenMax: number
  poolBarsMin?: number | undefined
  /** Called once with every closed bar of a minute or longer, which `values` hold (bar-ring.ts) during the call only. */
  onClosed?: ((slot: number, timeframe: number, values: Float64Array, address: number) => void) | undefined
}

export interface WindowSum {
  volume: number
  counts: number
  buyVolume: number
}

export class BarCascade implements Saved {
  readonly barsPerTokenMax: number
  readonly #rings: BarRing[]
  /** Whatever may still change, token after token, each with room for its wallets (token-block.ts). The next four are parts of it. */
  readonly blocks: Float64Array<ArrayBuffer>
  /** Start of the newest pending second. */
  readonly #head: Float64Array
  /** Start of the oldest second that may be pending. */
  readonly #tail: Float64Array
  readonly #open: Float64Array
  readonly #pending: Float64Array
  readonly #onClosed: NonNullable<BarCascadeOptions['onClosed']>
  /** Index of the shortest timeframe whose bars are given to `onClosed`. */
  readonly #closedFrom: number
  /** By slot: bars that ended by this time were emitted, folded or not. Empty where there is no `onClosed`. */
  readonly #emittedToMs: Float64Array
  /** Seconds that stay open beyond those that are pending, because a feed heals. */
  readonly #held = new HeldSeconds()
  /** By slot: how often its bars were forgotten. Caches of something made from the bars compare it. */
  readonly #generations: Uint32Array
  /** The result of `foldOpen`: one bar for each shorter timeframe at most, and the pending seconds. */
  scratch = new Float64Array((TIMEFRAME_COUNT + PENDING_SECONDS) * BAR_STRIDE)
  #spare = new Float64Array((TIMEFRAME_COUNT + PENDING_SECONDS) * BAR_STRIDE)
  readonly #sum: WindowSum = { volume: 0, counts: 0, buyVolume: 0 }

  constructor(options: BarCascadeOptions) {
    const { tokensMax, barsPerTokenMax, poolBarsMin = POOL_BARS_MIN, onClosed } = options
    this.barsPerTokenMax = barsPerTokenMax
    this.#rings = TIMEFRAMES.map(
      (timeframe) =>
        new BarRing({
          name: `bars.${timeframe}`,
          tokensMax,
          barsPerTokenMax,
          chunkBars: CHUNK_BARS[timeframe],
          poolBars: Math.max(poolBarsMin, barsPerTokenMax * 8, POOL_BARS_PER_TOKEN[timeframe] * tokensMax),
        }),
    )
    this.blocks = tokenBlocks(tokensMax)
    this.#head = this.blocks
    this.#tail = this.blocks.subarray(1)
    this.#open = this.blocks.subarray(OPEN_AT)
    this.#pending = this.blocks.subarray(PENDING_AT)
    this.#generations = new Uint32Array(tokensMax)
    this.#onClosed = onClosed ?? (() => {})
    this.#closedFrom = onClosed === undefined ? TIMEFRAME_COUNT : MINUTE_INDEX
    this.#emittedToMs = new Float64Array(onClosed === undefined ? 0 : tokensMax)
  }

  get held(): number {
    return this.#rings.reduce((sum, ring) => sum + ring.held, 0)
  }

  get reclaimed(): number {
    return this.#rings.reduce((sum, ring) => sum + ring.reclaimedBars, 0)
  }

  /** Seconds of all tokens that are held open beyond those that are pending. */
  get heldSeconds(): number {
    return this.#held.total
  }

  /** The tokens that have such seconds. */
  heldSlots(): number[] {
    return this.#held.slots()
  }

  /** Start of the newest second with a trade, or 0. */
  newestSecond(slot: number): number {
    return this.#head[slot * TOKEN_BLOCK]
  }

  /**
   * Adds a trade. Seconds that ended at or before `watermarkMs` are closed: the trade must not be older, and a token's watermark
   * must never go back.
   */
  add(slot: number, tsMs: number, price: number, volume: number, isBuy: boolean, watermarkMs: number): void {
    const second = intervalStart(tsMs, SECOND_MS)
    const block = slot * TOKEN_BLOCK
    if (second > this.#head[block]) {
      if (this.#head[block] !== EMPTY) this.close(slot, watermarkMs)
      else this.#tail[block] = second
      this.#head[block] = second
      if (second - this.#tail[block] > PENDING_MASK * SECOND_MS) this.#holdPending(slot)
    } else if (second < this.#tail[block]) {
      if (second < this.#head[block] - PENDING_MASK * SECOND_MS) {
        this.#addHeld(slot, second, tsMs, price, volume, isBuy)
        return
      }
      this.#tail[block] = second
    }
    const at = block + ((second / SECOND_MS) & PENDING_MASK) * PENDING_STRIDE
    const counts = isBuy ? COUNT_UNIT + 1 : COUNT_UNIT
    const bars = this.#pending
    if (bars[at + T] === second) updateSecond(bars, at, tsMs, price, volume, isBuy ? volume : 0, counts)
    else startSecond(bars, at, second, tsMs, price, volume, isBuy ? volume : 0, counts)
  }

  /** Adds a trade of a second that is older than the pending ones and held open. */
  #addHeld(slot: number, second: number, tsMs: number, price: number, volume: number, isBuy: boolean): void {
    const { numbers, at } = this.#held.place(slot, second)
    const counts = isBuy ? COUNT_UNIT + 1 : COUNT_UNIT
    if (numbers[at + T] === second) updateSecond(numbers, at, tsMs, price, volume, isBuy ? volume : 0, counts)
    else startSecond(numbers, at, second, tsMs, price, volume, isBuy ? volume : 0, counts)
  }

  /** Moves the pending seconds that are held open to where newer ones do not take their place. */
  #holdPending(slot: number): void {
    const block = slot * TOKEN_BLOCK
    const fromMs = this.#head[block] - PENDING_MASK * SECOND_MS
    const reachMs = Math.min(fromMs, this.#tail[block] + PENDING_SECONDS * SECOND_MS)
    for (let second = this.#tail[block]; second < reachMs; second += SECOND_MS) {
      const from = block + ((second / SECOND_MS) & PENDING_MASK) * PENDING_STRIDE
      if (this.#pending[from + T] !== second) continue
      const { numbers, at } = this.#held.place(slot, second)
      numbers.set(this.#pending.subarray(from, from + PENDING_STRIDE), at)
      this.#pending[from + T] = EMPTY
    }
    this.#tail[block] = fromMs
  }

  /** Folds every second that ended at or before the watermark, oldest first. */
  close(slot: number, watermarkMs: number): void {
    const block = slot * TOKEN_BLOCK
    if (this.#held.total > 0) this.#closeHeld(slot, watermarkMs)
    const head = this.#head[block]
    let second = this.#tail[block]
    for (; second <= head && second + SECOND_MS <= watermarkMs; second += SECOND_MS) {
      const at = block + ((second / SECOND_MS) & PENDING_MASK) * PENDING_STRIDE
      if (this.#pending[at + T] === second) {
        this.#fold(slot, 0, this.#pending, at)
        this.#pending[at + T] = EMPTY
      }
    }
    // No second between the head and the new trade is pending. A late trade may move the tail back within the grace.
    this.#tail[block] = second > head ? Math.max(second, intervalStart(watermarkMs, SECOND_MS)) : second
  }

  #closeHeld(slot: number, watermarkMs: number): void {
    const held = this.#held.of(slot)
    if (held === undefined) return
    const { numbers, count } = held
    let folded = 0
    for (; folded < count && numbers[folded * PENDING_STRIDE + T] + SECOND_MS <= watermarkMs; folded++)
      this.#fold(slot, 0, numbers, folded * PENDING_STRIDE)
    this.#held.remove(slot, folded)
  }

  #emit(slot: number, timeframe: number, values: Float64Array, at: number): void {
    if (values[at + T] + TIMEFRAME_LENGTHS_MS[timeframe] > this.#emittedToMs[slot])
      this.#onClosed(slot, timeframe, values, at)
  }

  /**
   * Emits bars that ended at or before the watermark and that no later trade has folded yet, which are the last bars of a silent
   * token. What readers see does not change.
   */
  emitEnded(slot: number, watermarkMs: number): void {
    if (this.#head[slot * TOKEN_BLOCK] === EMPTY) return
    const fromMs = this.#emittedToMs[slot]
    for (let timeframe = this.#closedFrom; timeframe < TIMEFRAME_COUNT; timeframe++) {
      const length = TIMEFRAME_LENGTHS_MS[timeframe]
      // No interval has ended since the last call, or the bar of the newest trade was emitted already.
      if (intervalStart(watermarkMs, length) <= fromMs) continue
      if (intervalStart(this.#head[slot * TOKEN_BLOCK], length) + length <= fromMs) continue
      const made = this.foldOpen(slot, timeframe)
      for (let index = 0; index < made; index++) {
        const at = index * BAR_STRIDE
        if (this.scratch[at + T] + length <= watermarkMs) this.#emit(slot, timeframe, this.scratch, at)
      }
    }
    if (this.#closedFrom < TIMEFRAME_COUNT && watermarkMs > fromMs) this.#emittedToMs[slot] = watermarkMs
  }

  /** Emits, perhaps once more, every bar that ended after `endedAfterMs` and by the watermark. What ends above it never was. */
  emitEndedSince(slot: number, endedAfterMs: number, watermarkMs: number): void {
    if (this.#closedFrom === TIMEFRAME_COUNT) return
    this.#emittedToMs[slot] = Math.min(endedAfterMs, watermarkMs)
    for (let timeframe = this.#closedFrom; timeframe < TIMEFRAME_COUNT; timeframe++) {
      const { values } = this.#rings[timeframe]
      const addresses: number[] = []
      this.#rings[timeframe].backwards(slot, (address) => {
        if (values[address + T] + TIMEFRAME_LENGTHS_MS[timeframe] <= endedAfterMs) return false
        addresses.push(address)
        return true
      })
      for (const address of addresses.reverse()) this.#onClosed(slot, timeframe, values, address)
    }
    this.emitEnded(slot, watermarkMs)
  }

  /** Closes a bar of `timeframe`: copies it into the ring, and adds it to the open bar of the next timeframe. */
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

  /** The closed bars of a timeframe, which never change. */
  ring(timeframe: number): BarRing {
    return this.#rings[timeframe]
  }

  /**
   * Forgets the seconds after the one that starts at `openMs`, which stays open with the trades that it has, and opens the bars again
   * that had not ended by then, with what they had of seconds before.
   * @returns whether there was anything from `openMs` on; then the token's watermark must be `openMs`
   */
  rewind(slot: number, openMs: number): boolean {
    if (this.#emittedToMs.length > 0) this.#emittedToMs[slot] = Math.min(this.#emittedToMs[slot], openMs)
    const block = slot * TOKEN_BLOCK
    if (this.#head[block] < openMs) return false
    this.close(slot, openMs)
    const second = this.#copySecond(slot, openMs)
    this.#held.clear(slot)
    this.blocks.fill(EMPTY, block + PENDING_AT, block + BARS_END)
    for (let timeframe = 0; timeframe < TIMEFRAME_COUNT; timeframe++) {
      this.#dropUnended(slot, timeframe, openMs)
      if (timeframe > 0) this.#reopen(slot, timeframe, openMs)
    }
    const [seconds] = this.#rings
    const newest = seconds.newest(slot)
    // Where all seconds were lost, longer bars may still have what a later rewind must take back.
    this.#head[block] = newest === -1 ? seconds.lostMs(slot) : seconds.values[newest + T]
    this.#tail[block] = this.#head[block] + (this.#head[block] === EMPTY ? 0 : SECOND_MS)
    if (second !== null) {
      this.#pending.set(second, block + ((openMs / SECOND_MS) & PENDING_MASK) * PENDING_STRIDE)
      this.#head.fill(openMs, block, block + OPEN_AT)
    }
    this.#generations[slot]++
    return true
  }

  /** A copy of a second as a pending one, whether it is open or closed. Null where it has no trade. */
  #copySecond(slot: number, startMs: number): Float64Array | null {
    const at = slot * TOKEN_BLOCK + ((startMs / SECOND_MS) & PENDING_MASK) * PENDING_STRIDE
    if (this.#pending[at + T] === startMs) return this.#pending.slice(at, at + PENDING_STRIDE)
    return this.#held.copy(slot, startMs) ?? reopenedSecond(this.#rings[0], slot, startMs)
  }

  /** Drops the closed bars of a timeframe that had not ended by `cutMs`. */
  #dropUnended(slot: number, timeframe: number, cutMs: number): void {
    const ring = this.#rings[timeframe]
    ring.rewindTo(slot, intervalStart(cutMs, TIMEFRAME_LENGTHS_MS[timeframe]))
    for (let at = ring.newest(slot); at !== -1; at = ring.newest(slot)) {
      if (ring.values[at + T] + TIMEFRAME_LENGTHS_MS[timeframe] <= cutMs) return
      ring.pop(slot)
    }
  }

  /** Makes the open bar of a timeframe anew of the closed bars of the shorter one, where it had not ended by `cutMs`. */
  #reopen(slot: number, timeframe: number, cutMs: number): void {
    const open = slot * TOKEN_BLOCK + (timeframe - 1) * BAR_STRIDE
    const length = TIMEFRAME_LENGTHS_MS[timeframe]
    const startMs = this.#open[open + T]
    const bucket = intervalStart(cutMs, length)
    const shorter = this.#rings[timeframe - 1]
    // Also where an older bar is still open: what the bucket has will be folded later, without what was lost.
    if (shorter.lostMs(slot) >= bucket) this.#rings[timeframe].lose(slot, bucket)
    if (startMs !== EMPTY && startMs + length <= cutMs) return
    this.#open.fill(EMPTY, open, open + BAR_STRIDE)
    const { values } = shorter
    const parts: number[] = []
    shorter.backwards(slot, (address) => {
      if (values[address + T] < bucket) return false
      parts.push(address)
      return true
    })
    for (const address of parts.reverse()) {
      if (this.#open[open + T] === EMPTY) copyBar(this.#open, open, values, address)
      else merge(this.#open, open, values, address)
      this.#open[open + T] = bucket
    }
  }

  /** Changes with every `clear` of the token. */
  generation(slot: number): number {
    return this.#generations[slot]
  }

  /**
   * Folds a token's pending seconds and open bars into bars of `timeframe`, ascending, which follow those of the ring. Level by level,
   * as they will be folded in the end: sums of floating-point numbers depend on the order, and a closed bar must not change.
   * @returns how many there are. They lie in `scratch` until the next call.
   */
  foldOpen(slot: number, timeframe: number): number {
    const block = slot * TOKEN_BLOCK
    let made = this.#copyPending(block, this.#held.total > 0 ? this.#copyHeld(slot) : 0)
    for (let level = 0; level < timeframe; level++) made = this.#foldLevel(block, level, made)
    return made
  }

  /** Copies the seconds of a token that are held to `scratch`, and makes room for all others. @returns how many there are */
  #copyHeld(slot: number): number {
    const { numbers, count } = this.#held.of(slot) ?? { numbers: this.#spare, count: 0 }
    const length = (count + TIMEFRAME_COUNT + PENDING_SECONDS) * BAR_STRIDE
    if (this.scratch.length < length) this.scratch = new Float64Array(2 * length)
    if (this.#spare.length < length) this.#spare = new Float64Array(2 * length)
    for (let index = 0; index < count; index++)
      copyBar(this.scratch, index * BAR_STRIDE, numbers, index * PENDING_STRIDE)
    return count
  }

  /** Copies a token's pending seconds to `scratch`, behind those that are held. @returns how many there are with them */
  #copyPending(block: number, held: number): number {
    const head = this.#head[block]
    if (head === EMPTY) return 0
    let made = held
    let second = Math.max(this.#tail[block], head - PENDING_MASK * SECOND_MS)
    for (; second <= head; second += SECOND_MS) {
      const at = block + ((second / SECOND_MS) & PENDING_MASK) * PENDING_STRIDE
      if (this.#pending[at + T] === second) copyBar(this.scratch, made++ * BAR_STRIDE, this.#pending, at)
    }
    return made
  }

  /** Makes of the open bar of a level and the `count` bars in `scratch` the bars of the next longer timeframe. @returns how many */
  #foldLevel(block: number, level: number, count: number): number {
    const open = block + level * BAR_STRIDE
    const [from, to] = [this.scratch, this.#spare]
    const length = TIMEFRAME_LENGTHS_MS[level + 1]
    let made = 0
    if (this.#open[open + T] !== EMPTY) copyBar(to, made++ * BAR_STRIDE, this.#open, open)
    for (let index = 0; index < count; index++) {
      const at = index * BAR_STRIDE
      const bucket = intervalStart(from[at + T], length)
      const last = (made - 1) * BAR_STRIDE
      if (made === 0 || to[last + T] !== bucket) {
        copyBar(to, made * BAR_STRIDE, from, at)
        to[made++ * BAR_STRIDE + T] = bucket
      } else merge(to, last, from, at)
    }
    this.#spare = from
    this.scratch = to
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

  *save(slotsUsed: number): Iterable<Section> {
    for (const ring of this.#rings) yield* ring.save(slotsUsed)
    for (const { part, first, end } of slotRanges(slotsUsed))
      yield numbersSection(`bars.unsettled.${part}`, packBlocks(this.blocks, first, end))
    yield numbersSection('bars.generations', this.#generations.subarray(0, slotsUsed))
    yield numbersSection('bars.emitted', this.#emittedToMs.subarray(0, slotsUsed))
    yield* this.#held.save()
  }

  *restore(sections: SectionReader, slotsUsed: number): Iterable<void> {
    for (const ring of this.#rings) yield ring.restore(sections, slotsUsed)
    for (const { part, first, end } of slotRanges(slotsUsed)) {
      const name = `bars.unsettled.${part}`
      if (!unpackBlocks(this.blocks, first, end, sections.float64(name))) throw wrongLength(name)
    }
    sections.fill('bars.generations', this.#generations.subarray(0, slotsUsed))
    this.#held.restore(sections)
    // A market without `onClosed` does not know what was emitted: then every bar that is not folded yet is emitted again.
    const emitted = sections.float64('bars.emitted')
    if (emitted.length > 0 && this.#emittedToMs.length > 0) this.#emittedToMs.set(emitted)
  }

  /** Forgets a token's bars. */
  clear(slot: number): void {
    for (const ring of this.#rings) ring.clear(slot)
    this.#held.clear(slot)
    this.blocks.fill(EMPTY, slot * TOKEN_BLOCK, slot * TOKEN_BLOCK + BARS_END)
    if (this.#emittedToMs.length > 0) this.#emittedToMs[slot] = 0
    this.#generations[slot]++
  }
}

/** Written out, because a loop over so few fields takes twice as long. */
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
