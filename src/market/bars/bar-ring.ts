// In: closed bars of one timeframe, token by token, ascending. Out: a token's newest bars, read backwards.
// One pool of fixed-size chunks serves all tokens: a token takes chunks as it trades, gives its oldest back at its
// own maximum, and when the pool is empty the market's oldest chunk changes hands. Never folds or aggregates.
import { assert } from '../../lib/assert.ts'

/** Fields of a bar, in the order in which they lie in memory. */
export const T = 0
export const O = 1
export const H = 2
export const L = 3
export const C = 4
export const V = 5
/** Trades and buys in one number, COUNT_UNIT per trade plus one per buy: both add up in one addition. */
export const N = 6
/** USD volume of the buys. */
export const BV = 7
export const BAR_STRIDE = 8
/** More trades than this in one bar would run into each other; a day at 700 trades a second does not reach it. */
export const COUNT_UNIT = 67_108_864

/** Exact, as the unit is a power of two. */
const UNITS_PER_COUNT = 1 / COUNT_UNIT

export const tradesOf = (counts: number): number => Math.floor(counts * UNITS_PER_COUNT)
export const buysOf = (counts: number): number => counts - Math.floor(counts / COUNT_UNIT) * COUNT_UNIT

const NONE = 0xffffffff

export interface BarRingOptions {
  tokensMax: number
  poolBars: number
  chunkBars: number
  barsPerTokenMax: number
}

export class BarRing {
  /** All bars, chunk after chunk. A bar's address is its first index here. */
  readonly values: Float64Array
  reclaimedBars = 0
  /** Bars of a chunk are a power of two. */
  #chunkBits: number
  #chunkMask: number
  #chunksPerTokenMax: number
  #chunkCount: number
  /** Chunks of one token, both ways. */
  #older: Uint32Array
  #newer: Uint32Array
  /** All chunks in the order in which they were taken, both ways: the head is the market's oldest. */
  #takenBefore: Uint32Array
  #takenAfter: Uint32Array
  #takenHead = NONE
  #takenTail = NONE
  #owner: Uint32Array
  #free = NONE
  #untouched = 0
  /** By token: the place after its newest bar, counted in bars from the pool's first; 0 for none. */
  #end: Uint32Array
  /** By token. */
  #oldest: Uint32Array
  #chunks: Uint32Array
  #held = 0

  constructor({ tokensMax, poolBars, chunkBars, barsPerTokenMax }: BarRingOptions) {
    assert((chunkBars & (chunkBars - 1)) === 0, 'a chunk holds a power of two of bars')
    this.#chunkBits = Math.log2(chunkBars)
    this.#chunkMask = chunkBars - 1
    this.#chunkCount = Math.ceil(poolBars / chunkBars)
    this.#chunksPerTokenMax = Math.ceil(barsPerTokenMax / chunkBars) + 1
    // Pages of the pool cost memory only once they are written to.
    this.values = new Float64Array(this.#chunkCount * chunkBars * BAR_STRIDE)
    const links = () => new Uint32Array(this.#chunkCount)
    this.#older = links()
    this.#newer = links()
    this.#takenBefore = links()
    this.#takenAfter = links()
    this.#owner = links()
    this.#end = new Uint32Array(tokensMax)
    this.#oldest = new Uint32Array(tokensMax).fill(NONE)
    this.#chunks = new Uint32Array(tokensMax)
  }

  /** Bars held for all tokens. */
  get held(): number {
    return this.#held
  }

  /** Room for one more bar of `token`: the address to write it to. */
  push(slot: number): number {
    let end = this.#end[slot]
    // A multiple of the chunk's size: the newest chunk is full, or there is none.
    if ((end & this.#chunkMask) === 0) end = this.#grow(slot) << this.#chunkBits
    this.#end[slot] = end + 1
    this.#held++
    return end * BAR_STRIDE
  }

  /** Calls `visit` with the address of each bar, newest first, until it returns false. */
  backwards(slot: number, visit: (address: number) => boolean): void {
    let end = this.#end[slot]
    while (end !== 0) {
      const chunk = this.#chunkOf(end)
      const first = (chunk << this.#chunkBits) * BAR_STRIDE
      for (let address = (end - 1) * BAR_STRIDE; address >= first; address -= BAR_STRIDE) {
        if (!visit(address)) return
      }
      end = this.#endOf(this.#older[chunk])
    }
  }

  /** Calls `visit` with where bars lie side by side, `first` to before `end`: newest run first, until it returns false. */
  runs(slot: number, visit: (first: number, end: number) => boolean): void {
    let end = this.#end[slot]
    while (end !== 0) {
      const chunk = this.#chunkOf(end)
      if (!visit((chunk << this.#chunkBits) * BAR_STRIDE, end * BAR_STRIDE)) return
      end = this.#endOf(this.#older[chunk])
    }
  }

  /** Address of the newest bar, or -1. */
  newest(slot: number): number {
    return this.#end[slot] === 0 ? -1 : (this.#end[slot] - 1) * BAR_STRIDE
  }

  /** Address of the oldest bar, or -1. */
  oldest(slot: number): number {
    const chunk = this.#oldest[slot]
    return chunk === NONE ? -1 : (chunk << this.#chunkBits) * BAR_STRIDE
  }

  /** Gives all chunks of a token back. */
  clear(slot: number): void {
    while (this.#oldest[slot] !== NONE) this.#release(this.#oldest[slot])
  }

  #grow(slot: number): number {
    if (this.#chunks[slot] >= this.#chunksPerTokenMax) this.#release(this.#oldest[slot])
    const chunk = this.#take()
    const previous = this.#end[slot] === 0 ? NONE : this.#chunkOf(this.#end[slot])
    this.#owner[chunk] = slot
    this.#older[chunk] = previous
    this.#newer[chunk] = NONE
    if (previous === NONE) this.#oldest[slot] = chunk
    else this.#newer[previous] = chunk
    this.#chunks[slot]++
    return chunk
  }

  #take(): number {
    if (this.#free === NONE && this.#untouched === this.#chunkCount) {
      this.reclaimedBars += this.#usedOf(this.#takenHead)
      this.#release(this.#takenHead)
    }
    let chunk = this.#free
    if (chunk === NONE) chunk = this.#untouched++
    else this.#free = this.#newer[chunk]
    this.#takenBefore[chunk] = this.#takenTail
    this.#takenAfter[chunk] = NONE
    if (this.#takenTail === NONE) this.#takenHead = chunk
    else this.#takenAfter[this.#takenTail] = chunk
    this.#takenTail = chunk
    return chunk
  }

  /** Chunks are taken in order of time, so the market's oldest chunk is also its owner's oldest. */
  #release(chunk: number): void {
    const slot = this.#owner[chunk]
    const next = this.#newer[chunk]
    this.#held -= this.#usedOf(chunk)
    this.#oldest[slot] = next
    if (next === NONE) this.#end[slot] = 0
    else this.#older[next] = NONE
    this.#chunks[slot]--
    const before = this.#takenBefore[chunk]
    const after = this.#takenAfter[chunk]
    if (before === NONE) this.#takenHead = after
    else this.#takenAfter[before] = after
    if (after === NONE) this.#takenTail = before
    else this.#takenBefore[after] = before
    this.#newer[chunk] = this.#free
    this.#free = chunk
  }

  /** The chunk whose bars end at `end`. */
  #chunkOf(end: number): number {
    return (end - 1) >>> this.#chunkBits
  }

  /** The end of a full chunk; 0 for none. */
  #endOf(chunk: number): number {
    return chunk === NONE ? 0 : (chunk + 1) << this.#chunkBits
  }

  /** Every chunk of a token is full but its newest. */
  #usedOf(chunk: number): number {
    const end = this.#end[this.#owner[chunk]]
    return this.#chunkOf(end) === chunk ? end - (chunk << this.#chunkBits) : this.#chunkMask + 1
  }
}
