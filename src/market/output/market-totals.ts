import { DAY_MS } from '../../lib/time.ts'
import { KEY_UNKNOWN } from '../rankings/chunk.ts'
import type { Rankings } from '../rankings/rankings.ts'
import type { MarketTime } from '../time/market-time.ts'
import { rowIndex, type TokenTable } from '../tokens/token-table.ts'
import type { MarketTotals } from '../types.ts'

/** How long one answer serves all who ask, market time. */
const TOTALS_MS = 1_000

/** Sums over all tokens. They are added up from figures that are kept while somebody asks: a fraction of a millisecond. */
export class MarketTotalsCache {
  readonly #tokens: TokenTable
  readonly #rankings: Rankings
  readonly #time: MarketTime
  #made: { second: number; totals: MarketTotals } | null = null

  constructor(tokens: TokenTable, rankings: Rankings, time: MarketTime) {
    this.#tokens = tokens
    this.#rankings = rankings
    this.#time = time
  }

  read(): MarketTotals {
    const second = Math.floor(this.#time.nowMs / TOTALS_MS)
    if (this.#made?.second !== second) this.#made = { second, totals: this.#add() }
    return this.#made.totals
  }

  #add(): MarketTotals {
    const { figureOrders } = this.#rankings
    const { createdAtMs } = this.#tokens.columns
    const { slotsUsed } = this.#tokens
    let launches24h = 0
    for (let slot = 0; slot < slotsUsed; slot++)
      if (this.#time.nowMs - createdAtMs[rowIndex(slot)] < DAY_MS) launches24h++
    return {
      tokens: slotsUsed,
      launches24h,
      volume24hUsd: sum(figureOrders.read('volume_24h').keys),
      buys24h: sum(figureOrders.read('buys_24h').keys),
      sells24h: sum(figureOrders.read('sells_24h').keys),
    }
  }
}

function sum(keys: Float64Array): number {
  let total = 0
  for (let slot = 0; slot < keys.length; slot++) if (keys[slot] !== KEY_UNKNOWN) total += keys[slot]
  return total
}
