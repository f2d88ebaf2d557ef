// The tables of coupons of all tokens: which coupons a token's wallets drew, and the minute in which each was drawn last. A table is a
// hash table of words, half coupon and half minute, with linear probing; the token's block (wallet-block.ts) says where it is.

import { COUPON_WORDS_MIN, COUPON_WORDS_PER_TOKEN } from './limits.ts'
import * as walletBlock from './wallet-block.ts'
import { minuteOf } from './wallet-block.ts'
import { dayFromMs } from './windows.ts'
import { BLOCK_BITS_MAX, BLOCK_BITS_MIN, WordPool } from './word-pool.ts'

// Copied into this module, as looking up imported bindings takes time.
const { MINUTE_MASK, NEWEST, TABLE, TABLE_COUNT, TABLE_FROM } = walletBlock

/** Of a table's address plus its size. */
const BITS_MASK = (1 << BLOCK_BITS_MIN) - 1

/** Multiplied with a coupon, the upper bits say where in its table it lies. */
const SPREAD = 0x9e3779b1

/** Where a coupon lies in a table of 2 ** bits words, or behind. */
const placeIn = (bits: number, coupon: number): number => Math.imul(coupon, SPREAD) >>> (32 - bits)

const NO_WORDS = new Uint32Array()

/** In all methods `at` is where the words of the token's block begin. */
export class CouponTables {
  /** Words of all tokens' blocks. */
  readonly #words: Int32Array
  readonly #pool: WordPool
  /** The words of a table, while it is made anew or counted. */
  readonly #kept = new Uint32Array(1 << BLOCK_BITS_MAX)
  /** What was read ahead. The compiler leaves out reads whose result nobody has. */
  #read = 0

  constructor(
    words: Int32Array,
    tokensMax: number,
    wordsMax = Math.max(COUPON_WORDS_MIN, COUPON_WORDS_PER_TOKEN * tokensMax),
  ) {
    this.#words = words
    this.#pool = new WordPool(wordsMax)
  }

  /** Reads where a coupon is about to be drawn: several such reads wait for memory together, and draws one behind the other. */
  prefetch(at: number, coupon: number): void {
    const table = this.#words[at + TABLE]
    const bits = table & BITS_MASK
    this.#read ^= this.#pool.words(table)[this.#pool.offsetOf(table - bits) + placeIn(bits, coupon)]
  }

  /** Notes that a coupon was drawn. There must be a table, and may be none afterwards: it could not grow. */
  draw(at: number, coupon: number, minute: number, nowMs: number): void {
    const words = this.#words
    const table = words[at + TABLE]
    const bits = table & BITS_MASK
    const coupons = this.#pool.words(table)
    const start = this.#pool.offsetOf(table - bits)
    const mask = (1 << bits) - 1
    let place = placeIn(bits, coupon)
    for (let word = coupons[start + place]; word !== 0; word = coupons[start + place]) {
      if (word >>> 16 === coupon) {
        const newest = words[at + NEWEST]
        if (((newest - word) & MINUTE_MASK) > newest - minute)
          coupons[start + place] = (coupon << 16) | (minute & MINUTE_MASK)
        return
      }
      place = (place + 1) & mask
    }
    coupons[start + place] = (coupon << 16) | (minute & MINUTE_MASK)
    words[at + TABLE_COUNT]++
    if (words[at + TABLE_COUNT] * 5 > 4 << bits) this.rebuild(at, minuteOf(dayFromMs(nowMs)))
  }

  /** Gives the token an empty table of 2 ** bits words. @returns false: there is no room */
  take(at: number, bits = BLOCK_BITS_MIN): boolean {
    const address = this.#pool.take(bits)
    if (address === -1) return false
    this.#words[at + TABLE] = address + bits
    this.#words[at + TABLE_COUNT] = 0
    return true
  }

  /** Gives the token's table back, if it has one. */
  release(at: number): void {
    const table = this.#words[at + TABLE]
    if (table === 0) return
    this.#pool.release(table - (table & BITS_MASK), table & BITS_MASK)
    this.#words[at + TABLE] = 0
    this.#words[at + TABLE_COUNT] = 0
  }

  /** Makes the table anew of the coupons that were drawn in `fromMinute` or later. Where there is no room for it there is none. */
  rebuild(at: number, fromMinute: number): void {
    const words = this.#words
    const kept = this.youngerThan(at, words[at + NEWEST] - fromMinute + 1)
    this.release(at)
    let bits = BLOCK_BITS_MIN
    while (bits < BLOCK_BITS_MAX && kept.length * 5 > 3 << bits) bits++
    if (!this.take(at, bits)) return
    const coupons = this.table(at)
    for (let index = 0; index < kept.length; index++) {
      let place = placeIn(bits, kept[index] >>> 16)
      while (coupons[place] !== 0) place = (place + 1) & (coupons.length - 1)
      coupons[place] = kept[index]
    }
    words[at + TABLE_COUNT] = kept.length
    words[at + TABLE_FROM] = Math.max(words[at + TABLE_FROM], fromMinute)
  }

  /** The words of those coupons that are younger than so many minutes, until the next call. */
  youngerThan(at: number, minutes: number): Uint32Array {
    const newest = this.#words[at + NEWEST]
    const table = this.table(at)
    let count = 0
    for (let place = 0; place < table.length; place++) {
      const word = table[place]
      if (word !== 0 && ((newest - word) & MINUTE_MASK) < minutes) this.#kept[count++] = word
    }
    return this.#kept.subarray(0, count)
  }

  /** The table's memory; empty where the token has none. */
  table(at: number): Uint32Array {
    const table = this.#words[at + TABLE]
    if (table === 0) return NO_WORDS
    const bits = table & BITS_MASK
    const start = this.#pool.offsetOf(table - bits)
    return this.#pool.words(table).subarray(start, start + (1 << bits))
  }

  /** What a checkpoint has instead of a table's address: its size, as a power of two. 0: there is no table. */
  sizeOf(at: number): number {
    return this.#words[at + TABLE] & BITS_MASK
  }

  /**
   * Takes over a saved table, whose size and count stand in the block, from the words that begin with it. Where the pool is smaller than
   * it was, a table that finds no room is left out.
   * @returns how many words it had; null: this is no table
   */
  restore(at: number, saved: Uint32Array): number | null {
    const [bits, count] = [this.#words[at + TABLE], this.#words[at + TABLE_COUNT]]
    this.#words[at + TABLE] = 0
    this.#words[at + TABLE_COUNT] = 0
    if (bits === 0) return 0
    if (!(bits >= BLOCK_BITS_MIN && bits <= BLOCK_BITS_MAX) || count >= 1 << bits) return null
    if (saved.length < 1 << bits) return null
    if (this.take(at, bits)) {
      this.table(at).set(saved.subarray(0, 1 << bits))
      this.#words[at + TABLE_COUNT] = count
    }
    return 1 << bits
  }
}
