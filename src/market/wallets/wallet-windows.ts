// Counts the different wallets that traded a token since a minute within the last day. Of each token there are
//
// - the wallets seen latest, WALLETS_EXACT_MAX at most, with the minute in which each was last seen: a window that all of its wallets
//   are among is counted exactly;
// - once those of a day are more, a table of coupons (coupons.ts) with the minute in which each was last drawn: how many coupons
//   there are since a minute tells how many wallets, and no wallet need be known.
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
import { couponOf, walletsOfCoupons } from './coupons.ts'
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
/** How many wallets are among the latest. */
const LATEST_COUNT = 3
/** The size of the table, as a power of two; 0: there is none. */
const TABLE_BITS = 4
/** Coupons in the table. */
const TABLE_COUNT = 5
/** Coupons that were drawn before this minute may be missing in the table. */
const TABLE_FROM = 6
const TABLE_ADDRESS = 7

/** Words of a wallet among the latest: the first of its hash, then half of the second and the minute. */
const WALLET_WORDS = 2
const LATEST_WORDS = WALLETS_EXACT_MAX * WALLET_WORDS

/** Of a minute 16 bits are kept. What is older than this before the newest is dropped at each new day, long before they repeat. */
const MINUTE_MASK = 0xffff
const MINUTES_KEPT = 0x8000
const DAY_MINUTES = 1_440

/** Multiplied with a coupon, the upper bits say where in its table it lies. */
const SPREAD = 0x9e3779b1

const minuteOf = (timeMs: number): number => Math.floor(timeMs / MINUTE_MS)
const dayOf = (minute: number): number => Math.floor(minute / DAY_MINUTES)

export class WalletWindows implements Saved {
  readonly #figures: Float64Array
  readonly #latest: Uint32Array
  readonly #pool: WordPool

  constructor(tokensMax: number) {
    this.#figures = new Float64Array(tokensMax * FIGURES)
    this.#latest = new Uint32Array(tokensMax * LATEST_WORDS)
    this.#pool = new WordPool(Math.max(COUPON_WORDS_MIN, COUPON_WORDS_PER_TOKEN * tokensMax))
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
    const [first, half] = [walletHash[0], walletHash[1] >>> 16]
    if (!this.#see(slot, first, half, minute, nowMs)) return
    if (figures[at + TABLE_BITS] !== 0) this.#draw(slot, couponOf(first, half), minute, nowMs)
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
    if (figures[at + TABLE_BITS] === 0 || from < figures[at + TABLE_FROM]) return null
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

  /**
   * Notes a wallet among the latest; where all places are taken it has that of the one which was seen longest ago.
   * @returns whether anything has changed
   */
  #see(slot: number, first: number, half: number, minute: number, nowMs: number): boolean {
    const figures = this.#figures
    const latest = this.#latest
    const at = slot * FIGURES
    const start = slot * LATEST_WORDS
    const end = start + figures[at + LATEST_COUNT] * WALLET_WORDS
    const newest = figures[at + NEWEST]
    const age = newest - minute
    let oldest = start
    let oldestAge = -1
    for (let place = start; place < end; place += WALLET_WORDS) {
      const second = latest[place + 1]
      const seenAge = (newest - second) & MINUTE_MASK
      if (latest[place] === first && second >>> 16 === half) {
        if (seenAge <= age) return false
        latest[place + 1] = (half << 16) | (minute & MINUTE_MASK)
        return true
      }
      if (seenAge > oldestAge) {
        oldest = place
        oldestAge = seenAge
      }
    }
    let place = end
    if (end < start + LATEST_WORDS) figures[at + LATEST_COUNT]++
    else {
      const leaving = newest - Math.max(oldestAge, age)
      this.#leave(slot, leaving, nowMs)
      if (age > oldestAge) return true
      place = oldest
    }
    latest[place] = first
    latest[place + 1] = (half << 16) | (minute & MINUTE_MASK)
    return true
  }

  /** A wallet that was last seen in `minute` is not among the latest any more. From now on coupons are needed, if it is of the day. */
  #leave(slot: number, minute: number, nowMs: number): void {
    const figures = this.#figures
    const at = slot * FIGURES
    if (figures[at + TABLE_BITS] === 0 && minute >= minuteOf(dayFromMs(nowMs))) {
      if (this.#takeTable(slot, BLOCK_BITS_MIN)) {
        figures[at + TABLE_FROM] = figures[at + EXACT_FROM]
        this.#drawLatest(slot, nowMs)
      }
    }
    figures[at + EXACT_FROM] = Math.max(figures[at + EXACT_FROM], minute + 1)
  }

  #drawLatest(slot: number, nowMs: number): void {
    const latest = this.#latest
    const newest = this.#figures[slot * FIGURES + NEWEST]
    const start = slot * LATEST_WORDS
    for (let place = start; place < start + LATEST_WORDS; place += WALLET_WORDS) {
      const second = latest[place + 1]
      const minute = newest - ((newest - second) & MINUTE_MASK)
      this.#draw(slot, couponOf(latest[place], second >>> 16), minute, nowMs)
    }
  }

  /** Notes that a coupon was drawn. */
  #draw(slot: number, coupon: number, minute: number, nowMs: number): void {
    const figures = this.#figures
    const at = slot * FIGURES
    const address = figures[at + TABLE_ADDRESS]
    const bits = figures[at + TABLE_BITS]
    const words = this.#pool.words(address)
    const start = this.#pool.offsetOf(address)
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
    this.#figures[at + TABLE_ADDRESS] = address
    this.#figures[at + TABLE_BITS] = bits
    this.#figures[at + TABLE_COUNT] = 0
    return true
  }

  #releaseTable(slot: number): void {
    const at = slot * FIGURES
    const bits = this.#figures[at + TABLE_BITS]
    if (bits === 0) return
    this.#pool.release(this.#figures[at + TABLE_ADDRESS], bits)
    this.#figures[at + TABLE_BITS] = 0
    this.#figures[at + TABLE_COUNT] = 0
    this.#figures[at + TABLE_ADDRESS] = 0
  }

  /** Makes the table anew of the coupons that were drawn in `fromMinute` or later. Where there is no room for it there is none. */
  #rebuild(slot: number, fromMinute: number): void {
    const figures = this.#figures
    const at = slot * FIGURES
    const agesBelow = figures[at + NEWEST] - fromMinute + 1
    const kept = this.#coupons(slot).filter(
      (word) => ((figures[at + NEWEST] - word) & MINUTE_MASK) < agesBelow,
    )
    this.#releaseTable(slot)
    let bits = BLOCK_BITS_MIN
    while (bits < BLOCK_BITS_MAX && kept.length * 5 > 3 << bits) bits++
    if (!this.#takeTable(slot, bits)) return
    const address = figures[at + TABLE_ADDRESS]
    const words = this.#pool.words(address)
    const start = this.#pool.offsetOf(address)
    const mask = (1 << bits) - 1
    for (const word of kept) {
      let place = Math.imul(word >>> 16, SPREAD) >>> (32 - bits)
      while (words[start + place] !== 0) place = (place + 1) & mask
      words[start + place] = word
    }
    figures[at + TABLE_COUNT] = kept.length
    figures[at + TABLE_FROM] = Math.max(figures[at + TABLE_FROM], fromMinute)
  }

  /** The table's words that hold a coupon. */
  #coupons(slot: number): Uint32Array {
    return this.#table(slot).filter((word) => word !== 0)
  }

  /** The table's memory. */
  #table(slot: number): Uint32Array {
    const at = slot * FIGURES
    const bits = this.#figures[at + TABLE_BITS]
    if (bits === 0) return NO_WORDS
    const address = this.#figures[at + TABLE_ADDRESS]
    const start = this.#pool.offsetOf(address)
    return this.#pool.words(address).subarray(start, start + (1 << bits))
  }

  /** A new day begins with a sighting in `minute`: what is older than the day before it is needed by no window any more. */
  #dropOld(slot: number, minute: number, nowMs: number): void {
    const figures = this.#figures
    const latest = this.#latest
    const at = slot * FIGURES
    const newest = figures[at + NEWEST]
    const from = Math.max(minuteOf(dayFromMs(nowMs)), minute - MINUTES_KEPT)
    const agesBelow = newest - from + 1
    const start = slot * LATEST_WORDS
    const end = start + figures[at + LATEST_COUNT] * WALLET_WORDS
    let to = start
    for (let place = start; place < end; place += WALLET_WORDS) {
      if (((newest - latest[place + 1]) & MINUTE_MASK) >= agesBelow) continue
      latest[to] = latest[place]
      latest[to + 1] = latest[place + 1]
      to += WALLET_WORDS
    }
    figures[at + LATEST_COUNT] = (to - start) / WALLET_WORDS
    if (figures[at + TABLE_BITS] !== 0)
      if (figures[at + EXACT_FROM] <= from) this.#releaseTable(slot)
      else this.#rebuild(slot, from)
    if (newest !== 0) figures[at + WHOLE_FROM] = Math.max(figures[at + WHOLE_FROM], from)
  }

  #countLatest(slot: number, agesBelow: number): number {
    const figures = this.#figures
    const newest = figures[slot * FIGURES + NEWEST]
    const start = slot * LATEST_WORDS
    const end = start + figures[slot * FIGURES + LATEST_COUNT] * WALLET_WORDS
    let count = 0
    for (let place = start; place < end; place += WALLET_WORDS)
      if (((newest - this.#latest[place + 1]) & MINUTE_MASK) < agesBelow) count++
    return count
  }

  #countCoupons(slot: number, agesBelow: number): number {
    const newest = this.#figures[slot * FIGURES + NEWEST]
    let count = 0
    for (const word of this.#table(slot))
      if (word !== 0 && ((newest - word) & MINUTE_MASK) < agesBelow) count++
    return count
  }

  *save(slotsUsed: number): Iterable<Section> {
    const figures = this.#figures.slice(0, slotsUsed * FIGURES)
    for (let at = TABLE_ADDRESS; at < figures.length; at += FIGURES) figures[at] = 0
    yield numbersSection('wallets.figures', figures)
    for (const { part, first, end } of slotRanges(slotsUsed)) {
      const latest: Uint32Array[] = []
      const tables: Uint32Array[] = []
      for (let slot = first; slot < end; slot++) {
        const start = slot * LATEST_WORDS
        const words = figures[slot * FIGURES + LATEST_COUNT] * WALLET_WORDS
        latest.push(this.#latest.subarray(start, start + words))
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
        const words = figures[at + LATEST_COUNT] * WALLET_WORDS
        if (!(words <= LATEST_WORDS)) throw notWallets()
        this.#latest.set(latest.subarray(latestAt, latestAt + words), slot * LATEST_WORDS)
        latestAt += words
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
    const [bits, count] = [this.#figures[at + TABLE_BITS], this.#figures[at + TABLE_COUNT]]
    this.#figures[at + TABLE_BITS] = 0
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
