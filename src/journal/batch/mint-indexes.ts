// Numbers the mints of a batch, in the order in which they first come. One table serves all batches: that of a Map, made anew for each
// of thousands of mints, is so large that V8 takes it for something that stays, and has to mark the heap to be rid of it.
import { hashText } from '../../lib/text/hash-text.ts'

export class MintIndexes {
  /** In the order of their indexes; behind `#count` those of earlier batches. */
  readonly #mints: string[] = []
  #count = 0
  /** Open addressing with linear probing: indexes from 1; 0 marks a free place. */
  readonly #places: Uint16Array

  /** @param mintsMax how many different ones a batch may have */
  constructor(mintsMax: number) {
    this.#places = new Uint16Array(2 ** Math.ceil(Math.log2(2 * mintsMax)))
  }

  get count(): number {
    return this.#count
  }

  /** @returns the mint's index; `count` as it was before, where the mint is new */
  add(mint: string): number {
    const mask = this.#places.length - 1
    let place = hashText(mint) & mask
    for (; this.#places[place] !== 0; place = (place + 1) & mask) {
      const index = this.#places[place] - 1
      if (this.#mints[index] === mint) return index
    }
    this.#mints[this.#count] = mint
    this.#places[place] = ++this.#count
    return this.#count - 1
  }

  /** UTF-16 units of each mint. */
  lengths(): Uint16Array {
    const lengths = new Uint16Array(this.#count)
    for (let index = 0; index < lengths.length; index++) lengths[index] = this.#mints[index].length
    return lengths
  }

  clear(): void {
    this.#count = 0
    this.#places.fill(0)
  }
}
