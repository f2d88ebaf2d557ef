import type { DuckDBDataChunk } from '@duckdb/node-api'
import { errorMessage } from '../../lib/error-text.ts'
import type { ResultStream } from '../../store/duckdb/result-stream.ts'
import { StoreError } from '../../store/errors.ts'
import { TRADE_SYMBOLS_MAX } from '../limits.ts'
import type { TradeBatch } from './trade-batch.ts'
import { invalid, SIDE_BUY, SIDE_SELL, type TradeColumns } from './trade-columns.ts'

export const tooManySymbols = (): StoreError => invalid(`the file has more than ${TRADE_SYMBOLS_MAX} symbols`)

/** The columns of the query by index. Side, wallet and tx follow in this order where the file has them. */
const TS = 0
const PRICE = 1
const SIZE = 2
const SYMBOL = 3
const FIRST_OPTIONAL = 4

interface BatchColumns {
  tsMs: Float64Array
  price: Float64Array
  size: Float64Array
  symbolCode: Uint32Array
  side: Uint8Array | null
  wallet: (string | null)[] | null
  tx: (string | null)[] | null
}

/** Where the rows come from. */
export interface TradeSource {
  open(): Promise<ResultStream>
  /** How many rows the file has by its own count; null: it has none. */
  rowsTotal: number | null
  /** What is wrong with the file as a whole; null: nothing that is known. */
  findDamage(): Promise<string | null>
  close(): Promise<void>
}

/** Copies the chunks of a DuckDB result into batches of exactly `batchRows` rows; the last one may be shorter. */
export class TradeReader {
  readonly #symbols: string[]
  /** The index of each symbol; null where the query gives indexes itself, by its dictionary. */
  readonly #codes: Map<string, number> | null
  readonly #columns: Pick<TradeColumns, 'side' | 'wallet' | 'tx'>
  readonly #batchRows: number
  #batch: BatchColumns
  #filled = 0
  #rows = 0
  /** The index of ''. */
  readonly #emptySymbolCode: number

  /** @param dictionary the symbols in the order of the query's codes; null where the query gives symbols as text. */
  constructor(columns: TradeColumns, dictionary: string[] | null, batchRows: number) {
    this.#columns = columns
    this.#batchRows = batchRows
    this.#symbols = dictionary === null ? [''] : [...dictionary, '']
    this.#emptySymbolCode = dictionary === null ? 0 : dictionary.length
    this.#codes = dictionary === null ? new Map([['', 0]]) : null
    this.#batch = this.#emptyBatch()
  }

  /** Yields all rows, those before a failure too. Rejects with `invalid` where they are not all rows of the file. */
  async *read(source: TradeSource): AsyncGenerator<TradeBatch> {
    let rows = 0
    try {
      const failure = yield* this.#readStream(await source.open())
      if (this.#filled > 0) yield this.#finish()
      rows = this.#rows
      // A file that was cut tells more by its length than by what is left of its last line.
      const damage = await source.findDamage()
      if (damage !== null) throw new Error(`it is damaged, or was cut: ${damage}`)
      if (failure !== null) throw failure
      if (source.rowsTotal !== null && rows !== source.rowsTotal)
        throw new Error(`it has ${source.rowsTotal} rows by its own count`)
    } catch (error) {
      if (error instanceof StoreError) throw error
      throw invalid(`the file cannot be read beyond row ${rows}: ${firstLines(error)}`)
    } finally {
      await source.close()
    }
  }

  /** @returns why the stream has ended before its last row; null: it has not */
  async *#readStream(stream: ResultStream): AsyncGenerator<TradeBatch, unknown> {
    for (;;) {
      let chunk: DuckDBDataChunk | null
      try {
        chunk = await stream.next()
      } catch (error) {
        return error
      }
      if (chunk === null) return null
      this.#rows += chunk.rowCount
      yield* this.#take(chunk)
    }
  }

  *#take(chunk: DuckDBDataChunk): Generator<TradeBatch> {
    for (let from = 0; from < chunk.rowCount; ) {
      const rows = Math.min(chunk.rowCount - from, this.#batchRows - this.#filled)
      this.#copy(chunk, from, rows)
      from += rows
      this.#filled += rows
      if (this.#filled === this.#batchRows) yield this.#finish()
    }
  }

  #copy(chunk: DuckDBDataChunk, from: number, rows: number): void {
    const batch = this.#batch
    const to = this.#filled
    copyNumbers(chunk, TS, from, rows, batch.tsMs, to, Number.NaN)
    copyNumbers(chunk, PRICE, from, rows, batch.price, to, Number.NaN)
    copyNumbers(chunk, SIZE, from, rows, batch.size, to, Number.NaN)
    if (this.#codes === null)
      copyNumbers(chunk, SYMBOL, from, rows, batch.symbolCode, to, this.#emptySymbolCode)
    else this.#copySymbols(chunk, from, rows, this.#codes)
    let column = FIRST_OPTIONAL
    if (batch.side !== null) copyNumbers(chunk, column++, from, rows, batch.side, to, 0)
    if (batch.wallet !== null) copyTexts(chunk, column++, from, rows, batch.wallet)
    if (batch.tx !== null) copyTexts(chunk, column++, from, rows, batch.tx)
  }

  #copySymbols(chunk: DuckDBDataChunk, from: number, rows: number, codes: Map<string, number>): void {
    const vector = chunk.getColumnVector(SYMBOL)
    for (let row = 0; row < rows; row++) {
      const value = vector.getItem(from + row)
      const symbol = typeof value === 'string' ? value : ''
      this.#batch.symbolCode[this.#filled + row] = codes.get(symbol) ?? this.#addSymbol(symbol, codes)
    }
  }

  #addSymbol(symbol: string, codes: Map<string, number>): number {
    if (this.#symbols.length > TRADE_SYMBOLS_MAX) throw tooManySymbols()
    codes.set(symbol, this.#symbols.length)
    return this.#symbols.push(symbol) - 1
  }

  #emptyBatch(): BatchColumns {
    const rows = this.#batchRows
    return {
      tsMs: new Float64Array(rows),
      price: new Float64Array(rows),
      size: new Float64Array(rows),
      symbolCode: new Uint32Array(rows),
      side: this.#columns.side === null ? null : new Uint8Array(rows),
      wallet: this.#columns.wallet === null ? null : [],
      tx: this.#columns.tx === null ? null : [],
    }
  }

  #finish(): TradeBatch {
    const batch = this.#batch
    const rows = this.#filled
    this.#batch = this.#emptyBatch()
    this.#filled = 0
    return {
      rows,
      tsMs: batch.tsMs.subarray(0, rows),
      price: batch.price.subarray(0, rows),
      size: batch.size.subarray(0, rows),
      symbolCode: batch.symbolCode.subarray(0, rows),
      symbols: this.#symbols,
      side: batch.side === null ? null : sideReader(batch.side),
      wallet: batch.wallet,
      tx: batch.tx,
    }
  }
}

/** DuckDB's message without its advice, which names settings of DuckDB. */
const firstLines = (error: unknown): string =>
  errorMessage(error)
    .split(/\n\s*(?:\n|Possible |Column |Try )/, 1)[0]
    .replace(/ Try (?:increasing|setting) .*$/s, '')
    .split('\n')
    .map((line) => line.trim())
    .join('; ')

const sideReader = (codes: Uint8Array) => (row: number) =>
  codes[row] === SIDE_BUY ? 'buy' : codes[row] === SIDE_SELL ? 'sell' : null

/** All numeric columns of the query are DOUBLE, so that this loop always sees the same class of vector. */
function copyNumbers(
  chunk: DuckDBDataChunk,
  column: number,
  from: number,
  rows: number,
  into: Float64Array | Uint32Array | Uint8Array,
  at: number,
  missing: number,
): void {
  const vector = chunk.getColumnVector(column)
  for (let row = 0; row < rows; row++) {
    const value = vector.getItem(from + row)
    into[at + row] = typeof value === 'number' ? value : missing
  }
}

function copyTexts(
  chunk: DuckDBDataChunk,
  column: number,
  from: number,
  rows: number,
  into: (string | null)[],
): void {
  const vector = chunk.getColumnVector(column)
  for (let row = 0; row < rows; row++) {
    const value = vector.getItem(from + row)
    into.push(typeof value === 'string' ? value : null)
  }
}
