import { recordFrom } from '../../lib/record.ts'
import { truncateText } from '../../lib/text/truncate-text.ts'
import type { StoreError } from '../../store/errors.ts'
import { TRADE_SYMBOLS_MAX } from '../limits.ts'
import type { RowFault, Side, TradeBatch } from './trade-batch.ts'
import { invalid, type TradeColumns } from './trade-columns.ts'
import { type RawValue, readNumber, readTime, SideReader } from './trade-values.ts'

/** The fields of a row, each of a column. */
export const FIELDS = ['ts', 'date', 'price', 'size', 'symbol', 'side', 'wallet', 'tx'] as const
/** A row as the file has it. */
export type RawTrade = Record<(typeof FIELDS)[number], RawValue>
export const NO_VALUES: Readonly<RawTrade> = recordFrom(FIELDS, () => null)

export const tooManySymbols = (): StoreError => invalid(`the file has more than ${TRADE_SYMBOLS_MAX} symbols`)

/** Databento's prices without a decimal point, and its sign for none. */
const FIXED_PRICE = /^-?\d+$/
const FIXED_PRICE_NONE = '9223372036854775807'
const FIXED_PRICE_UNITS = 1e9
/** What no name has: control characters, and U+FFFD, which takes the place of bytes that are no text. */
const NO_WORD = /[\p{Cc}\uFFFD]/u

/** Makes batches of rows. A row that is not understood takes its place in the batch, with its fault. */
export class TradeBatchBuilder {
  readonly #symbols: string[]
  readonly #codes = new Map<string, number>()
  #columns: TradeColumns
  #sides: SideReader | null
  readonly #batchRows: number
  #batch: ReturnType<typeof emptyBatch>
  #filled = 0

  /** @param symbols those that are known already, in the order of the codes that `codeOf` need not be asked for: from 1. */
  constructor(columns: TradeColumns, batchRows: number, symbols: readonly string[] = []) {
    this.#columns = columns
    this.#batchRows = batchRows
    this.#sides = columns.side === null ? null : new SideReader(columns.side)
    this.#symbols = ['', ...symbols]
    for (const [code, symbol] of this.#symbols.entries()) this.#codes.set(symbol, code)
    this.#batch = emptyBatch(this.#batchRows)
  }

  /** A file of JSON has shown a field that no record before had. */
  addColumns(columns: TradeColumns): void {
    this.#columns = columns
    if (columns.side !== null) this.#sides ??= new SideReader(columns.side)
  }

  get isFull(): boolean {
    return this.#filled === this.#batchRows
  }

  get isEmpty(): boolean {
    return this.#filled === 0
  }

  /** Adds a row as the file has it. */
  add(raw: RawTrade): void {
    const { ts, date, symbol } = raw
    const code = this.codeOf(symbol === null ? '' : String(symbol))
    this.addRead(raw, readTime(ts, date), this.readPrice(raw.price), code)
  }

  /** Adds a row whose time, price and symbol were read already. */
  addRead(raw: RawTrade, tsMs: number, price: number, symbolCode: number): void {
    const at = this.#filled++
    const batch = this.#batch
    const size = readNumber(raw.size)
    batch.tsMs[at] = tsMs
    batch.price[at] = price
    batch.size[at] = size
    batch.symbolCode[at] = symbolCode
    const side = this.#sides === null ? null : this.#sides.read(raw.side)
    batch.side.push(side ?? null)
    batch.wallet.push(textOf(raw.wallet))
    batch.tx.push(textOf(raw.tx))
    const fault = this.#faultOf(raw, tsMs, price, size, side, symbolCode)
    if (fault !== null) batch.faults.set(at, fault)
  }

  #faultOf(
    raw: RawTrade,
    tsMs: number,
    price: number,
    size: number,
    side: Side | null | undefined,
    code: number,
  ): RowFault | null {
    if (Number.isNaN(tsMs)) {
      const shown = this.#columns.date === null ? show(raw.ts) : `${show(raw.date)} ${show(raw.ts)}`
      return { reason: 'time_invalid', sample: `"${this.#columns.ts}" is ${shown}` }
    }
    if (Number.isNaN(price))
      return { reason: 'price_invalid', sample: `"${this.#columns.price}" is ${show(raw.price)}` }
    if (Number.isNaN(size))
      return { reason: 'size_invalid', sample: `"${this.#columns.size}" is ${show(raw.size)}` }
    if (side === undefined)
      return {
        reason: 'side_unknown',
        sample: `"${this.#columns.side}" is ${show(raw.side)} (--replay-map side= leaves it out)`,
      }
    for (const text of [this.#symbols[code], raw.wallet, raw.tx])
      if (typeof text === 'string' && NO_WORD.test(text))
        return { reason: 'row_malformed', sample: `a field is ${show(text)}` }
    return null
  }

  /** Adds a row whose fields are not clear. @param text what stands there, or why they are not */
  addMalformed(text: string): void {
    this.addRead(NO_VALUES, Number.NaN, Number.NaN, 0)
    this.#batch.faults.set(this.#filled - 1, { reason: 'row_malformed', sample: show(text) })
  }

  /** NaN where the value is not a price. */
  readPrice(value: RawValue): number {
    const price = readNumber(value)
    if (!this.#columns.isPriceFixed || typeof value !== 'string' || !FIXED_PRICE.test(value)) return price
    return value === FIXED_PRICE_NONE ? Number.NaN : price / FIXED_PRICE_UNITS
  }

  /** The index of a symbol. @throws StoreError `invalid` for one more than there may be. */
  codeOf(symbol: string): number {
    return this.#codes.get(symbol) ?? this.#addSymbol(symbol)
  }

  #addSymbol(symbol: string): number {
    if (this.#symbols.length > TRADE_SYMBOLS_MAX) throw tooManySymbols()
    // A copy: a part of a text keeps all of it alive.
    const own = truncateText(symbol, symbol.length)
    this.#codes.set(own, this.#symbols.length)
    return this.#symbols.push(own) - 1
  }

  /** The rows so far as a batch; the builder begins another one. */
  finish(): TradeBatch {
    const batch = this.#batch
    const rows = this.#filled
    this.#batch = emptyBatch(this.#batchRows)
    this.#filled = 0
    return {
      rows,
      tsMs: batch.tsMs.subarray(0, rows),
      price: batch.price.subarray(0, rows),
      size: batch.size.subarray(0, rows),
      symbolCode: batch.symbolCode.subarray(0, rows),
      symbols: this.#symbols,
      side: this.#columns.side === null ? null : batch.side,
      wallet: this.#columns.wallet === null ? null : batch.wallet,
      tx: this.#columns.tx === null ? null : batch.tx,
      faults: batch.faults,
    }
  }
}

const emptyBatch = (rows: number) => ({
  tsMs: new Float64Array(rows),
  price: new Float64Array(rows),
  size: new Float64Array(rows),
  symbolCode: new Uint32Array(rows),
  side: [] as (Side | null)[],
  wallet: [] as (string | null)[],
  tx: [] as (string | null)[],
  faults: new Map<number, RowFault>(),
})

const textOf = (value: RawValue): string | null => (value === null || value === '' ? null : String(value))

const SHOWN_CHARS_MAX = 60
function show(value: RawValue): string {
  if (value === null || value === '') return 'empty'
  const text = String(value)
  return `"${text.length > SHOWN_CHARS_MAX ? `${text.slice(0, SHOWN_CHARS_MAX)}…` : text}"`
}
