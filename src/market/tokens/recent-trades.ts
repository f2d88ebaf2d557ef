// The latest trades of each token, at most RECENT_TRADES_MAX. They lie in columns, in blocks of tokens, so that taking a trade
// allocates nothing and touches two lines of memory.

import {
  numbersSection,
  type Saved,
  type Section,
  type SectionReader,
  wrongLength,
} from '../../lib/sections/sections.ts'
import { encodeTexts, type TextColumn } from '../../lib/sections/text-column.ts'
import type { DataPoint } from '../../schema/datapoint.ts'
import type { TradeEvent } from '../../schema/event.ts'
import { RECENT_TRADES_MAX } from '../limits.ts'

type RecentTrade = DataPoint['recentTrades'][number]

const BLOCK_TOKENS_BITS = 8
const BLOCK_TOKENS = 1 << BLOCK_TOKENS_BITS
const TOKEN_MASK = BLOCK_TOKENS - 1

/** The trades of some tokens. Each token has RECENT_TRADES_MAX places, and each place two numbers and two texts. */
interface Block {
  /** By token: how many trades it has had. The next one goes to this place, modulo RECENT_TRADES_MAX. */
  counts: Float64Array
  /** Time, negative for a sell, and amount of SOL, NaN for unknown. */
  numbers: Float64Array
  /** Transaction and wallet. A number is the index of a text in `saved`. */
  texts: (string | number | null)[]
  /** Texts of a checkpoint. Decoding all of them would take most of the time of a start, and few are read before they give way. */
  saved: TextColumn | null
  /** How many places still refer to them. */
  savedPlaces: number
}

const emptyBlock = (): Block => ({
  counts: new Float64Array(BLOCK_TOKENS),
  numbers: new Float64Array(BLOCK_TOKENS * RECENT_TRADES_MAX * 2),
  texts: new Array<string | number | null>(BLOCK_TOKENS * RECENT_TRADES_MAX * 2).fill(null),
  saved: null,
  savedPlaces: 0,
})

export class RecentTrades implements Saved {
  readonly #blocks: Block[] = []

  add(slot: number, trade: TradeEvent): void {
    const block = this.#blockOf(slot)
    const token = slot & TOKEN_MASK
    const at = tradeIndex(token, block.counts[token]++)
    if (block.saved !== null) letGo(block, at)
    block.numbers[at] = trade.side === 'buy' ? trade.ts : -trade.ts
    block.numbers[at + 1] = trade.solAmount ?? Number.NaN
    block.texts[at] = trade.tx ?? null
    block.texts[at + 1] = trade.wallet ?? null
  }

  /** Adds a trade that happened before others that came earlier: it goes to its place by time. */
  insert(slot: number, trade: TradeEvent): void {
    const block = this.#blockOf(slot)
    const token = slot & TOKEN_MASK
    const count = block.counts[token]
    const kept = Math.min(count, RECENT_TRADES_MAX)
    let later = 0
    while (later < kept && Math.abs(block.numbers[tradeIndex(token, count - 1 - later)]) > trade.ts) later++
    // Older than all that are shown.
    if (later === RECENT_TRADES_MAX) return
    this.add(slot, trade)
    for (let age = 0; age < later; age++)
      swapPlaces(block, tradeIndex(token, count - age), tradeIndex(token, count - age - 1))
  }

  /** The trades in order of arrival, newest first. */
  read(slot: number): RecentTrade[] {
    const block = this.#blockOf(slot)
    const token = slot & TOKEN_MASK
    const newest = block.counts[token] - 1
    return Array.from({ length: Math.min(block.counts[token], RECENT_TRADES_MAX) }, (_, age) => {
      const at = tradeIndex(token, newest - age)
      const time = block.numbers[at]
      const sol = block.numbers[at + 1]
      return {
        tx: textAt(block, at),
        type: time < 0 ? 'sell' : 'buy',
        sol: Number.isNaN(sol) ? null : sol,
        wallet: textAt(block, at + 1),
        timestamp: Math.abs(time),
      }
    })
  }

  clear(slot: number): void {
    const block = this.#blockOf(slot)
    const token = slot & TOKEN_MASK
    eachPlaceOf(token, block.counts[token], (at) => {
      letGo(block, at)
      block.texts[at] = null
      block.texts[at + 1] = null
    })
    block.counts[token] = 0
  }

  *save(slotsUsed: number): Iterable<Section> {
    for (let first = 0; first < slotsUsed; first += BLOCK_TOKENS) {
      const block = this.#blockOf(first)
      const numbers = new Float64Array(block.numbers.length)
      const texts: (string | null)[] = []
      eachPlace(block, (at) => {
        numbers[texts.length] = block.numbers[at]
        numbers[texts.length + 1] = block.numbers[at + 1]
        texts.push(textAt(block, at), textAt(block, at + 1))
      })
      yield numbersSection(`recent.counts.${first}`, block.counts)
      yield numbersSection(`recent.numbers.${first}`, numbers.subarray(0, texts.length))
      yield { name: `recent.texts.${first}`, bytes: encodeTexts(texts) }
    }
  }

  restore(sections: SectionReader, slotsUsed: number): void {
    for (let first = 0; first < slotsUsed; first += BLOCK_TOKENS) {
      const block = this.#blockOf(first)
      sections.fill(`recent.counts.${first}`, block.counts)
      const numbers = sections.float64(`recent.numbers.${first}`)
      let index = 0
      eachPlace(block, (at) => {
        block.numbers[at] = numbers[index]
        block.numbers[at + 1] = numbers[index + 1]
        block.texts[at] = index
        block.texts[at + 1] = index + 1
        index += 2
      })
      if (numbers.length !== index) throw wrongLength(`recent.numbers.${first}`)
      if (index === 0) continue
      block.saved = sections.texts(`recent.texts.${first}`, index)
      block.savedPlaces = index / 2
    }
  }

  #blockOf(slot: number): Block {
    const index = slot >>> BLOCK_TOKENS_BITS
    this.#blocks[index] ??= emptyBlock()
    return this.#blocks[index]
  }
}

/** Where the n-th trade of a token of the block lies in `numbers` and `texts`. */
const tradeIndex = (token: number, trade: number): number =>
  (token * RECENT_TRADES_MAX + (trade % RECENT_TRADES_MAX)) * 2

/** Visits the places of the trades that a token of the block still has, oldest first. */
function eachPlaceOf(token: number, trades: number, visit: (at: number) => void): void {
  for (let trade = Math.max(0, trades - RECENT_TRADES_MAX); trade < trades; trade++)
    visit(tradeIndex(token, trade))
}

function eachPlace({ counts }: Block, visit: (at: number) => void): void {
  for (let token = 0; token < BLOCK_TOKENS; token++) eachPlaceOf(token, counts[token], visit)
}

function textAt({ texts, saved }: Block, at: number): string | null {
  const text = texts[at]
  return typeof text === 'number' ? (saved?.at(text) ?? null) : text
}

/** The place takes other texts. Once few places refer to saved texts, these are decoded, so that the others can be freed. */
function letGo(block: Block, at: number): void {
  if (typeof block.texts[at] !== 'number') return
  block.texts[at] = null
  block.texts[at + 1] = null
  block.savedPlaces--
  const count = (block.saved?.count ?? 0) / 2
  if (block.savedPlaces * 4 > count) return
  for (const [index, text] of block.texts.entries())
    if (typeof text === 'number') block.texts[index] = textAt(block, index)
  block.saved = null
}

function swapPlaces({ numbers, texts }: Block, a: number, b: number): void {
  for (let index = 0; index < 2; index++) {
    const [number, text] = [numbers[a + index], texts[a + index]]
    numbers[a + index] = numbers[b + index]
    texts[a + index] = texts[b + index]
    numbers[b + index] = number
    texts[b + index] = text
  }
}
