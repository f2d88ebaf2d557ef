export type Side = 'buy' | 'sell'

/** Why a row is not a trade. */
export type TradeFault =
  | 'row_malformed'
  | 'time_invalid'
  | 'price_invalid'
  | 'size_invalid'
  | 'side_unknown'
  | 'symbol_missing'
  | 'too_many_symbols'

/** What is wrong with a row, and what stands there, for people. */
export interface RowFault {
  reason: TradeFault
  sample: string
}

/** Rows of a file of trades, by column. A missing number is NaN, a missing symbol ''. */
export interface TradeBatch {
  rows: number
  /** Whole Unix ms, UTC. */
  tsMs: Float64Array
  /** As the file has it; a replay takes it as USD. */
  price: Float64Array
  /** UI tokens, or shares. */
  size: Float64Array
  /** For each row the index of its symbol in `symbols`. */
  symbolCode: Uint32Array
  /** The distinct symbols so far. All batches of a file share this list; it is only appended to. */
  symbols: readonly string[]
  /** The taker's side of a row. Null where the file, or the row, has none. */
  side: readonly (Side | null)[] | null
  wallet: readonly (string | null)[] | null
  tx: readonly (string | null)[] | null
  /** The rows that could not be read. */
  faults: ReadonlyMap<number, RowFault>
}
