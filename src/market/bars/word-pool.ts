// Blocks of 32-bit words whose sizes are powers of two, for all tokens together (a buddy allocator): a block that is given back
// becomes one with its free other half, so that what was many small blocks can be a large one later.
import { assert } from '../../lib/assert.ts'
import { lastingMemory } from '../../lib/memory.ts'

/** Sizes of blocks are 2 to the power of these, and of all between. */
export const BLOCK_BITS_MIN = 7
export const BLOCK_BITS_MAX = 16

/** Memory is asked for in segments, and used only as far as it was written to. Few of them are found faster than many. */
const SEGMENT_BITS = 20
const SEGMENT_WORDS = 1 << SEGMENT_BITS
const OFFSET_MASK = SEGMENT_WORDS - 1
const NONE = 0xffffffff

export class WordPool {
  /** Words of the blocks that are taken. What is taken decides alone whether another block can be: not how memory is divided. */
  takenWords = 0
  readonly #wordsMax: number
  readonly #segments: Uint32Array[] = []
  /** By segment and place of a smallest block: the size, as a power of two, of the free block that begins there; 0: none. */
  readonly #freeBits: Uint8Array[] = []
  /** By size, as a power of two: the first free block. The first two words of each are the next one and the one before. */
  readonly #first = new Uint32Array(SEGMENT_BITS + 1).fill(NONE)

  constructor(wordsMax: number) {
    this.#wordsMax = wordsMax
  }

  /** A block of 2 ** bits words, all 0. @returns its address, or -1 where this would be more words than the maximum */
  take(bits: number): number {
    assert(
      bits >= BLOCK_BITS_MIN && bits <= BLOCK_BITS_MAX,
      'blocks have a size between the least and the largest',
    )
    if (this.takenWords + (1 << bits) > this.#wordsMax) return -1
    this.takenWords += 1 << bits
    const address = this.#takeFree(bits)
    const words = this.words(address)
    const offset = address & OFFSET_MASK
    words.fill(0, offset, offset + (1 << bits))
    return address
  }

  /** Gives a block back. */
  release(address: number, bits: number): void {
    this.takenWords -= 1 << bits
    let [start, size] = [address, bits]
    while (size < SEGMENT_BITS) {
      const other = (start ^ (1 << size)) >>> 0
      if (this.#freeBitsAt(other) !== size) break
      this.#unlink(other, size)
      start = Math.min(start, other)
      size++
    }
    this.#link(start, size)
  }

  /** The words among which a block lies, from `offsetOf(address)` on. */
  words(address: number): Uint32Array {
    return this.#segments[address >>> SEGMENT_BITS]
  }

  offsetOf(address: number): number {
    return address & OFFSET_MASK
  }

  #takeFree(bits: number): number {
    let size = bits
    while (size <= SEGMENT_BITS && this.#first[size] === NONE) size++
    if (size > SEGMENT_BITS) this.#addSegment()
    size = Math.min(size, SEGMENT_BITS)
    const address = this.#first[size]
    this.#unlink(address, size)
    while (size > bits) this.#link(address + (1 << --size), size)
    return address
  }

  #addSegment(): void {
    const address = this.#segments.length * SEGMENT_WORDS
    this.#segments.push(new Uint32Array(lastingMemory(SEGMENT_WORDS * 4)))
    this.#freeBits.push(new Uint8Array(1 << (SEGMENT_BITS - BLOCK_BITS_MIN)))
    this.#link(address, SEGMENT_BITS)
  }

  #freeBitsAt(address: number): number {
    return this.#freeBits[address >>> SEGMENT_BITS][(address & OFFSET_MASK) >>> BLOCK_BITS_MIN]
  }

  #setFreeBits(address: number, bits: number): void {
    this.#freeBits[address >>> SEGMENT_BITS][(address & OFFSET_MASK) >>> BLOCK_BITS_MIN] = bits
  }

  #link(address: number, bits: number): void {
    const next = this.#first[bits]
    const words = this.words(address)
    words[address & OFFSET_MASK] = next
    words[(address & OFFSET_MASK) + 1] = NONE
    if (next !== NONE) this.words(next)[(next & OFFSET_MASK) + 1] = address
    this.#first[bits] = address
    this.#setFreeBits(address, bits)
  }

  #unlink(address: number, bits: number): void {
    const words = this.words(address)
    const next = words[address & OFFSET_MASK]
    const before = words[(address & OFFSET_MASK) + 1]
    if (before === NONE) this.#first[bits] = next
    else this.words(before)[before & OFFSET_MASK] = next
    if (next !== NONE) this.words(next)[(next & OFFSET_MASK) + 1] = before
    this.#setFreeBits(address, 0)
  }
}
