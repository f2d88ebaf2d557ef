import type { DuckDBDataChunk } from '@duckdb/node-api'
import type { ResultStream } from '../../store/duckdb/result-stream.ts'
import type { TradeBatch } from './trade-batch.ts'
import type { RawTrade, TradeBatchBuilder } from './trade-batch-builder.ts'
import { type RawValue, readTime } from './trade-values.ts'

/** The columns that a query may have. */
const QUERY_COLUMNS = ['ts', 'date', 'price', 'size', 'symbol', 'side', 'wallet', 'tx'] as const
export type QueryColumn = (typeof QUERY_COLUMNS)[number]

/** In place of a column that the file does not have. */
const NOTHING = { getItem: (_row: number): unknown => null }

export interface QueryMeaning {
  /** The columns of the query, in its order. */
  columns: readonly QueryColumn[]
  /** Times are whole Unix ms already. */
  isTimeInMs: boolean
  /** Symbols are their codes in the builder already, as doubles. */
  isSymbolCode: boolean
  /** The symbol of all rows; null: each row has one. */
  symbol: string | null
  /** Prices are whole numbers of this size. */
  priceUnit: number
}

/** Makes batches of the chunks of a DuckDB result; the last one may be shorter. */
export class TradeReader {
  readonly #builder: TradeBatchBuilder
  readonly #meaning: QueryMeaning

  constructor(builder: TradeBatchBuilder, meaning: QueryMeaning) {
    this.#builder = builder
    this.#meaning = meaning
  }

  /** Rejects with DuckDB's error where the file cannot be read further. */
  async *read(start: () => Promise<ResultStream>, close: () => Promise<void>): AsyncGenerator<TradeBatch> {
    try {
      for await (const chunk of await start()) yield* this.#take(chunk)
      if (!this.#builder.isEmpty) yield this.#builder.finish()
    } finally {
      await close()
    }
  }

  *#take(chunk: DuckDBDataChunk): Generator<TradeBatch> {
    const [ts, date, price, size, symbol, side, wallet, tx] = QUERY_COLUMNS.map((column) => {
      const index = this.#meaning.columns.indexOf(column)
      return index < 0 ? NOTHING : chunk.getColumnVector(index)
    })
    for (let row = 0; row < chunk.rowCount; row++) {
      this.#add({
        ts: toRaw(ts.getItem(row)),
        date: toRaw(date.getItem(row)),
        price: toRaw(price.getItem(row)),
        size: toRaw(size.getItem(row)),
        symbol: toRaw(symbol.getItem(row)),
        side: toRaw(side.getItem(row)),
        wallet: toRaw(wallet.getItem(row)),
        tx: toRaw(tx.getItem(row)),
      })
      if (this.#builder.isFull) yield this.#builder.finish()
    }
  }

  #add(raw: RawTrade): void {
    const { isTimeInMs, isSymbolCode, symbol, priceUnit } = this.#meaning
    const tsMs = isTimeInMs ? (typeof raw.ts === 'number' ? raw.ts : Number.NaN) : readTime(raw.ts, raw.date)
    const code = isSymbolCode
      ? Number(raw.symbol ?? 0)
      : this.#builder.codeOf(symbol ?? String(raw.symbol ?? ''))
    if (typeof raw.price === 'number') raw.price /= priceUnit
    this.#builder.addRead(raw, tsMs, this.#builder.readPrice(raw.price), code)
  }
}

const toRaw = (value: unknown): RawValue =>
  typeof value === 'string' || typeof value === 'number' || typeof value === 'bigint' ? value : null
