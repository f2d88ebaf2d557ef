// The latest trades of each token, at most RECENT_TRADES_MAX. They lie in columns, in blocks of tokens, so that taking a trade
// allocates nothing and touches two lines of memory.
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
  /** Transaction and wallet. */
  texts: (string | null)[]
}

const emptyBlock = (): Block => ({
  counts: new Float64Array(BLOCK_TOKENS),
  numbers: new Float64Array(BLOCK_TOKENS * RECENT_TRADES_MAX * 2),
  texts: new Array<string | null>(BLOCK_TOKENS * RECENT_TRADES_MAX * 2).fill(null),
})

export class RecentTrades {
  readonly #blocks: Block[] = []

  add(slot: number, trade: TradeEvent): void {
    const block = this.#blockOf(slot)
    const token = slot & TOKEN_MASK
    const at = tradeIndex(token, block.counts[token]++)
    block.numbers[at] = trade.side === 'buy' ? trade.ts : -trade.ts
    block.numbers[at + 1] = trade.solAmount ?? Number.NaN
    block.texts[at] = trade.tx ?? null
    block.texts[at + 1] = trade.wallet ?? null
  }

  /** The trades in order of arrival, newest first. */
  read(slot: number): RecentTrade[] {
    const { counts, numbers, texts } = this.#blockOf(slot)
    const token = slot & TOKEN_MASK
    const newest = counts[token] - 1
    return Array.from({ length: Math.min(counts[token], RECENT_TRADES_MAX) }, (_, age) => {
      const at = tradeIndex(token, newest - age)
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
    const { counts, texts } = this.#blockOf(slot)
    const token = slot & TOKEN_MASK
    counts[token] = 0
    texts.fill(null, tradeIndex(token, 0), tradeIndex(token + 1, 0))
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
