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

const BLOCK_TOKENS_BITS = 8
const BLOCK_TOKENS = 1 << BLOCK_TOKENS_BITS
const TOKEN_MASK = BLOCK_TOKENS - 1
const CHUNKS_MAX = Math.ceil(RECENT_TRADES_MAX / CHUNK_PLACES)
const NONE = -1

/** The rings of some tokens. */
interface Block {
  /** By token: how many trades it has had. The next one goes to this place of its ring, modulo RECENT_TRADES_MAX. */
  counts: Float64Array
  /** By token, CHUNKS_MAX each: the first places of the chunks of its ring; NONE: not taken yet. */
  chunks: Int32Array
}

const emptyBlock = (): Block => ({
  counts: new Float64Array(BLOCK_TOKENS),
  chunks: new Int32Array(BLOCK_TOKENS * CHUNKS_MAX).fill(NONE),
})

export class RecentTrades implements Saved {
  readonly #blocks: Block[] = []
  readonly #places = new TradePlaces()

  /** Reads a number of each line of memory that a trade of the token touches first, see events/prefetch.ts. @returns their sum */
  prefetch(slot: number): number {
    const { counts, chunks } = this.#blockOf(slot)
    const token = slot & TOKEN_MASK
    const place = placeOf(chunks, token, counts[token])
    return place < 0 ? 0 : this.#places.signedMs(place) + this.#places.lengths(place)
  }

  add(slot: number, trade: TradeEvent): void {
    const block = this.#blockOf(slot)
    const token = slot & TOKEN_MASK
    this.#places.write(this.#takePlace(block, token, block.counts[token]++), trade)
  }

  /** Adds a trade that happened before others that came earlier: it goes to its place by time. */
  insert(slot: number, trade: TradeEvent): void {
    const { counts, chunks } = this.#blockOf(slot)
    const token = slot & TOKEN_MASK
    const count = counts[token]
    const kept = Math.min(count, RECENT_TRADES_MAX)
    const isLater = (age: number) =>
      Math.abs(this.#places.signedMs(placeOf(chunks, token, count - 1 - age))) > trade.ts
    let later = 0
    while (later < kept && isLater(later)) later++
    // Older than all that are shown.
    if (later === RECENT_TRADES_MAX) return
    this.add(slot, trade)
    for (let age = 0; age < later; age++)
      this.#places.swap(placeOf(chunks, token, count - age), placeOf(chunks, token, count - age - 1))
  }

  /** Where the wallet of the trade that was added last lies in memory, until the next call; null: elsewhere, or it is not known. */
  newestWallet(slot: number): WalletBytes | null {
    const { counts, chunks } = this.#blockOf(slot)
    const token = slot & TOKEN_MASK
    return this.#places.walletBytes(placeOf(chunks, token, counts[token] - 1))
  }

  /** The trades, newest first; of one time the last that came first. */
  read(slot: number): RecentTrade[] {
    const { counts, chunks } = this.#blockOf(slot)
    const token = slot & TOKEN_MASK
    const newest = counts[token] - 1
    return Array.from({ length: Math.min(counts[token], RECENT_TRADES_MAX) }, (_, age) =>
      this.#places.read(placeOf(chunks, token, newest - age)),
    )
  }

  /** Market time has gone back: trades of later than `timeMs` count as of then. */
  rewindTo(slot: number, timeMs: number): void {
    const { counts, chunks } = this.#blockOf(slot)
    const token = slot & TOKEN_MASK
    for (let age = 1; age <= Math.min(counts[token], RECENT_TRADES_MAX); age++) {
      const place = placeOf(chunks, token, counts[token] - age)
      const signedMs = this.#places.signedMs(place)
      if (Math.abs(signedMs) <= timeMs) return
      this.#places.writeNumbers(place, Math.sign(signedMs) * timeMs, this.#places.sol(place))
    }
  }

  clear(slot: number): void {
    const { counts, chunks } = this.#blockOf(slot)
    const token = slot & TOKEN_MASK
    counts[token] = 0
    for (let chunk = token * CHUNKS_MAX; chunk < (token + 1) * CHUNKS_MAX; chunk++) {
      if (chunks[chunk] !== NONE) this.#places.release(chunks[chunk])
      chunks[chunk] = NONE
    }
  }

  *save(slotsUsed: number): Iterable<Section> {
    for (let first = 0; first < slotsUsed; first += BLOCK_TOKENS) {
      const block = this.#blockOf(first)
      const numbers: number[] = []
      const texts: (string | null)[] = []
      eachTrade(block, (token, trade) => {
        const place = placeOf(block.chunks, token, trade)
        numbers.push(this.#places.signedMs(place), this.#places.sol(place))
        texts.push(this.#places.tx(place), this.#places.wallet(place))
      })
      yield numbersSection(`recent.counts.${first}`, block.counts)
      yield numbersSection(`recent.numbers.${first}`, Float64Array.from(numbers))
      yield { name: `recent.texts.${first}`, bytes: encodeTexts(texts) }
    }
  }

  restore(sections: SectionReader, slotsUsed: number): void {
    for (let first = 0; first < slotsUsed; first += BLOCK_TOKENS) {
      const block = this.#blockOf(first)
      sections.fill(`recent.counts.${first}`, block.counts)
      const numbers = sections.float64(`recent.numbers.${first}`)
      const texts = sections.texts(`recent.texts.${first}`, numbers.length)
      let index = 0
      eachTrade(block, (token, trade) => {
        if (index < numbers.length) {
          const place = this.#takePlace(block, token, trade)
          this.#places.writeNumbers(place, numbers[index], numbers[index + 1])
          this.#places.writeSaved(place, texts, index)
        }
        index += 2
      })
      if (numbers.length !== index) throw wrongLength(`recent.numbers.${first}`)
    }
  }

  /** Where the n-th trade of a token goes. */
  #takePlace({ chunks }: Block, token: number, trade: number): number {
    const place = placeOf(chunks, token, trade)
    if (place >= 0) return place
    const index = trade % RECENT_TRADES_MAX
    const first = this.#places.take()
    chunks[token * CHUNKS_MAX + Math.floor(index / CHUNK_PLACES)] = first
    return first + (index % CHUNK_PLACES)
  }

  #blockOf(slot: number): Block {
    const index = slot >>> BLOCK_TOKENS_BITS
    this.#blocks[index] ??= emptyBlock()
    return this.#blocks[index]
  }
}

/** Where the n-th trade of a token of the block lies; negative: its chunk is not taken. */
function placeOf(chunks: Int32Array, token: number, trade: number): number {
  const index = trade % RECENT_TRADES_MAX
  const first = chunks[token * CHUNKS_MAX + Math.floor(index / CHUNK_PLACES)]
  return first === NONE ? NONE : first + (index % CHUNK_PLACES)
}

/** Visits the trades that are kept, token after token, oldest first. */
function eachTrade({ counts }: Block, visit: (token: number, trade: number) => void): void {
  for (let token = 0; token < BLOCK_TOKENS; token++)
    for (let trade = Math.max(0, counts[token] - RECENT_TRADES_MAX); trade < counts[token]; trade++)
      visit(token, trade)
}
