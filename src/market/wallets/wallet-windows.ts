// Counts the different wallets that traded a token since a minute within the last day. Of each token there are
//
// - the wallets seen latest, WALLETS_EXACT_MAX at most, with the minute in which each was last seen: a window that all of its wallets
//   are among is counted exactly;
// - once those of a day are more, a table of coupons (coupons.ts) with the minute in which each was last drawn by a wallet that is not
//   among the latest any more: how many coupons there are since a minute tells how many wallets.
//
// A sighting may come in any order: what is answered is the same.
import { MINUTE_MS } from '../../lib/time.ts'
import { dayFromMs } from '../bars/windows.ts'
import { CheckpointError } from '../checkpoint/checkpoint-error.ts'
import {
  numbersSection,
  type Saved,
  type Section,
  type SectionReader,
  slotRanges,
  wrongLength,
} from '../checkpoint/sections.ts'
import { COUPON_WORDS_MIN, COUPON_WORDS_PER_TOKEN, WALLETS_EXACT_MAX } from '../limits.ts'
import { COUPONS, couponOf, walletsOfCoupons } from './coupons.ts'
import { hashWallet, walletHash } from './wallet-hash.ts'
import { BLOCK_BITS_MAX, BLOCK_BITS_MIN, WordPool } from './word-pool.ts'

// A token's figures, side by side. Minutes are those since 1970.
const FIGURES = 8
/** The latest minute of a sighting. */
const NEWEST = 0
/** Sightings before this minute may be missing. */
const WHOLE_FROM = 1
/** Every wallet that was seen in this minute or later is among the latest. */
const EXACT_FROM = 2
/** How many wallets are among the latest, and the place of the one that was seen longest ago. */
const LATEST_COUNT = 3
const LATEST_FIRST = 4
/** The table's address plus its size as a power of two, which is less than the least distance of addresses; 0: there is none. */
const TABLE = 5
/** Coupons in the table. */
const TABLE_COUNT = 6
/** Coupons that were drawn before this minute may be missing in the table. */
const TABLE_FROM = 7

/**
 * The latest wallets of a token are a ring, in order of the minutes in which they were seen. The first words of their hashes are side
 * by side, to be looked through fast; so many words behind each is half of the second word, and the minute.
 */
const SECOND_WORDS = WALLETS_EXACT_MAX
const RING_MASK = WALLETS_EXACT_MAX - 1
const LATEST_WORDS = 2 * WALLETS_EXACT_MAX

/** Of a minute 16 bits are kept. What is older than this before the newest is dropped at each new day, long before they repeat. */
const MINUTE_MASK = 0xffff
const MINUTES_KEPT = 0x8000
const DAY_MINUTES = 1_440

/** Of a table's address plus its size. */
const BITS_MASK = (1 << BLOCK_BITS_MIN) - 1

/** Multiplied with a coupon, the upper bits say where in its table it lies. */
const SPREAD = 0x9e3779b1

const minuteOf = (timeMs: number): number => Math.floor(timeMs / MINUTE_MS)
const dayOf = (minute: number): number => Math.floor(minute / DAY_MINUTES)

export class WalletWindows implements Saved {
  readonly #figures: Float64Array
  /** With signs, as numbers up to 2^31 need no memory of their own. */
  readonly #latest: Int32Array
  readonly #pool: WordPool
  /** The words of a table, while it is made anew or counted. */
  readonly #kept = new Uint32Array(1 << BLOCK_BITS_MAX)
  /** By coupon: whether it was drawn, while coupons are counted. */
  readonly #isDrawn = new Uint8Array(COUPONS)

  constructor(
    tokensMax: number,
    couponWordsMax = Math.max(COUPON_WORDS_MIN, COUPON_WORDS_PER_TOKEN * tokensMax),
  ) {
    this.#figures = new Float64Array(tokensMax * FIGURES)
    this.#latest = new Int32Array(tokensMax * LATEST_WORDS)
    this.#pool = new WordPool(couponWordsMax)
  }

  /** A trade of the token. @param wallet null: nobody knows whose it was, and windows that contain it have no answer */
  add(slot: number, wallet: string | null, tsMs: number, nowMs: number): void {
    const figures = this.#figures
    const at = slot * FIGURES
    const minute = minuteOf(tsMs)
    if (wallet === null) {
      figures[at + WHOLE_FROM] = Math.max(figures[at + WHOLE_FROM], minute + 1)
      return
    }
    if (minute > figures[at + NEWEST]) {
      if (dayOf(minute) > dayOf(figures[at + NEWEST])) this.#dropOld(slot, minute, nowMs)
      figures[at + NEWEST] = minute
    } else if (minute <= figures[at + NEWEST] - MINUTES_KEPT) {
      figures[at + WHOLE_FROM] = Math.max(figures[at + WHOLE_FROM], minute + 1)
      return
    }
    hashWallet(wallet)
    const first = walletHash[0]
    const half = walletHash[1] >>> 16
    // A sighting before EXACT_FROM is needed by no window that is counted exactly.
    if (minute >= figures[at + EXACT_FROM] && this.#see(slot, first, half, minute, nowMs)) return
    if (figures[at + TABLE] !== 0) this.#draw(slot, couponOf(first, half), minute, nowMs)
  }

  /**
   * How many wallets traded the token at `fromMs` or later, a whole minute of the last day or, where the token is younger, its
   * launch. null: not all of their trades are known.
   */
  countSince(slot: number, fromMs: number): number | null {
    const figures = this.#figures
    const at = slot * FIGURES
    const from = minuteOf(fromMs)
    if (figures[at + WHOLE_FROM] * MINUTE_MS > fromMs) return null
    const agesBelow = figures[at + NEWEST] - from + 1
    if (from >= figures[at + EXACT_FROM]) return this.#countLatest(slot, agesBelow)
    if (figures[at + TABLE] === 0 || from < figures[at + TABLE_FROM]) return null
    // More than are known exactly, as there are others.
    return Math.max(WALLETS_EXACT_MAX + 1, Math.round(walletsOfCoupons(this.#countCoupons(slot, agesBelow))))
  }

  /** What was seen of the token is not to be used: market time has gone back to `timeMs`, before some of it. */
  forgetBefore(slot: number, timeMs: number): void {
    this.clear(slot)
    const minute = minuteOf(timeMs)
    this.#figures[slot * FIGURES + NEWEST] = minute
    this.#figures[slot * FIGURES + WHOLE_FROM] = minute + 1
  }

  /** Market time has gone back to `timeMs`, and all that was seen of the token is older. */
  rewindTo(slot: number, timeMs: number): void {
    const at = slot * FIGURES
    for (const from of [WHOLE_FROM, TABLE_FROM])
      this.#figures[at + from] = Math.min(this.#figures[at + from], minuteOf(timeMs) + 1)
  }

  /** Forgets a token. */
  clear(slot: number): void {
    this.#releaseTable(slot)
    this.#figures.fill(0, slot * FIGURES, (slot + 1) * FIGURES)
  }

  /** Notes a wallet among the latest. @returns false where it was seen longer ago than all of them, and there is no place for it */
  #see(slot: number, first: number, half: number, minute: number, nowMs: number): boolean {
    const figures = this.#figures
    const latest = this.#latest
    const at = slot * FIGURES
    const start = slot * LATEST_WORDS
    const oldest = figures[at + LATEST_FIRST] | 0
    const count = figures[at + LATEST_COUNT] | 0
    const end = start + Math.min(oldest + count, WALLETS_EXACT_MAX)
    for (let place = start; place < end; place++) {
      if (latest[place] !== first || latest[place + SECOND_WORDS] >>> 16 !== half) continue
      const index = (place - start - oldest) & RING_MASK
      // Nobody is at this place any more.
      if (index >= count) continue
      if (minute > this.#minuteAt(at, place)) {
        this.#takeOut(slot, index)
        this.#putIn(slot, first, half, minute)
      }
      return true
    }
    if (count === WALLETS_EXACT_MAX) {
      this.#makeRoom(slot, minute, nowMs)
      if (minute < figures[at + EXACT_FROM]) return false
    }
    this.#putIn(slot, first, half, minute)
    return true
  }

  /** When the wallet at a place was seen. @param at of the token's figures */
  #minuteAt(at: number, place: number): number {
    const newest = this.#figures[at + NEWEST]
    return newest - ((newest - this.#latest[place + SECOND_WORDS]) & MINUTE_MASK)
  }

  /** Takes a wallet out of the latest: those that were seen later move up. */
  #takeOut(slot: number, index: number): void {
    const latest = this.#latest
    const at = slot * FIGURES
    const start = slot * LATEST_WORDS
    const oldest = this.#figures[at + LATEST_FIRST] | 0
    const last = (this.#figures[at + LATEST_COUNT] | 0) - 1
    this.#figures[at + LATEST_COUNT] = last
    for (let moved = index; moved < last; moved++) {
      const to = start + ((oldest + moved) & RING_MASK)
      const from = start + ((oldest + moved + 1) & RING_MASK)
      latest[to] = latest[from]
      latest[to + SECOND_WORDS] = latest[from + SECOND_WORDS]
    }
  }

  /** Puts a wallet among the latest, behind those that were not seen later. There must be room. */
  #putIn(slot: number, first: number, half: number, minute: number): void {
    const latest = this.#latest
    const at = slot * FIGURES
    const start = slot * LATEST_WORDS
    const oldest = this.#figures[at + LATEST_FIRST] | 0
    let index = this.#figures[at + LATEST_COUNT] | 0
    this.#figures[at + LATEST_COUNT] = index + 1
    for (; index > 0; index--) {
      const before = start + ((oldest + index - 1) & RING_MASK)
      if (this.#minuteAt(at, before) <= minute) break
      const to = start + ((oldest + index) & RING_MASK)
      latest[to] = latest[before]
      latest[to + SECOND_WORDS] = latest[before + SECOND_WORDS]
    }
    const place = start + ((oldest + index) & RING_MASK)
    latest[place] = first
    latest[place + SECOND_WORDS] = (half << 16) | (minute & MINUTE_MASK)
  }

  /**
   * There are more wallets than are known exactly: the latest and one that was seen in `minute`. Those that were seen in the oldest
   * minute leave, as no window that has them is counted exactly from now on; where they are of the day, their coupons stay.
   */
  #makeRoom(slot: number, minute: number, nowMs: number): void {
    const figures = this.#figures
    const at = slot * FIGURES
    const leaving = Math.min(minute, this.#minuteAt(at, slot * LATEST_WORDS + figures[at + LATEST_FIRST]))
    if (figures[at + TABLE] === 0 && leaving >= minuteOf(dayFromMs(nowMs)))
      if (this.#takeTable(slot, BLOCK_BITS_MIN)) figures[at + TABLE_FROM] = figures[at + EXACT_FROM]
    figures[at + EXACT_FROM] = leaving + 1
    this.#dropLatest(slot, leaving + 1, nowMs)
  }

  /** Drops those of the latest wallets that were seen before a minute. Their coupons stay, where there is a table. */
  #dropLatest(slot: number, beforeMinute: number, nowMs: number): void {
    const figures = this.#figures
    const latest = this.#latest
    const at = slot * FIGURES
    for (; figures[at + LATEST_COUNT] > 0; figures[at + LATEST_COUNT]--) {
      const place = slot * LATEST_WORDS + figures[at + LATEST_FIRST]
      const minute = this.#minuteAt(at, place)
      if (minute >= beforeMinute) return
      if (figures[at + TABLE] !== 0)
        this.#draw(slot, couponOf(latest[place], latest[place + SECOND_WORDS] >>> 16), minute, nowMs)
      figures[at + LATEST_FIRST] = (figures[at + LATEST_FIRST] + 1) & RING_MASK
    }
  }

  /** Notes that a coupon was drawn. */
  #draw(slot: number, coupon: number, minute: number, nowMs: number): void {
    const figures = this.#figures
    const at = slot * FIGURES
    const table = figures[at + TABLE]
    const bits = table & BITS_MASK
    const words = this.#pool.words(table)
    const start = this.#pool.offsetOf(table - bits)
    const mask = (1 << bits) - 1
    let place = Math.imul(coupon, SPREAD) >>> (32 - bits)
    for (let word = words[start + place]; word !== 0; word = words[start + place]) {
      if (word >>> 16 === coupon) {
        const newest = figures[at + NEWEST]
        if (((newest - word) & MINUTE_MASK) > newest - minute)
          words[start + place] = (coupon << 16) | (minute & MINUTE_MASK)
        return
      }
      place = (place + 1) & mask
    }
    words[start + place] = (coupon << 16) | (minute & MINUTE_MASK)
    figures[at + TABLE_COUNT]++
    if (figures[at + TABLE_COUNT] * 5 > 4 << bits) this.#rebuild(slot, minuteOf(dayFromMs(nowMs)))
  }

  #takeTable(slot: number, bits: number): boolean {
    const address = this.#pool.take(bits)
    if (address === -1) return false
    const at = slot * FIGURES
    this.#figures[at + TABLE] = address + bits
    this.#figures[at + TABLE_COUNT] = 0
    return true
  }

  #releaseTable(slot: number): void {
    const at = slot * FIGURES
    const table = this.#figures[at + TABLE]
    if (table === 0) return
    this.#pool.release(table - (table & BITS_MASK), table & BITS_MASK)
    this.#figures[at + TABLE] = 0
    this.#figures[at + TABLE_COUNT] = 0
  }

  /** Makes the table anew of the coupons that were drawn in `fromMinute` or later. Where there is no room for it there is none. */
  #rebuild(slot: number, fromMinute: number): void {
    const figures = this.#figures
    const at = slot * FIGURES
    const kept = this.#keepCoupons(slot, figures[at + NEWEST] - fromMinute + 1)
    this.#releaseTable(slot)
    let bits = BLOCK_BITS_MIN
    while (bits < BLOCK_BITS_MAX && kept * 5 > 3 << bits) bits++
    if (!this.#takeTable(slot, bits)) return
    const words = this.#table(slot)
    for (let index = 0; index < kept; index++) {
      const word = this.#kept[index]
      let place = Math.imul(word >>> 16, SPREAD) >>> (32 - bits)
      while (words[place] !== 0) place = (place + 1) & (words.length - 1)
      words[place] = word
    }
    figures[at + TABLE_COUNT] = kept
    figures[at + TABLE_FROM] = Math.max(figures[at + TABLE_FROM], fromMinute)
  }

  /** Copies those coupons of the table to `kept` that are younger than so many minutes. @returns how many there are */
  #keepCoupons(slot: number, agesBelow: number): number {
    const newest = this.#figures[slot * FIGURES + NEWEST]
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
    const table = this.#figures[slot * FIGURES + TABLE]
    if (table === 0) return NO_WORDS
    const bits = table & BITS_MASK
    const start = this.#pool.offsetOf(table - bits)
    return this.#pool.words(table).subarray(start, start + (1 << bits))
  }

  /** A new day begins with a sighting in `minute`: what is older than the day before it is needed by no window any more. */
  #dropOld(slot: number, minute: number, nowMs: number): void {
    const figures = this.#figures
    const at = slot * FIGURES
    const newest = figures[at + NEWEST]
    const from = Math.max(minuteOf(dayFromMs(nowMs)), minute - MINUTES_KEPT)
    if (figures[at + EXACT_FROM] <= from) this.#releaseTable(slot)
    else if (figures[at + TABLE] !== 0) this.#rebuild(slot, from)
    this.#dropLatest(slot, from, nowMs)
    if (newest !== 0) figures[at + WHOLE_FROM] = Math.max(figures[at + WHOLE_FROM], from)
  }

  #countLatest(slot: number, agesBelow: number): number {
    const newest = this.#figures[slot * FIGURES + NEWEST]
    const { seconds } = this.#latestOf(slot)
    let index = seconds.length
    while (index > 0 && ((newest - seconds[index - 1]) & MINUTE_MASK) < agesBelow) index--
    return seconds.length - index
  }

  /** How many different coupons were drawn, by the latest wallets too. */
  #countCoupons(slot: number, agesBelow: number): number {
    const newest = this.#figures[slot * FIGURES + NEWEST]
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
    const count = this.#figures[slot * FIGURES + LATEST_COUNT]
    const [firsts, seconds] = [new Uint32Array(count), new Uint32Array(count)]
    for (let index = 0; index < count; index++) {
      const place = slot * LATEST_WORDS + ((this.#figures[slot * FIGURES + LATEST_FIRST] + index) & RING_MASK)
      firsts[index] = this.#latest[place]
      seconds[index] = this.#latest[place + SECOND_WORDS]
    }
    return { firsts, seconds }
  }

  *save(slotsUsed: number): Iterable<Section> {
    const figures = this.#figures.slice(0, slotsUsed * FIGURES)
    for (let at = 0; at < figures.length; at += FIGURES) {
      figures[at + LATEST_FIRST] = 0
      figures[at + TABLE] %= BITS_MASK + 1
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
    const figures = this.#figures
    sections.fill('wallets.figures', figures.subarray(0, slotsUsed * FIGURES))
    for (const { part, first, end } of slotRanges(slotsUsed)) {
      const latest = sections.uint32(`wallets.latest.${part}`)
      const tables = sections.uint32(`wallets.coupons.${part}`)
      let [latestAt, tableAt] = [0, 0]
      for (let slot = first; slot < end; slot++) {
        const at = slot * FIGURES
        const count = figures[at + LATEST_COUNT]
        if (!(count <= WALLETS_EXACT_MAX)) throw notWallets()
        for (const offset of [0, SECOND_WORDS]) {
          this.#latest.set(latest.subarray(latestAt, latestAt + count), slot * LATEST_WORDS + offset)
          latestAt += count
        }
        tableAt += this.#restoreTable(slot, tables, tableAt)
      }
      if (latestAt !== latest.length) throw wrongLength(`wallets.latest.${part}`)
      if (tableAt !== tables.length) throw wrongLength(`wallets.coupons.${part}`)
      yield
    }
  }

  /** Where the pool is smaller than it was, tables that find no room are left out. @returns how many words it had */
  #restoreTable(slot: number, tables: Uint32Array, tableAt: number): number {
    const at = slot * FIGURES
    const [bits, count] = [this.#figures[at + TABLE], this.#figures[at + TABLE_COUNT]]
    this.#figures[at + TABLE] = 0
    this.#figures[at + TABLE_COUNT] = 0
    if (bits === 0) return 0
    if (!(bits >= BLOCK_BITS_MIN && bits <= BLOCK_BITS_MAX) || count >= 1 << bits) throw notWallets()
    const words = tables.subarray(tableAt, tableAt + (1 << bits))
    if (this.#takeTable(slot, bits)) {
      this.#table(slot).set(words)
      this.#figures[at + TABLE_COUNT] = count
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
