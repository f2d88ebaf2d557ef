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
  const { quotes } = trades
  into.quoteMint = quotes?.quoteMint[at] ?? null
  into.quoteAmount = quotes === null ? null : orNull(quotes.quoteAmount[at])
  into.vQuote = quotes === null ? null : orNull(quotes.vQuote[at])
  into.quoteReserve = quotes === null ? null : orNull(quotes.quoteReserve[at])
  into.curveTokens = quotes === null ? null : orNull(quotes.curveTokens[at])
  into.slot = quotes === null ? null : orNull(quotes.slot[at])
  into.eventIndex = quotes === null ? null : orNull(quotes.eventIndex[at])
  return into
}

const orNull = (value: number): number | null => (Number.isNaN(value) ? null : value)
