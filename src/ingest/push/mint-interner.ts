// In: the bytes of a mint as they stand in a body. Out: the one string that stands for it, checked the first time. Two
// places for each hash, and no more entries than there is room for: what is forgotten is checked anew. Never trusts a
// hash: every byte is compared.
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
  /** What is looked for, in the form of an entry. */
  readonly #sought = new Uint32Array(ENTRY_WORDS)

  /** @param entriesMax a power of two. */
  constructor(entriesMax: number) {
    assert((entriesMax & (entriesMax - 1)) === 0, 'a table of mints has a power of two of entries')
    this.#mask = entriesMax - 1
    this.#words = new Uint32Array(entriesMax * ENTRY_WORDS)
    this.#mints = new Array(entriesMax).fill(undefined)
  }

  /** The mint that stands at `from`, as the string that every look-up of it gives; null where none stands there. */
  find(body: Buffer, view: DataView, from: number, length: number): string | null {
    if (length < CHARACTERS_MIN || length > CHARACTERS_MAX) return null
    const place = this.#seek(view, from, length) & this.#mask
    if (this.#isAt(place)) return this.#mints[place]!
    if (this.#isAt(place ^ 1)) return this.#mints[place ^ 1]!
    const mint = body.toString('latin1', from, from + length)
    if (!isMint(mint)) return null
    const free = this.#mints[place] === undefined ? place : place ^ 1
    this.#words.set(this.#sought, free * ENTRY_WORDS)
    this.#mints[free] = mint
    return mint
  }

  /** Takes up what is looked for. @returns its hash. */
  #seek(view: DataView, from: number, length: number): number {
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
