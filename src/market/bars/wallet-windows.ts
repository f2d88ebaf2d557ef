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
  joinedSection,
  numbersSection,
  type Saved,
  type Section,
  type SectionReader,
  slotRanges,
  wrongLength,
} from '../../lib/sections/sections.ts'
import { MINUTE_MS } from '../../lib/time.ts'
import type { WalletBytes } from '../tokens/trade-places.ts'
import { CouponTables } from './coupon-tables.ts'
import { COUPONS, couponOf, walletsOfCoupons } from './coupons.ts'
import { WALLETS_EXACT_MAX } from './limits.ts'
import { TOKEN_BLOCK, tokenBlocks, WALLETS_AT } from './token-block.ts'
import * as walletBlock from './wallet-block.ts'
import { minuteOf } from './wallet-block.ts'
import { hashBytes, hashWallet, walletHash } from './wallet-hash.ts'
import { dayFromMs } from './windows.ts'

// Copied into this module, as looking up imported bindings takes time.
const {
  EXACT_FROM,
  FIGURES,
  LATEST_COUNT,
  LATEST_FIRST,
  MINUTE_MASK,
  NEWEST,
  RING,
  TABLE,
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

/** What is older than this before the newest is dropped at each new day, long before the minutes that are kept repeat. */
const MINUTES_KEPT = 0x8000
const DAY_MINUTES = 1_440

const dayOf = (minute: number): number => Math.floor(minute / DAY_MINUTES)

export class WalletWindows implements Saved {
  // The blocks of all tokens with their bars, by words (with signs, as numbers up to 2^31 need no memory of their own) and bytes.
  readonly #words: Int32Array
  readonly #bytes: Uint8Array
  readonly #tables: CouponTables
  /** By coupon: whether it was drawn, while coupons are counted. */
  readonly #isDrawn = new Uint8Array(COUPONS)

  constructor(tokensMax: number, blocks = tokenBlocks(tokensMax), couponWordsMax?: number) {
    this.#words = new Int32Array(blocks.buffer)
    this.#bytes = new Uint8Array(this.#words.buffer)
    this.#tables = new CouponTables(this.#words, tokensMax, couponWordsMax)
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
    if (words[at + TABLE] !== 0) this.#tables.draw(at, couponOf(first, half), minute, nowMs)
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
    this.#tables.release(blockOf(slot))
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
      if (this.#tables.take(at)) words[at + TABLE_FROM] = words[at + EXACT_FROM]
    words[at + EXACT_FROM] = leaving + 1
    this.#dropLatest(slot, leaving + 1, nowMs)
  }

  /** Drops those of the latest wallets that were seen before a minute. Their coupons stay, where there is a table. */
  #dropLatest(slot: number, beforeMinute: number, nowMs: number): void {
    const words = this.#words
    const at = blockOf(slot)
    let leaving = 0
    for (; leaving < words[at + LATEST_COUNT]; leaving++) {
      const place = this.#placeOf(slot, leaving)
      if (this.#minuteAt(at, place) >= beforeMinute) break
      if (words[at + TABLE] !== 0) this.#tables.prefetch(at, this.#couponAt(place))
    }
    for (; leaving > 0; leaving--) {
      const place = this.#placeOf(slot, 0)
      if (words[at + TABLE] !== 0)
        this.#tables.draw(at, this.#couponAt(place), this.#minuteAt(at, place), nowMs)
      words[at + LATEST_COUNT]--
      words[at + LATEST_FIRST] = (words[at + LATEST_FIRST] + 1) & RING_MASK
    }
  }

  /** The coupon of the wallet at a place among the latest. */
  #couponAt(place: number): number {
    return couponOf(this.#words[place], this.#words[place + 1] >>> 16)
  }

  /** A new day begins with a sighting in `minute`: what is older than the day before it is needed by no window any more. */
  #dropOld(slot: number, minute: number, nowMs: number): void {
    const words = this.#words
    const at = blockOf(slot)
    const newest = words[at + NEWEST]
    const from = Math.max(minuteOf(dayFromMs(nowMs)), minute - MINUTES_KEPT)
    if (words[at + EXACT_FROM] <= from) this.#tables.release(at)
    else if (words[at + TABLE] !== 0) this.#tables.rebuild(at, from)
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
    for (const word of this.#tables.youngerThan(blockOf(slot), agesBelow)) {
      isDrawn[word >>> 16] = 1
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
      figures[slot * FIGURES + TABLE] = this.#tables.sizeOf(at)
    }
    yield numbersSection('wallets.figures', figures)
    for (const { part, first, end } of slotRanges(slotsUsed)) {
      const latest: Uint32Array[] = []
      const tables: Uint32Array[] = []
      for (let slot = first; slot < end; slot++) {
        const { firsts, seconds } = this.#latestOf(slot)
        latest.push(firsts, seconds)
        tables.push(this.#tables.table(blockOf(slot)))
      }
      yield joinedSection(`wallets.latest.${part}`, latest)
      yield joinedSection(`wallets.coupons.${part}`, tables)
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
        const words = this.#tables.restore(blockOf(slot), tables.subarray(tableAt))
        if (words === null) throw notWallets()
        tableAt += words
      }
      if (latestAt !== latest.length) throw wrongLength(`wallets.latest.${part}`)
      if (tableAt !== tables.length) throw wrongLength(`wallets.coupons.${part}`)
      yield
    }
  }
}

const notWallets = (): CheckpointError =>
  new CheckpointError('The sections of wallets do not belong together.')
