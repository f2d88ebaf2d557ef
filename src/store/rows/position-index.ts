// Finds where records lie by the hash of an identity, without objects for the garbage collector.
import { hashText } from '../../lib/text/hash-text.ts'

/** A position is packed into one double: a record starts below 2^27 and is shorter than 2^24 bytes, so 53 bits suffice. */
const LENGTH_FACTOR = 2 ** 24
const SLOTS_MIN = 64

/** Never 0: a record has a length. */
export const packPosition = (offset: number, length: number): number => offset * LENGTH_FACTOR + length

export const unpackPosition = (packed: number): { offset: number; length: number } => ({
  offset: Math.floor(packed / LENGTH_FACTOR),
  length: packed % LENGTH_FACTOR,
})

/**
 * Packed positions by the hash of an identity. A log may hold a million submissions, so the identities themselves are not
 * kept: the caller checks each record that is found. Open addressing with linear probing, at most half full.
 */
export class PositionIndex {
  #hashes = new Uint32Array(SLOTS_MIN)
  /** 0 marks a free slot. */
  #positions = new Float64Array(SLOTS_MIN)
  #count = 0

  add(id: string, packed: number): void {
    if (this.#count * 2 >= this.#positions.length) this.#grow()
    this.#put(hashText(id), packed)
    this.#count++
  }

  *find(id: string): Generator<number> {
    const mask = this.#positions.length - 1
    const hash = hashText(id)
    for (let slot = hash & mask; this.#positions[slot] !== 0; slot = (slot + 1) & mask)
      if (this.#hashes[slot] === hash) yield this.#positions[slot]
  }

  #put(hash: number, packed: number): void {
    const mask = this.#positions.length - 1
    let slot = hash & mask
    while (this.#positions[slot] !== 0) slot = (slot + 1) & mask
    this.#hashes[slot] = hash
    this.#positions[slot] = packed
  }

  #grow(): void {
    const [hashes, positions] = [this.#hashes, this.#positions]
    this.#hashes = new Uint32Array(2 * hashes.length)
    this.#positions = new Float64Array(2 * positions.length)
    positions.forEach((packed, slot) => {
      if (packed !== 0) this.#put(hashes[slot], packed)
    })
  }
}
