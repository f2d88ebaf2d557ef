import type { TradeBatch } from './trade-batch.ts'
import type { TradeMapping } from './trade-columns.ts'

/** What a reader of one format is told. */
export interface SourceOptions {
  path: string
  mapping: TradeMapping
  /** The symbol of all rows, of a file without a column for it; null: it must have one. */
  symbol: string | null
  batchRows: number
}

export interface TradeFile {
  /** Null for formats whose rows cannot be counted without reading them. */
  rowsTotal: number | null
  /**
   * Whether the row that was read last is all of one, whatever is wrong with it: of one that is not, the file may have broken off within
   * it. Not there: no row of the format can be a part.
   */
  isLastWhole?(): boolean
  /** May be iterated once. Closes the file at its end, or when the iteration is left early. */
  batches: AsyncGenerator<TradeBatch>
}
