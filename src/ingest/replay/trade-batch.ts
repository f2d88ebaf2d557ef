export type Side = 'buy' | 'sell'

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
  side: ((row: number) => Side | null) | null
  wallet: readonly (string | null)[] | null
  tx: readonly (string | null)[] | null
}
