// The closed bars of one timeframe. All tokens share one pool of chunks of equal size: a token takes chunks as it trades. At its own
// maximum it gives back its oldest chunk; when the pool is empty, the market's oldest chunk is taken from its owner.
import { z } from 'zod'
import { assert } from '../../lib/assert.ts'
import { CheckpointError } from '../../lib/sections/checkpoint-error.ts'
import {
  jsonSection,
  numbersSection,
  type Saved,
  type Section,
  type SectionReader,
} from '../../lib/sections/sections.ts'

// A bar is BAR_STRIDE numbers side by side: start (Unix ms), OHLC prices (USD), volume (USD), counts, volume of the buys (USD).
// Reads of these columns of numbers need no `!`: an index within the column always holds a number.
export const T = 0
export const O = 1
export const H = 2
export const L = 3
export const C = 4
export const V = 5
/** Trades and buys in one number, COUNT_UNIT for each trade plus one for each buy, so that one addition sums both. */
export const N = 6
export const BV = 7
export const BAR_STRIDE = 8
/** Also the most trades that one bar can count: 700 trades a second for a day do not reach it. */
export const COUNT_UNIT = 67_108_864

/** Exact, because the unit is a power of two. */
const UNITS_PER_COUNT = 1 / COUNT_UNIT

export const tradeCount = (counts: number): number => Math.floor(counts * UNITS_PER_COUNT)
export const buyCount = (counts: number): number => counts - Math.floor(counts / COUNT_UNIT) * COUNT_UNIT

const NONE = 0xffffffff

const savedSchema = z.object({ reclaimedBars: z.number() })

export interface BarRingOptions {
  /** In its sections. */
  name: string
  tokensMax: number
  poolBars: number
  chunkBars: number
  barsPerTokenMax: number
}

export class BarRing implements Saved {
  readonly #name: string
  /** All bars, chunk after chunk. A bar's address is the index of its first number. */
  readonly values: Float64Array
  /** Bars that were lost because the pool was empty. */
  reclaimedBars = 0
  /**
   * Called before a token loses its oldest bars to another because the pool is empty, with the start of the oldest bar that it keeps
   * (Infinity: none). It may read the bars.
   */
  onReclaim: (slot: number, keptFromMs: number) => void = () => {}
  /** log2 of the bars in a chunk. */
  readonly #chunkBits: number
  readonly #chunkMask: number
  readonly #chunksPerTokenMax: number
  readonly #chunkCount: number
  /** By chunk: the next older and newer chunk of the same token. */
  readonly #older: Uint32Array
  readonly #newer: Uint32Array
  /** By chunk: its neighbours in the order in which chunks were taken. The head is the market's oldest. */
  readonly #takenBefore: Uint32Array
  readonly #takenAfter: Uint32Array
  #takenHead = NONE
  #takenTail = NONE
  /** By chunk: the slot of the token that has it. */
  readonly #owner: Uint32Array
  /** Head of the list of chunks that were given back, linked by `#newer`. */
  #free = NONE
  /** Chunks from this one on were never used. */
  #firstUnused = 0
  /** By slot: the place after its newest bar, counted in bars from the start of the pool; 0 for none. */
  readonly #end: Uint32Array
  /** By slot: its oldest chunk, and how many it has. */
  readonly #oldest: Uint32Array
  readonly #chunkCounts: Uint32Array
  /** By slot: start of the newest bar that it had and lost; 0 for none. */
  readonly #lostMs: Float64Array
  #held = 0

  constructor({ name, tokensMax, poolBars, chunkBars, barsPerTokenMax }: BarRingOptions) {
    this.#name = name
    assert((chunkBars & (chunkBars - 1)) === 0, 'a chunk holds a power of two of bars')
    this.#chunkBits = Math.log2(chunkBars)
    this.#chunkMask = chunkBars - 1
    this.#chunksPerTokenMax = Math.ceil(barsPerTokenMax / chunkBars) + 1
    // No more than all tokens together may hold.
    this.#chunkCount = Math.min(Math.ceil(poolBars / chunkBars), tokensMax * this.#chunksPerTokenMax)
    // The operating system gives memory to those parts of the pool only that were written to.
    this.values = new Float64Array(this.#chunkCount * chunkBars * BAR_STRIDE)
    const links = () => new Uint32Array(this.#chunkCount)
    this.#older = links()
    this.#newer = links()
    this.#takenBefore = links()
    this.#takenAfter = links()
    this.#owner = links()
    this.#end = new Uint32Array(tokensMax)
    this.#oldest = new Uint32Array(tokensMax).fill(NONE)
    this.#chunkCounts = new Uint32Array(tokensMax)
    this.#lostMs = new Float64Array(tokensMax)
  }

  /** Bars held for all tokens. */
  get held(): number {
    return this.#held
  }

  /** Makes room for one more bar. @returns the address to write it to. */
  push(slot: number): number {
    let end = this.#end[slot]
    // At a multiple of the chunk's size the newest chunk is full, or there is none.
    if ((end & this.#chunkMask) === 0) end = this.#grow(slot) << this.#chunkBits
    this.#end[slot] = end + 1
    this.#held++
    return end * BAR_STRIDE
  }

  /** Calls `visit` with the address of each bar, newest first, until it returns false. */
  backwards(slot: number, visit: (address: number) => boolean): void {
    let end = this.#end[slot]
    while (end !== 0) {
      const chunk = this.#chunkBefore(end)
      const first = (chunk << this.#chunkBits) * BAR_STRIDE
      for (let address = (end - 1) * BAR_STRIDE; address >= first; address -= BAR_STRIDE) {
        if (!visit(address)) return
      }
      end = this.#chunkEnd(this.#older[chunk])
    }
  }

  /** Calls `visit` with each run of bars that lie side by side, from address `first` to before `end`: the newest run first,
   *  until it returns false. */
  runs(slot: number, visit: (first: number, end: number) => boolean): void {
    let end = this.#end[slot]
    while (end !== 0) {
      const chunk = this.#chunkBefore(end)
      if (!visit((chunk << this.#chunkBits) * BAR_STRIDE, end * BAR_STRIDE)) return
      end = this.#chunkEnd(this.#older[chunk])
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

  /** Start of the newest bar that the token had and lost, as all before it; 0: it has lost none. */
  lostMs(slot: number): number {
    return this.#lostMs[slot]
  }

  /** The token lacks the bar that starts at `startMs`, or a part of it. */
  lose(slot: number, startMs: number): void {
    this.#lostMs[slot] = Math.max(this.#lostMs[slot], startMs)
  }

  /** Of bars that start after `startMs` none was lost: the token has not had them yet. */
  rewindTo(slot: number, startMs: number): void {
    this.#lostMs[slot] = Math.min(this.#lostMs[slot], startMs)
  }

  /** Drops the newest bar. */
  pop(slot: number): void {
    const end = this.#end[slot] - 1
    this.#end[slot] = end
    this.#held--
    if ((end & this.#chunkMask) !== 0) return
    const chunk = end >>> this.#chunkBits
    const older = this.#older[chunk]
    this.#end[slot] = this.#chunkEnd(older)
    if (older === NONE) this.#oldest[slot] = NONE
    else this.#newer[older] = NONE
    this.#giveBack(chunk)
  }

  /** Gives back all chunks of a token, which then has lost none. */
  clear(slot: number): void {
    while (this.#oldest[slot] !== NONE) this.#release(this.#oldest[slot])
    this.#lostMs[slot] = 0
  }

  /** The bars, chunk after chunk in the order in which the chunks were taken, without the places that no bar has yet. */
  *save(slotsUsed: number): Iterable<Section> {
    const values = new Float64Array(this.#held * BAR_STRIDE)
    const owners = new Uint32Array(this.#firstUnused)
    const counts = new Uint8Array(this.#firstUnused)
    let count = 0
    let to = 0
    for (let chunk = this.#takenHead; chunk !== NONE; chunk = this.#takenAfter[chunk]) {
      const first = (chunk << this.#chunkBits) * BAR_STRIDE
      const bars = this.#barsIn(chunk)
      owners[count] = this.#owner[chunk]
      counts[count++] = bars
      for (let at = first; at < first + bars * BAR_STRIDE; at++) values[to++] = this.values[at]
    }
    yield jsonSection(this.#name, { reclaimedBars: this.reclaimedBars })
    yield numbersSection(`${this.#name}.owners`, owners.subarray(0, count))
    yield numbersSection(`${this.#name}.counts`, counts.subarray(0, count))
    yield numbersSection(`${this.#name}.values`, values)
    yield numbersSection(`${this.#name}.lost`, this.#lostMs.subarray(0, slotsUsed))
  }

  /** Where the pool is smaller than what was saved, the oldest chunks are lost. */
  restore(sections: SectionReader, slotsUsed: number): void {
    this.reclaimedBars = sections.json(this.#name, savedSchema).reclaimedBars
    const owners = sections.uint32(`${this.#name}.owners`)
    const counts = new Uint8Array(owners.length)
    sections.fill(`${this.#name}.counts`, counts)
    const values = sections.float64(`${this.#name}.values`)
    const first = Math.max(0, owners.length - this.#chunkCount)
    // Checkpoints of format 1 to 3 have none: what the 24-hour window lacks is in windows.ts there.
    if (sections.has(`${this.#name}.lost`))
      sections.fill(`${this.#name}.lost`, this.#lostMs.subarray(0, slotsUsed))
    let from = 0
    for (let index = 0; index < first; index++) {
      from += counts[index] * BAR_STRIDE
      this.reclaimedBars += counts[index]
      if (counts[index] > 0) this.lose(owners[index], values[from - BAR_STRIDE + T])
    }
    // Chunks are given in order, so full ones lie side by side as they were saved, and are copied together.
    let copied = from
    let to = 0
    for (let index = first; index < owners.length; index++) {
      const end = this.#restoreChunk(owners[index], counts[index]) * BAR_STRIDE
      from += counts[index] * BAR_STRIDE
      if (counts[index] > this.#chunkMask && index < owners.length - 1) continue
      this.values.set(values.subarray(copied, from), to)
      copied = from
      to = end + (this.#chunkMask + 1 - counts[index]) * BAR_STRIDE
    }
    if (from !== values.length) throw this.#notChunks()
  }

  /** Gives a token a chunk with so many bars. @returns the place after the last one. */
  #restoreChunk(slot: number, bars: number): number {
    // Only a token's newest chunk may have room, and every chunk has a bar.
    const isFull = (this.#end[slot] & this.#chunkMask) === 0
    const mayBe = slot < this.#end.length && isFull && bars >= 1 && bars <= this.#chunkMask + 1
    if (!mayBe || this.#chunkCounts[slot] === this.#chunksPerTokenMax) throw this.#notChunks()
    this.#end[slot] = (this.#grow(slot) << this.#chunkBits) + bars
    this.#held += bars
    return this.#end[slot]
  }

  #notChunks(): CheckpointError {
    return new CheckpointError(`The sections ${this.#name} do not belong together.`)
  }

  #grow(slot: number): number {
    if (this.#chunkCounts[slot] >= this.#chunksPerTokenMax) this.#release(this.#oldest[slot])
    const chunk = this.#take()
    const previous = this.#end[slot] === 0 ? NONE : this.#chunkBefore(this.#end[slot])
    this.#owner[chunk] = slot
    this.#older[chunk] = previous
    this.#newer[chunk] = NONE
    if (previous === NONE) this.#oldest[slot] = chunk
    else this.#newer[previous] = chunk
    this.#chunkCounts[slot]++
    return chunk
  }

  #take(): number {
    if (this.#free === NONE && this.#firstUnused === this.#chunkCount) {
      const next = this.#newer[this.#takenHead]
      const keptFromMs =
        next === NONE ? Number.POSITIVE_INFINITY : this.values[(next << this.#chunkBits) * BAR_STRIDE + T]
      this.onReclaim(this.#owner[this.#takenHead], keptFromMs)
      this.reclaimedBars += this.#barsIn(this.#takenHead)
      this.#release(this.#takenHead)
    }
    let chunk = this.#free
    if (chunk === NONE) chunk = this.#firstUnused++
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
    const bars = this.#barsIn(chunk)
    this.lose(slot, this.values[((chunk << this.#chunkBits) + bars - 1) * BAR_STRIDE + T])
    this.#held -= bars
    this.#oldest[slot] = next
    if (next === NONE) this.#end[slot] = 0
    else this.#older[next] = NONE
    this.#giveBack(chunk)
  }

  /** Puts a chunk that its owner has no more among the free ones. */
  #giveBack(chunk: number): void {
    this.#chunkCounts[this.#owner[chunk]]--
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
  #chunkBefore(end: number): number {
    return (end - 1) >>> this.#chunkBits
  }

  /** The end of a full chunk; 0 for no chunk. */
  #chunkEnd(chunk: number): number {
    return chunk === NONE ? 0 : (chunk + 1) << this.#chunkBits
  }

  /** Every chunk of a token but its newest is full. */
  #barsIn(chunk: number): number {
    const end = this.#end[this.#owner[chunk]]
    return this.#chunkBefore(end) === chunk ? end - (chunk << this.#chunkBits) : this.#chunkMask + 1
  }
}
