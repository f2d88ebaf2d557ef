// In: chunks of a query over a file of trades. Out: batches of columns of an exact size, symbols as numbers. Holds one
// batch at a time. Never sorts, never drops a row.

import type { DuckDBDataChunk, DuckDBResult } from '@duckdb/node-api'
import { StoreError } from '../../store/errors.ts'
import { TRADE_SYMBOLS_MAX } from '../limits.ts'
import { refuse, SIDE_BUY, SIDE_SELL, type TradeColumns } from './trade-columns.ts'
import type { TradeBatch } from './trade-translator.ts'

/** A batch as a file has it: prices are in the file's own money, and symbols are asked for by row. */
export interface TradeFileBatch extends TradeBatch {
  symbol(row: number): string
}

export const tooManySymbols = (): StoreError => refuse(`the file has more than ${TRADE_SYMBOLS_MAX} symbols`)

/** The columns of the query, by place. */
const TS = 0
const PRICE = 1
const SIZE = 2
const SYMBOL = 3
const FIRST_OPTIONAL = 4

interface Columns {
  tsMs: Float64Array
  price: Float64Array
  size: Float64Array
  symbolCode: Uint32Array
  side: Uint8Array | null
  wallet: (string | null)[] | null
  tx: (string | null)[] | null
}

/** Turns DuckDB's chunks into batches of exactly `batchRows`, but the last. */
export class TradeReader {
  private readonly symbols: string[]
  private readonly codes: Map<string, number> | null
  private readonly present: Pick<TradeColumns, 'side' | 'wallet' | 'tx'>
  private readonly batchRows: number
  private batch: Columns
  private filled = 0
  /** The place in `symbols` of rows that name none. */
  private readonly noSymbol: number

  constructor(columns: TradeColumns, dictionary: string[] | null, batchRows: number) {
    this.present = columns
    this.batchRows = batchRows
    this.symbols = dictionary === null ? [''] : [...dictionary, '']
    this.noSymbol = dictionary === null ? 0 : dictionary.length
    this.codes = dictionary === null ? new Map([['', 0]]) : null
    this.batch = this.emptyBatch()
  }

  async *read(
    start: () => Promise<DuckDBResult>,
    close: () => Promise<void>,
  ): AsyncGenerator<TradeFileBatch> {
    try {
      const result = await start()
      for await (const chunk of result) yield* this.take(chunk)
      if (this.filled > 0) yield this.finish()
    } catch (error) {
      if (error instanceof StoreError) throw error
      throw refuse(`the file cannot be read on: ${(error as Error).message}`)
    } finally {
      await close()
    }
  }

  private *take(chunk: DuckDBDataChunk): Generator<TradeFileBatch> {
    for (let from = 0; from < chunk.rowCount; ) {
      const rows = Math.min(chunk.rowCount - from, this.batchRows - this.filled)
      this.copy(chunk, from, rows)
      from += rows
      this.filled += rows
      if (this.filled === this.batchRows) yield this.finish()
    }
  }

  private copy(chunk: DuckDBDataChunk, from: number, rows: number): void {
    const { batch, filled: to } = this
    copyNumbers(chunk, TS, from, rows, batch.tsMs, to, Number.NaN)
    copyNumbers(chunk, PRICE, from, rows, batch.price, to, Number.NaN)
    copyNumbers(chunk, SIZE, from, rows, batch.size, to, Number.NaN)
    if (this.codes === null) copyNumbers(chunk, SYMBOL, from, rows, batch.symbolCode, to, this.noSymbol)
    else this.copySymbols(chunk, from, rows)
    let column = FIRST_OPTIONAL
    if (batch.side !== null) copyNumbers(chunk, column++, from, rows, batch.side, to, 0)
    if (batch.wallet !== null) copyTexts(chunk, column++, from, rows, batch.wallet)
    if (batch.tx !== null) copyTexts(chunk, column++, from, rows, batch.tx)
  }

  private copySymbols(chunk: DuckDBDataChunk, from: number, rows: number): void {
    const vector = chunk.getColumnVector(SYMBOL)
    for (let row = 0; row < rows; row++) {
      const symbol = (vector.getItem(from + row) as string | null) ?? ''
      this.batch.symbolCode[this.filled + row] = this.codes!.get(symbol) ?? this.addSymbol(symbol)
    }
  }

  private addSymbol(symbol: string): number {
    if (this.symbols.length > TRADE_SYMBOLS_MAX) throw tooManySymbols()
    this.codes!.set(symbol, this.symbols.length)
    return this.symbols.push(symbol) - 1
  }

  private emptyBatch(): Columns {
    const rows = this.batchRows
    return {
      tsMs: new Float64Array(rows),
      price: new Float64Array(rows),
      size: new Float64Array(rows),
      symbolCode: new Uint32Array(rows),
      side: this.present.side === null ? null : new Uint8Array(rows),
      wallet: this.present.wallet === null ? null : [],
      tx: this.present.tx === null ? null : [],
    }
  }

  private finish(): TradeFileBatch {
    const { symbols, batch, filled: rows } = this
    const symbolCode = batch.symbolCode.subarray(0, rows)
    this.batch = this.emptyBatch()
    this.filled = 0
    return {
      rows,
      tsMs: batch.tsMs.subarray(0, rows),
      price: batch.price.subarray(0, rows),
      size: batch.size.subarray(0, rows),
      symbolCode,
      symbols,
      symbol: (row) => symbols[symbolCode[row]],
      side: batch.side === null ? null : sideReader(batch.side),
      wallet: batch.wallet,
      tx: batch.tx,
    }
  }
}

const sideReader = (codes: Uint8Array) => (row: number) =>
  codes[row] === SIDE_BUY ? 'buy' : codes[row] === SIDE_SELL ? 'sell' : null

/** Every numeric column of the query is a DOUBLE, so that this loop always meets the same vector. */
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
    const value = vector.getItem(from + row) as number | null
    into[at + row] = value === null ? missing : value
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
  for (let row = 0; row < rows; row++) into.push(vector.getItem(from + row) as string | null)
}
