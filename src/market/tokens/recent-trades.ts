// The latest trades of each token, at most RECENT_TRADES_MAX, in rings of places.

import {
  numbersSection,
  type Saved,
  type Section,
  type SectionReader,
  wrongLength,
} from '../../lib/sections/sections.ts'
import { encodeTexts } from '../../lib/sections/text-column.ts'
import { RECENT_TRADES_MAX } from '../../schema/datapoint.ts'
import type { TradeEvent } from '../../schema/event.ts'
import { CHUNK_PLACES, type RecentTrade, TradePlaces, type WalletBytes } from './trade-places.ts'

const CHUNKS_MAX = Math.ceil(RECENT_TRADES_MAX / CHUNK_PLACES)
const NONE = -1
/** Slots whose trades lie in one section of a checkpoint. */
const SECTION_SLOTS = 256

export class RecentTrades implements Saved {
  /** By slot: how many trades it has had. The next one goes to this place of its ring, modulo RECENT_TRADES_MAX. */
  readonly #counts: Float64Array
  /** By slot, CHUNKS_MAX each: the first places of the chunks of its ring; NONE: not taken yet. */
  readonly #chunks: Int32Array
  readonly #places = new TradePlaces()

  constructor(tokensMax: number) {
    // A section is always whole.
    const slots = Math.ceil(tokensMax / SECTION_SLOTS) * SECTION_SLOTS
    this.#counts = new Float64Array(slots)
    this.#chunks = new Int32Array(slots * CHUNKS_MAX).fill(NONE)
  }

  /** Reads a number of each line of memory that a trade of the token touches first, see events/prefetch.ts. @returns their sum */
  prefetch(slot: number): number {
    const place = this.#placeOf(slot, this.#counts[slot])
    return place < 0 ? 0 : this.#places.signedMs(place) + this.#places.lengths(place)
  }

  add(slot: number, trade: TradeEvent): void {
    this.#places.write(this.#takePlace(slot, this.#counts[slot]++), trade)
  }

  /** Adds a trade that happened before others that came earlier: it goes to its place by time. */
  insert(slot: number, trade: TradeEvent): void {
    const count = this.#counts[slot]
    const kept = Math.min(count, RECENT_TRADES_MAX)
    const isLater = (age: number) =>
      Math.abs(this.#places.signedMs(this.#placeOf(slot, count - 1 - age))) > trade.ts
    let later = 0
    while (later < kept && isLater(later)) later++
    // Older than all that are shown.
    if (later === RECENT_TRADES_MAX) return
    this.add(slot, trade)
    for (let age = 0; age < later; age++)
      this.#places.swap(this.#placeOf(slot, count - age), this.#placeOf(slot, count - age - 1))
  }

  /** Where the wallet of the trade that was added last lies in memory, until the next call; null: elsewhere, or it is not known. */
  newestWallet(slot: number): WalletBytes | null {
    return this.#places.walletBytes(this.#placeOf(slot, this.#counts[slot] - 1))
  }

  /** The trades, newest first; of one time the last that came first. */
  read(slot: number): RecentTrade[] {
    const count = this.#counts[slot]
    return Array.from({ length: Math.min(count, RECENT_TRADES_MAX) }, (_, age) =>
      this.#places.read(this.#placeOf(slot, count - 1 - age)),
    )
  }

  /** Market time has gone back: trades of later than `timeMs` count as of then. */
  rewindTo(slot: number, timeMs: number): void {
    const count = this.#counts[slot]
    for (let age = 1; age <= Math.min(count, RECENT_TRADES_MAX); age++) {
      const place = this.#placeOf(slot, count - age)
      const signedMs = this.#places.signedMs(place)
      if (Math.abs(signedMs) <= timeMs) return
      this.#places.writeNumbers(place, Math.sign(signedMs) * timeMs, this.#places.sol(place))
    }
  }

  clear(slot: number): void {
    this.#counts[slot] = 0
    for (let chunk = slot * CHUNKS_MAX; chunk < (slot + 1) * CHUNKS_MAX; chunk++) {
      if (this.#chunks[chunk] !== NONE) this.#places.release(this.#chunks[chunk])
      this.#chunks[chunk] = NONE
    }
  }

  *save(slotsUsed: number): Iterable<Section> {
    for (let first = 0; first < slotsUsed; first += SECTION_SLOTS) {
      const numbers: number[] = []
      const texts: (string | null)[] = []
      this.#eachTrade(first, (slot, trade) => {
        const place = this.#placeOf(slot, trade)
        numbers.push(this.#places.signedMs(place), this.#places.sol(place))
        texts.push(this.#places.tx(place), this.#places.wallet(place))
      })
      yield numbersSection(`recent.counts.${first}`, this.#countsFrom(first))
      yield numbersSection(`recent.numbers.${first}`, Float64Array.from(numbers))
      yield { name: `recent.texts.${first}`, bytes: encodeTexts(texts) }
    }
  }

  restore(sections: SectionReader, slotsUsed: number): void {
    for (let first = 0; first < slotsUsed; first += SECTION_SLOTS) {
      sections.fill(`recent.counts.${first}`, this.#countsFrom(first))
      const numbers = sections.float64(`recent.numbers.${first}`)
      const texts = sections.texts(`recent.texts.${first}`, numbers.length)
      let index = 0
      this.#eachTrade(first, (slot, trade) => {
        if (index < numbers.length) {
          const place = this.#takePlace(slot, trade)
          this.#places.writeNumbers(place, numbers[index], numbers[index + 1])
          this.#places.writeSaved(place, texts, index)
        }
        index += 2
      })
      if (numbers.length !== index) throw wrongLength(`recent.numbers.${first}`)
    }
  }

  #countsFrom(first: number): Float64Array {
    return this.#counts.subarray(first, first + SECTION_SLOTS)
  }

  /** Visits the trades that are kept of the slots of a section, slot after slot, oldest first. */
  #eachTrade(first: number, visit: (slot: number, trade: number) => void): void {
    for (let slot = first; slot < first + SECTION_SLOTS; slot++) {
      const count = this.#counts[slot]
      for (let trade = Math.max(0, count - RECENT_TRADES_MAX); trade < count; trade++) visit(slot, trade)
    }
  }

  /** Where the n-th trade of a token goes. */
  #takePlace(slot: number, trade: number): number {
    const place = this.#placeOf(slot, trade)
    if (place >= 0) return place
    const index = trade % RECENT_TRADES_MAX
    const first = this.#places.take()
    this.#chunks[slot * CHUNKS_MAX + Math.floor(index / CHUNK_PLACES)] = first
    return first + (index % CHUNK_PLACES)
  }

  /** Where the n-th trade of a token lies; negative: its chunk is not taken. */
  #placeOf(slot: number, trade: number): number {
    const index = trade % RECENT_TRADES_MAX
    const first = this.#chunks[slot * CHUNKS_MAX + Math.floor(index / CHUNK_PLACES)]
    return first === NONE ? NONE : first + (index % CHUNK_PLACES)
  }
}
