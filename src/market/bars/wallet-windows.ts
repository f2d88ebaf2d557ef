// Counts the different wallets that traded a token since a minute within the last day. Of each token there are
//
// - the wallets seen latest, WALLETS_EXACT_MAX at most, with the minute in which each was last seen: a window that all of its wallets
//   are among is counted exactly;
// - once those of a day are more, a table of coupons (coupons.ts) with the minute in which each was last drawn by a wallet that is not
//   among the latest any more: how many coupons there are since a minute tells how many wallets.
//
// A sighting may come in any order: what is answered is the same.

import { CheckpointError } from '../../lib/sections/checkpoint-error.ts'
import {
  numbersSection,
  type Saved,
  type Section,
  type SectionReader,
  slotRanges,
  wrongLength,
} from '../../lib/sections/sections.ts'
import { MINUTE_MS } from '../../lib/time.ts'
import type { WalletBytes } from '../tokens/trade-places.ts'
import { COUPONS, couponOf, walletsOfCoupons } from './coupons.ts'
import { COUPON_WORDS_MIN, COUPON_WORDS_PER_TOKEN, WALLETS_EXACT_MAX } from './limits.ts'
import { TOKEN_BLOCK, tokenBlocks, WALLETS_AT } from './token-block.ts'
import * as walletBlock from './wallet-block.ts'
import { minuteOf } from './wallet-block.ts'
import { hashBytes, hashWallet, walletHash } from './wallet-hash.ts'
import { dayFromMs } from './windows.ts'
import { BLOCK_BITS_MAX, BLOCK_BITS_MIN, WordPool } from './word-pool.ts'

// Copied into this module, as looking up imported bindings takes time.
const {
  EXACT_FROM,
  FIGURES,
  LATEST_COUNT,
  LATEST_FIRST,
  NEWEST,
  RING,
  TABLE,
  TABLE_COUNT,
  TABLE_FROM,
  TAGS,
  WHOLE_FROM,
} = walletBlock

const LOWEST_BITS = 0x01010101
const HIGHEST_BITS = 0x80808080

const RING_MASK = WALLETS_EXACT_MAX - 1
/** From a token's block to that of the next. */
const TOKEN_WORDS = TOKEN_BLOCK * 2
const FIRST_BLOCK = WALLETS_AT * 2
const LINE_WORDS = 16
const blockOf = (slot: number): number => FIRST_BLOCK + slot * TOKEN_WORDS

/** Of a minute 16 bits are kept. What is older than this before the newest is dropped at each new day, long before they repeat. */
const MINUTE_MASK = 0xffff
const MINUTES_KEPT = 0x8000
const DAY_MINUTES = 1_440

/** Of a table's address plus its size. */
const BITS_MASK = (1 << BLOCK_BITS_MIN) - 1

/** Multiplied with a coupon, the upper bits say where in its table it lies. */
const SPREAD = 0x9e3779b1

const dayOf = (minute: number): number => Math.floor(minute / DAY_MINUTES)

export class WalletWindows implements Saved {
  // The blocks of all tokens with their bars, by words (with signs, as numbers up to 2^31 need no memory of their own) and bytes.
  readonly #words: Int32Array
  readonly #bytes: Uint8Array
  readonly #pool: WordPool
  /** The words of a table, while it is made anew or counted. */
  readonly #kept = new Uint32Array(1 << BLOCK_BITS_MAX)
  /** By coupon: whether it was drawn, while coupons are counted. */
  readonly #isDrawn = new Uint8Array(COUPONS)

  constructor(
    tokensMax: number,
    blocks = tokenBlocks(tokensMax),
    couponWordsMax = Math.max(COUPON_WORDS_MIN, COUPON_WORDS_PER_TOKEN * tokensMax),
  ) {
    this.#words = new Int32Array(blocks.buffer)
    this.#bytes = new Uint8Array(this.#words.buffer)
    this.#pool = new WordPool(couponWordsMax)
  }

  /** Reads a number of each line of memory that a trade of the token touches first, see events/prefetch.ts. @returns their sum */
  prefetch(slot: number): number {
    const [words, at] = [this.#words, blockOf(slot)]
    return words[at] + words[at + LINE_WORDS] + words[this.#placeOf(slot, words[at + LATEST_COUNT])]
  }

  /**
   * A trade of the token.
   * @param wallet null: nobody knows whose it was, and windows that contain it have no answer
   * @param bytes where the wallet lies in memory; null: elsewhere
   */
  add(
    slot: number,
    wallet: string | null,
    tsMs: number,
    nowMs: number,
    bytes: WalletBytes | null = null,
  ): void {
    const words = this.#words
    const at = blockOf(slot)
    const minute = minuteOf(tsMs)
    if (wallet === null) {
      words[at + WHOLE_FROM] = Math.max(words[at + WHOLE_FROM], minute + 1)
      return
    }
    if (minute > words[at + NEWEST]) {
      if (dayOf(minute) > dayOf(words[at + NEWEST])) this.#dropOld(slot, minute, nowMs)
      words[at + NEWEST] = minute
    } else if (minute <= words[at + NEWEST] - MINUTES_KEPT) {
      words[at + WHOLE_FROM] = Math.max(words[at + WHOLE_FROM], minute + 1)
      return
    }
    if (bytes === null) hashWallet(wallet)
    else hashBytes(bytes)
    const first = walletHash[0]
    const half = walletHash[1] >>> 16
    // A sighting before EXACT_FROM is needed by no window that is counted exactly.
    if (minute >= words[at + EXACT_FROM] && this.#see(slot, first, half, minute, nowMs)) return
    if (words[at + TABLE] !== 0) this.#draw(slot, couponOf(first, half), minute, nowMs)
  }

  /**
   * How many wallets traded the token at `fromMs` or later, a whole minute of the last day or, where the token is younger, its
   * launch. null: not all of their trades are known.
   */
  countSince(slot: number, fromMs: number): number | null {
    const words = this.#words
    const at = blockOf(slot)
    const from = minuteOf(fromMs)
    if (words[at + WHOLE_FROM] * MINUTE_MS > fromMs) return null
    const agesBelow = words[at + NEWEST] - from + 1
    if (from >= words[at + EXACT_FROM]) return this.#countLatest(slot, agesBelow)
    if (words[at + TABLE] === 0 || from < words[at + TABLE_FROM]) return null
    // More than are known exactly, as there are others.
    return Math.max(WALLETS_EXACT_MAX + 1, Math.round(walletsOfCoupons(this.#countCoupons(slot, agesBelow))))
  }

  /** What was seen of the token is not to be used: market time has gone back to `timeMs`, before some of it. */
  forgetBefore(slot: number, timeMs: number): void {
    this.clear(slot)
    const minute = minuteOf(timeMs)
    this.#words[blockOf(slot) + NEWEST] = minute
    this.#words[blockOf(slot) + WHOLE_FROM] = minute + 1
  }

  /** Market time has gone back to `timeMs`, and all that was seen of the token is older. */
  rewindTo(slot: number, timeMs: number): void {
    const at = blockOf(slot)
    for (const from of [WHOLE_FROM, TABLE_FROM])
      this.#words[at + from] = Math.min(this.#words[at + from], minuteOf(timeMs) + 1)
  }

  /** Forgets a token. */
  clear(slot: number): void {
    this.#releaseTable(slot)
    this.#words.fill(0, blockOf(slot), blockOf(slot) + FIGURES)
  }

  /** Notes a wallet among the latest. @returns false where it was seen longer ago than all of them, and there is no place for it */
  #see(slot: number, first: number, half: number, minute: number, nowMs: number): boolean {
    const words = this.#words
    const at = blockOf(slot)
    const index = this.#find(slot, first, half)
    if (index !== -1) {
      if (minute > this.#minuteAt(at, this.#placeOf(slot, index))) {
        this.#takeOut(slot, index)
        this.#putIn(slot, first, half, minute)
      }
      return true
    }
    if (words[at + LATEST_COUNT] === WALLETS_EXACT_MAX) {
      this.#makeRoom(slot, minute, nowMs)
      if (minute < words[at + EXACT_FROM]) return false
    }
    this.#putIn(slot, first, half, minute)
    return true
  }

  /** Where among the latest a wallet is, in order of their minutes, or -1. */
  #find(slot: number, first: number, half: number): number {
    const words = this.#words
    const oldest = this.#words[blockOf(slot) + LATEST_FIRST] | 0
    const count = this.#words[blockOf(slot) + LATEST_COUNT] | 0
    const tags = blockOf(slot) + TAGS
    const ring = blockOf(slot) + RING
    const tagWords = (Math.min(oldest + count, WALLETS_EXACT_MAX) + 3) >> 2
    const pattern = Math.imul(first >>> 24, LOWEST_BITS)
    for (let word = 0; word < tagWords; word++) {
      const different = words[tags + word] ^ pattern
      // The highest bit of the lowest byte that is 0, and of bytes above it that may be.
      let maybeEqual = (different - LOWEST_BITS) & ~different & HIGHEST_BITS
      for (; maybeEqual !== 0; maybeEqual &= maybeEqual - 1) {
        const turn = (word << 2) | ((31 - Math.clz32(maybeEqual & -maybeEqual)) >> 3)
        if (words[ring + 2 * turn] !== first || words[ring + 2 * turn + 1] >>> 16 !== half) continue
        const index = (turn - oldest) & RING_MASK
        // Otherwise nobody is at this place any more.
        if (index < count) return index
      }
    }
    return -1
  }

  /** Where the two words of one of the latest wallets are. @param index in order of their minutes */
  #placeOf(slot: number, index: number): number {
    const oldest = this.#words[blockOf(slot) + LATEST_FIRST] | 0
    return blockOf(slot) + RING + 2 * ((oldest + index) & RING_MASK)
  }

  /** Writes one of the latest wallets. */
  #write(slot: number, index: number, first: number, second: number): void {
    const place = this.#placeOf(slot, index)
    this.#words[place] = first
    this.#words[place + 1] = second
    const ring = blockOf(slot) + RING
    this.#bytes[4 * (blockOf(slot) + TAGS) + (place - ring) / 2] = first >>> 24
  }

  /** When the wallet at a place was seen. @param at of the token's block */
  #minuteAt(at: number, place: number): number {
    const newest = this.#words[at + NEWEST]
    return newest - ((newest - this.#words[place + 1]) & MINUTE_MASK)
  }

  /** Takes a wallet out of the latest: those that were seen later move up. */
  #takeOut(slot: number, index: number): void {
    const words = this.#words
    const at = blockOf(slot)
    const last = (this.#words[at + LATEST_COUNT] | 0) - 1
    this.#words[at + LATEST_COUNT] = last
    for (let moved = index; moved < last; moved++) {
      const from = this.#placeOf(slot, moved + 1)
      this.#write(slot, moved, words[from], words[from + 1])
    }
  }

  /** Puts a wallet among the latest, behind those that were not seen later. There must be room. */
  #putIn(slot: number, first: number, half: number, minute: number): void {
    const words = this.#words
    const at = blockOf(slot)
    let index = this.#words[at + LATEST_COUNT] | 0
    this.#words[at + LATEST_COUNT] = index + 1
    for (; index > 0; index--) {
      const before = this.#placeOf(slot, index - 1)
      if (this.#minuteAt(at, before) <= minute) break
      this.#write(slot, index, words[before], words[before + 1])
    }
    this.#write(slot, index, first, (half << 16) | (minute & MINUTE_MASK))
  }

  /**
   * There are more wallets than are known exactly: the latest and one that was seen in `minute`. Those that were seen in the oldest
   * minute leave, as no window that has them is counted exactly from now on; where they are of the day, their coupons stay.
   */
  #makeRoom(slot: number, minute: number, nowMs: number): void {
    const words = this.#words
    const at = blockOf(slot)
    const leaving = Math.min(minute, this.#minuteAt(at, this.#placeOf(slot, 0)))
    if (words[at + TABLE] === 0 && leaving >= minuteOf(dayFromMs(nowMs)))
      if (this.#takeTable(slot, BLOCK_BITS_MIN)) words[at + TABLE_FROM] = words[at + EXACT_FROM]
    words[at + EXACT_FROM] = leaving + 1
    this.#dropLatest(slot, leaving + 1, nowMs)
  }

  /** Drops those of the latest wallets that were seen before a minute. Their coupons stay, where there is a table. */
  #dropLatest(slot: number, beforeMinute: number, nowMs: number): void {
    const words = this.#words
    const at = blockOf(slot)
    for (; words[at + LATEST_COUNT] > 0; words[at + LATEST_COUNT]--) {
      const place = this.#placeOf(slot, 0)
      const minute = this.#minuteAt(at, place)
      if (minute >= beforeMinute) return
      if (words[at + TABLE] !== 0)
        this.#draw(slot, couponOf(words[place], words[place + 1] >>> 16), minute, nowMs)
      words[at + LATEST_FIRST] = (words[at + LATEST_FIRST] + 1) & RING_MASK
    }
  }

  /** Notes that a coupon was drawn. */
  #draw(slot: number, coupon: number, minute: number, nowMs: number): void {
    const words = this.#words
    const at = blockOf(slot)
    const table = words[at + TABLE]
    const bits = table & BITS_MASK
    const coupons = this.#pool.words(table)
    const start = this.#pool.offsetOf(table - bits)
    const mask = (1 << bits) - 1
    let place = Math.imul(coupon, SPREAD) >>> (32 - bits)
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
    if (words[at + TABLE_COUNT] * 5 > 4 << bits) this.#rebuild(slot, minuteOf(dayFromMs(nowMs)))
  }

  #takeTable(slot: number, bits: number): boolean {
    const address = this.#pool.take(bits)
    if (address === -1) return false
    const at = blockOf(slot)
    this.#words[at + TABLE] = address + bits
    this.#words[at + TABLE_COUNT] = 0
    return true
  }

  #releaseTable(slot: number): void {
    const at = blockOf(slot)
    const table = this.#words[at + TABLE]
    if (table === 0) return
    this.#pool.release(table - (table & BITS_MASK), table & BITS_MASK)
    this.#words[at + TABLE] = 0
    this.#words[at + TABLE_COUNT] = 0
  }

  /** Makes the table anew of the coupons that were drawn in `fromMinute` or later. Where there is no room for it there is none. */
  #rebuild(slot: number, fromMinute: number): void {
    const words = this.#words
    const at = blockOf(slot)
    const kept = this.#keepCoupons(slot, words[at + NEWEST] - fromMinute + 1)
    this.#releaseTable(slot)
    let bits = BLOCK_BITS_MIN
    while (bits < BLOCK_BITS_MAX && kept * 5 > 3 << bits) bits++
    if (!this.#takeTable(slot, bits)) return
    const coupons = this.#table(slot)
    for (let index = 0; index < kept; index++) {
      const word = this.#kept[index]
      let place = Math.imul(word >>> 16, SPREAD) >>> (32 - bits)
      while (coupons[place] !== 0) place = (place + 1) & (coupons.length - 1)
      coupons[place] = word
    }
    words[at + TABLE_COUNT] = kept
    words[at + TABLE_FROM] = Math.max(words[at + TABLE_FROM], fromMinute)
  }

  /** Copies those coupons of the table to `kept` that are younger than so many minutes. @returns how many there are */
  #keepCoupons(slot: number, agesBelow: number): number {
    const newest = this.#words[blockOf(slot) + NEWEST]
    const table = this.#table(slot)
    let count = 0
    for (let place = 0; place < table.length; place++) {
      const word = table[place]
      if (word !== 0 && ((newest - word) & MINUTE_MASK) < agesBelow) this.#kept[count++] = word
    }
    return count
  }

  /** The table's memory. */
  #table(slot: number): Uint32Array {
    const table = this.#words[blockOf(slot) + TABLE]
    if (table === 0) return NO_WORDS
    const bits = table & BITS_MASK
    const start = this.#pool.offsetOf(table - bits)
    return this.#pool.words(table).subarray(start, start + (1 << bits))
  }

  /** A new day begins with a sighting in `minute`: what is older than the day before it is needed by no window any more. */
  #dropOld(slot: number, minute: number, nowMs: number): void {
    const words = this.#words
    const at = blockOf(slot)
    const newest = words[at + NEWEST]
    const from = Math.max(minuteOf(dayFromMs(nowMs)), minute - MINUTES_KEPT)
    if (words[at + EXACT_FROM] <= from) this.#releaseTable(slot)
    else if (words[at + TABLE] !== 0) this.#rebuild(slot, from)
    this.#dropLatest(slot, from, nowMs)
    if (newest !== 0) words[at + WHOLE_FROM] = Math.max(words[at + WHOLE_FROM], from)
  }

  #countLatest(slot: number, agesBelow: number): number {
    const newest = this.#words[blockOf(slot) + NEWEST]
    const { seconds } = this.#latestOf(slot)
    let index = seconds.length
    while (index > 0 && ((newest - seconds[index - 1]) & MINUTE_MASK) < agesBelow) index--
    return seconds.length - index
  }

  /** How many different coupons were drawn, by the latest wallets too. */
  #countCoupons(slot: number, agesBelow: number): number {
    const newest = this.#words[blockOf(slot) + NEWEST]
    const isDrawn = this.#isDrawn.fill(0)
    let count = 0
    for (let index = this.#keepCoupons(slot, agesBelow) - 1; index >= 0; index--) {
      isDrawn[this.#kept[index] >>> 16] = 1
      count++
    }
    const { firsts, seconds } = this.#latestOf(slot)
    for (let index = 0; index < firsts.length; index++) {
      const coupon = couponOf(firsts[index], seconds[index] >>> 16)
      if (((newest - seconds[index]) & MINUTE_MASK) >= agesBelow || isDrawn[coupon] === 1) continue
      isDrawn[coupon] = 1
      count++
    }
    return count
  }

  /** Copies of the first and second words of a token's latest wallets, in order. */
  #latestOf(slot: number): { firsts: Uint32Array; seconds: Uint32Array } {
    const count = this.#words[blockOf(slot) + LATEST_COUNT]
    const [firsts, seconds] = [new Uint32Array(count), new Uint32Array(count)]
    for (let index = 0; index < count; index++) {
      const place = this.#placeOf(slot, index)
      firsts[index] = this.#words[place]
      seconds[index] = this.#words[place + 1]
    }
    return { firsts, seconds }
  }

  *save(slotsUsed: number): Iterable<Section> {
    const figures = new Float64Array(slotsUsed * FIGURES)
    for (let slot = 0; slot < slotsUsed; slot++) {
      const at = blockOf(slot)
      figures.set(this.#words.subarray(at, at + FIGURES), slot * FIGURES)
      figures[slot * FIGURES + LATEST_FIRST] = 0
      figures[slot * FIGURES + TABLE] %= BITS_MASK + 1
    }
    yield numbersSection('wallets.figures', figures)
    for (const { part, first, end } of slotRanges(slotsUsed)) {
      const latest: Uint32Array[] = []
      const tables: Uint32Array[] = []
      for (let slot = first; slot < end; slot++) {
        const { firsts, seconds } = this.#latestOf(slot)
        latest.push(firsts, seconds)
        tables.push(this.#table(slot))
      }
      yield numbersSection(`wallets.latest.${part}`, joined(latest))
      yield numbersSection(`wallets.coupons.${part}`, joined(tables))
    }
  }

  /** Of a checkpoint that has no wallets: those of trades until `timeMs` are not known. */
  beginAt(slotsUsed: number, timeMs: number): void {
    for (let slot = 0; slot < slotsUsed; slot++) this.forgetBefore(slot, timeMs)
  }

  *restore(sections: SectionReader, slotsUsed: number): Iterable<void> {
    if (!sections.has('wallets.figures')) return
    const figures = new Float64Array(slotsUsed * FIGURES)
    sections.fill('wallets.figures', figures)
    for (const { part, first, end } of slotRanges(slotsUsed)) {
      const latest = sections.uint32(`wallets.latest.${part}`)
      const tables = sections.uint32(`wallets.coupons.${part}`)
      let [latestAt, tableAt] = [0, 0]
      for (let slot = first; slot < end; slot++) {
        this.#words.set(figures.subarray(slot * FIGURES, (slot + 1) * FIGURES), blockOf(slot))
        const count = figures[slot * FIGURES + LATEST_COUNT]
        if (!(count <= WALLETS_EXACT_MAX)) throw notWallets()
        for (let index = 0; index < count; index++, latestAt++)
          this.#write(slot, index, latest[latestAt], latest[latestAt + count])
        latestAt += count
        tableAt += this.#restoreTable(slot, tables, tableAt)
      }
      if (latestAt !== latest.length) throw wrongLength(`wallets.latest.${part}`)
      if (tableAt !== tables.length) throw wrongLength(`wallets.coupons.${part}`)
      yield
    }
  }

  /** Where the pool is smaller than it was, tables that find no room are left out. @returns how many words it had */
  #restoreTable(slot: number, tables: Uint32Array, tableAt: number): number {
    const at = blockOf(slot)
    const [bits, count] = [this.#words[at + TABLE], this.#words[at + TABLE_COUNT]]
    this.#words[at + TABLE] = 0
    this.#words[at + TABLE_COUNT] = 0
    if (bits === 0) return 0
    if (!(bits >= BLOCK_BITS_MIN && bits <= BLOCK_BITS_MAX) || count >= 1 << bits) throw notWallets()
    const words = tables.subarray(tableAt, tableAt + (1 << bits))
    if (this.#takeTable(slot, bits)) {
      this.#table(slot).set(words)
      this.#words[at + TABLE_COUNT] = count
    }
    return 1 << bits
  }
}

const NO_WORDS = new Uint32Array()

function joined(parts: readonly Uint32Array[]): Uint32Array {
  const all = new Uint32Array(parts.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const part of parts) {
    all.set(part, at)
    at += part.length
  }
  return all
}

const notWallets = (): CheckpointError =>
  new CheckpointError('The sections of wallets do not belong together.')
