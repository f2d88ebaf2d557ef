// A recorded trade as the event that the engine took.
import type { TradeEvent } from '../../schema/event.ts'
import type { TradeColumns } from '../event-batch.ts'

/** @param into is overwritten: one object may serve for all trades, since the market keeps none. @returns it */
export function readTrade(trades: TradeColumns, at: number, into: TradeEvent): TradeEvent {
  into.mint = trades.mint[at]
  into.ts = trades.tsMs[at]
  into.side = trades.isBuy[at] === 1 ? 'buy' : 'sell'
  into.tokenAmount = trades.tokenAmount[at]
  into.solAmount = orNull(trades.solAmount[at])
  into.priceUsd = orNull(trades.priceUsd[at])
  into.vSol = orNull(trades.vSol[at])
  into.vTokens = orNull(trades.vTokens[at])
  into.wallet = trades.wallet[at]
  into.tx = trades.tx[at]
  return into
}

const orNull = (value: number): number | null => (Number.isNaN(value) ? null : value)
