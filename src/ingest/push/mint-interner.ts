// Finds the string of a mint by its bytes in a body, so that a known mint is neither decoded nor checked again. A hash table with
// two slots for each hash and a fixed number of entries: an entry that is overwritten is checked anew. All bytes are compared.
import { assert } from '../../lib/assert.ts'
import { isMint } from '../../schema/mint.ts'

const CHARACTERS_MIN = 32
const CHARACTERS_MAX = 44
const WORD_BYTES = 4
/** The length, then the characters, four to a word; the last word ends where the mint does. */
const ENTRY_WORDS = 1 + CHARACTERS_MAX / WORD_BYTES
const HASH_FACTOR = 0x9e3779b1

export class MintInterner {
  readonly #mask: number
  readonly #words: Uint32Array
  readonly #mints: (string | undefined)[]
  /** The mint that is looked for, in the form of an entry. */
  readonly #sought = new Uint32Array(ENTRY_WORDS)

  /** @param entriesMax must be a power of two. */
  constructor(entriesMax: number) {
    assert((entriesMax & (entriesMax - 1)) === 0, 'a table of mints has a power of two of entries')
    this.#mask = entriesMax - 1
    this.#words = new Uint32Array(entriesMax * ENTRY_WORDS)
    this.#mints = new Array(entriesMax).fill(undefined)
  }

  /** The mint at `from`, always as the same string while it is held; null where there is no valid mint. */
  find(body: Buffer, view: DataView, from: number, length: number): string | null {
    if (length < CHARACTERS_MIN || length > CHARACTERS_MAX) return null
    const place = this.#copyToSought(view, from, length) & this.#mask
    const first = this.#mints[place]
    if (first !== undefined && this.#isAt(place)) return first
    const second = this.#mints[place ^ 1]
    if (second !== undefined && this.#isAt(place ^ 1)) return second
    const mint = body.toString('latin1', from, from + length)
    if (!isMint(mint)) return null
    const free = first === undefined ? place : place ^ 1
    this.#words.set(this.#sought, free * ENTRY_WORDS)
    this.#mints[free] = mint
    return mint
  }

  /** Copies the mint into `#sought`. @returns its hash. */
  #copyToSought(view: DataView, from: number, length: number): number {
    const sought = this.#sought
    const last = Math.ceil(length / WORD_BYTES)
    sought[0] = length
    let hash = length
    for (let word = 1; word < ENTRY_WORDS; word++) {
      const at = word < last ? from + (word - 1) * WORD_BYTES : from + length - WORD_BYTES
      const value = word <= last ? view.getUint32(at, true) : 0
      sought[word] = value
      hash = Math.imul(hash ^ value, HASH_FACTOR)
      hash ^= hash >>> 15
    }
    return hash
  }

  #isAt(place: number): boolean {
    const at = place * ENTRY_WORDS
    for (let word = 0; word < ENTRY_WORDS; word++)
      if (this.#words[at + word] !== this.#sought[word]) return false
    return true
  }
}
