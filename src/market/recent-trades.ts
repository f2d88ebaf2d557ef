// In: trades, token by token. Out: a token's latest trades, newest first. At most RECENT_TRADES_MAX each: the oldest
// record is reused for the newest. Never knows a price.
import type { DataPoint } from '../schema/datapoint.ts'
import type { TradeEvent } from '../schema/event.ts'
import { RECENT_TRADES_MAX } from './limits.ts'

type RecentTrade = DataPoint['recentTrades'][number]

export class RecentTrades {
  #trades: (RecentTrade[] | undefined)[] = []
  #next: number[] = []

  add(slot: number, trade: TradeEvent): void {
    let trades = this.#trades[slot]
    if (trades === undefined) {
      trades = []
      this.#trades[slot] = trades
      this.#next[slot] = 0
    }
    const next = this.#next[slot]
    const record = trades[next]
    if (record === undefined) {
      trades.push({
        tx: trade.tx ?? null,
        type: trade.side,
        sol: trade.solAmount ?? null,
        wallet: trade.wallet ?? null,
        timestamp: trade.ts,
      })
    } else {
      record.tx = trade.tx ?? null
      record.type = trade.side
      record.sol = trade.solAmount ?? null
      record.wallet = trade.wallet ?? null
      record.timestamp = trade.ts
    }
    this.#next[slot] = (next + 1) % RECENT_TRADES_MAX
  }

  /** Copies, newest first in order of arrival. */
  of(slot: number): RecentTrade[] {
    const trades = this.#trades[slot]
    if (trades === undefined) return []
    const next = this.#next[slot]
    return trades.map((_, age) => ({ ...trades[(next - 1 - age + 2 * trades.length) % trades.length] }))
  }

  clear(slot: number): void {
    this.#trades[slot] = undefined
  }
}
