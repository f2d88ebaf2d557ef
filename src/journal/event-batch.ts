// What the journal records: market events in the order in which the engine took them, in batches. Trades, nearly all events, are
// columns; the others are values.
import type { MarketEvent } from '../schema/event.ts'

/** An event that the engine has taken. All recorded events of a data folder share one sequence of numbers without gaps. */
export interface RecordedEvent {
  eventNo: number
  /** Market time in effect, Unix ms: applying the event with it again changes the engine in the same way. It never decreases. */
  atMs: number
  /** When the server received it, Unix ms. It may be earlier than `atMs`, and may decrease. */
  receivedAtMs: number
  /** Name of the feed that sent it, such as `pumpportal` or `push`. */
  feed: string
  event: MarketEvent
}

/** What trades were paid in, and where they stand on the chain. Columns are as in `TradeColumns`. */
export interface QuoteColumns {
  quoteAmount: Float64Array
  vQuote: Float64Array
  quoteReserve: Float64Array
  curveTokens: Float64Array
  slot: Float64Array
  eventIndex: Float64Array
  quoteMint: (string | null)[]
}

/** Trades of a batch, by ascending number. All columns have `count` entries; NaN stands for a number that was not sent. */
export interface TradeColumns {
  count: number
  eventNo: Float64Array
  /** As in `RecordedEvent`. */
  atMs: Float64Array
  receivedAtMs: Float64Array
  /** The trade's own time, Unix ms. */
  tsMs: Float64Array
  tokenAmount: Float64Array
  solAmount: Float64Array
  /** As it was sent, not as the engine computed it. */
  priceUsd: Float64Array
  vSol: Float64Array
  vTokens: Float64Array
  /** The price of SOL that the engine had for the trade; NaN: none, or one that was too old. */
  solPriceUsd: Float64Array
  /** The following are of trades with a quote, or from the chain; null where the batch has none of these. */
  quotes: QuoteColumns | null
  /** 1: a buy, 0: a sell. */
  isBuy: Uint8Array
  mint: string[]
  feed: string[]
  wallet: (string | null)[]
  tx: (string | null)[]
}

/** Consecutive events: the numbers from the first to the last are those of `trades` and `events`, each once. */
export interface EventBatch {
  firstEventNo: number
  lastEventNo: number
  trades: TradeColumns
  /** All events that are no trades, by ascending number. */
  events: RecordedEvent[]
}
