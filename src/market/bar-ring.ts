// In: closed bars of one timeframe, token by token, ascending. Out: a token's newest bars, read backwards.
// One pool of fixed-size chunks serves all tokens: a token takes chunks as it trades, gives its oldest back at its
// own maximum, and when the pool is empty the market's oldest chunk changes hands. Never folds or aggregates.

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

export const tradesOf = (counts: number): number => Math.floor(counts / COUNT_UNIT)
export const buysOf = (counts: number): number => counts % COUNT_UNIT

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
  #chunkBars: number
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
  #used: Uint16Array
  #free = NONE
  #untouched = 0
  /** By token. */
  #newest: Uint32Array
  #oldest: Uint32Array
  #chunks: Uint32Array
  #held = 0

  constructor({ tokensMax, poolBars, chunkBars, barsPerTokenMax }: BarRingOptions) {
    this.#chunkBars = chunkBars
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
    this.#used = new Uint16Array(this.#chunkCount)
    this.#newest = new Uint32Array(tokensMax).fill(NONE)
    this.#oldest = new Uint32Array(tokensMax).fill(NONE)
    this.#chunks = new Uint32Array(tokensMax)
  }

  /** Bars held for all tokens. */
  get held(): number {
    return this.#held
  }

  /** Room for one more bar of `token`: the address to write it to. */
  push(token: number): number {
    let chunk = this.#newest[token]
    if (chunk === NONE || this.#used[chunk] === this.#chunkBars) chunk = this.#grow(token)
    this.#held++
    return (chunk * this.#chunkBars + this.#used[chunk]++) * BAR_STRIDE
  }

  /** Calls `visit` with the address of each bar, newest first, until it returns false. */
  backwards(token: number, visit: (address: number) => boolean): void {
    for (let chunk = this.#newest[token]; chunk !== NONE; chunk = this.#older[chunk]) {
      const first = chunk * this.#chunkBars * BAR_STRIDE
      for (
        let address = first + (this.#used[chunk] - 1) * BAR_STRIDE;
        address >= first;
        address -= BAR_STRIDE
      ) {
        if (!visit(address)) return
      }
    }
  }

  /** Address of the newest bar, or -1. */
  newest(token: number): number {
    const chunk = this.#newest[token]
    return chunk === NONE ? -1 : (chunk * this.#chunkBars + this.#used[chunk] - 1) * BAR_STRIDE
  }

  /** Gives all chunks of a token back. */
  clear(token: number): void {
    while (this.#oldest[token] !== NONE) this.#release(this.#oldest[token])
  }

  #grow(token: number): number {
    if (this.#chunks[token] >= this.#chunksPerTokenMax) this.#release(this.#oldest[token])
    const chunk = this.#take()
    this.#owner[chunk] = token
    this.#used[chunk] = 0
    const previous = this.#newest[token]
    this.#older[chunk] = previous
    this.#newer[chunk] = NONE
    if (previous === NONE) this.#oldest[token] = chunk
    else this.#newer[previous] = chunk
    this.#newest[token] = chunk
    this.#chunks[token]++
    return chunk
  }

  #take(): number {
    if (this.#free === NONE && this.#untouched === this.#chunkCount) {
      this.reclaimedBars += this.#used[this.#takenHead]
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
    const token = this.#owner[chunk]
    const next = this.#newer[chunk]
    this.#oldest[token] = next
    if (next === NONE) this.#newest[token] = NONE
    else this.#older[next] = NONE
    this.#chunks[token]--
    this.#held -= this.#used[chunk]
    const before = this.#takenBefore[chunk]
    const after = this.#takenAfter[chunk]
    if (before === NONE) this.#takenHead = after
    else this.#takenAfter[before] = after
    if (after === NONE) this.#takenTail = before
    else this.#takenBefore[after] = before
    this.#newer[chunk] = this.#free
    this.#free = chunk
  }
}
