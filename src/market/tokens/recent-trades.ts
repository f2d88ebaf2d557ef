// In: trades, token by token. Out: a token's latest trades, newest first. At most RECENT_TRADES_MAX each: the oldest gives
// its place to the newest. In columns, block by block of tokens: a trade that is taken makes no object and touches two
// lines of memory. Never knows a price.
import type { DataPoint } from '../../schema/datapoint.ts'
import type { TradeEvent } from '../../schema/event.ts'
import { RECENT_TRADES_MAX } from '../limits.ts'

type RecentTrade = DataPoint['recentTrades'][number]

const BLOCK_TOKENS_BITS = 8
const BLOCK_TOKENS = 1 << BLOCK_TOKENS_BITS
const TOKEN_MASK = BLOCK_TOKENS - 1

/** The trades of a block of tokens: each token has RECENT_TRADES_MAX places, each place two numbers and two texts. */
interface Block {
  /** How many trades each token has had: the next goes to that place, counted round. */
  taken: Float64Array
  /** The time, negative for a sell, and the SOL that changed hands, NaN where unknown. */
  numbers: Float64Array
  /** The transaction and the wallet. */
  texts: (string | null)[]
}

const emptyBlock = (): Block => ({
  taken: new Float64Array(BLOCK_TOKENS),
  numbers: new Float64Array(BLOCK_TOKENS * RECENT_TRADES_MAX * 2),
  texts: new Array<string | null>(BLOCK_TOKENS * RECENT_TRADES_MAX * 2).fill(null),
})

export class RecentTrades {
  #blocks: Block[] = []

  add(slot: number, trade: TradeEvent): void {
    const block = this.#blockOf(slot)
    const token = slot & TOKEN_MASK
    const at = placeOf(token, block.taken[token]++)
    block.numbers[at] = trade.side === 'buy' ? trade.ts : -trade.ts
    block.numbers[at + 1] = trade.solAmount ?? Number.NaN
    block.texts[at] = trade.tx ?? null
    block.texts[at + 1] = trade.wallet ?? null
  }

  /** Newest first in order of arrival. */
  read(slot: number): RecentTrade[] {
    const { taken, numbers, texts } = this.#blockOf(slot)
    const token = slot & TOKEN_MASK
    const newest = taken[token] - 1
    return Array.from({ length: Math.min(taken[token], RECENT_TRADES_MAX) }, (_, age) => {
      const at = placeOf(token, newest - age)
      const sol = numbers[at + 1]
      return {
        tx: texts[at],
        type: numbers[at] < 0 ? 'sell' : 'buy',
        sol: Number.isNaN(sol) ? null : sol,
        wallet: texts[at + 1],
        timestamp: Math.abs(numbers[at]),
      }
    })
  }

  clear(slot: number): void {
    const { taken, texts } = this.#blockOf(slot)
    const token = slot & TOKEN_MASK
    taken[token] = 0
    texts.fill(null, placeOf(token, 0), placeOf(token + 1, 0))
  }

  #blockOf(slot: number): Block {
    const index = slot >>> BLOCK_TOKENS_BITS
    this.#blocks[index] ??= emptyBlock()
    return this.#blocks[index]
  }
}

const placeOf = (token: number, trade: number): number =>
  (token * RECENT_TRADES_MAX + (trade % RECENT_TRADES_MAX)) * 2
