import { recordFrom } from '../../lib/record.ts'
import { TRADE_SAMPLE_LINES } from '../limits.ts'
import { numberColumns, recogniseColumns } from './csv-layouts.ts'
import {
  type CsvDialect,
  type CsvRecord,
  findDialect,
  isHeader,
  readRecords,
  splitLine,
  usualWidth,
} from './csv-records.ts'
import { readHead, readLines } from './text-lines.ts'
import type { TradeBatch } from './trade-batch.ts'
import { FIELDS, NO_VALUES, type RawTrade, TradeBatchBuilder } from './trade-batch-builder.ts'
import { invalid, resolveColumns, type TradeColumns, type TradeMapping } from './trade-columns.ts'
import type { SourceOptions, TradeFile } from './trade-source.ts'

/** Opens a file of delimited text. @throws StoreError `invalid` */
export async function openCsv(options: SourceOptions): Promise<TradeFile> {
  const { path, mapping, symbol } = options
  const blocks = readLines(path)
  try {
    const lines = await readHead(blocks, TRADE_SAMPLE_LINES)
    const first = lines.findIndex((line) => line.trim() !== '' && !line.startsWith('#'))
    if (first < 0) throw invalid(`${path} holds no rows`)
    const dialect = findDialect(lines.slice(first, first + TRADE_SAMPLE_LINES))
    const { names, rowsFrom } = readCsvHead(lines, first, dialect, mapping)
    const columns = resolveColumns(mapping, names, symbol)
    const rows = new CsvRows(dialect, names, columns, options)
    const batches = rows.read(lines.slice(rowsFrom), blocks)
    return { rowsTotal: null, isLastWhole: () => false, batches }
  } catch (error) {
    await blocks.return(undefined)
    throw error
  }
}

/** The names of the columns, and the line with which the rows begin. */
function readCsvHead(
  lines: readonly string[],
  first: number,
  dialect: CsvDialect,
  mapping: TradeMapping,
): { names: string[]; rowsFrom: number } {
  const { records } = readRecords(lines.slice(first, first + TRADE_SAMPLE_LINES), dialect, true)
  const { width } = usualWidth(records)
  const fieldsOf = (line: string | undefined): string[] => splitLine(line ?? '', dialect)
  const mayBeFirst = (fields: readonly string[]): boolean =>
    fields.length === width || (isHeader(fields) && withoutBlankEnd(fields).length === width)
  let at = first
  while (at < lines.length && !mayBeFirst(fieldsOf(lines[at]))) at++
  const fields = fieldsOf(lines[at])
  // Titles may stand before the names.
  if (isHeader(fields)) return { names: withoutBlankEnd(fields), rowsFrom: at + 1 }
  const comment = fieldsOf(lines[first - 1]?.replace(/^#\s*/, ''))
  if (comment.length === width && isHeader(comment)) return { names: comment, rowsFrom: first }
  // What stands before the first usual record is a damaged row, unless it has no value at all: then it may be a damaged header.
  const mayBeHeader = lines
    .slice(first, at)
    .some((line) => isHeader(fieldsOf(line.replaceAll(dialect.quote, ''))))
  const isNumbered = Object.values(mapping).some((name) => /^column\d+/.test(name))
  const rows = records.filter((record) => typeof record !== 'string')
  const names = isNumbered || mayBeHeader ? null : recogniseColumns(rows)
  return { names: names ?? numberColumns(width), rowsFrom: first }
}

/** A delimiter at the end of each line divides nothing. */
function withoutBlankEnd(names: readonly string[]): string[] {
  const end = names.findLastIndex((name) => name !== '')
  return names.slice(0, end + 1)
}

class CsvRows {
  readonly #dialect: CsvDialect
  readonly #width: number
  readonly #builder: TradeBatchBuilder
  /** For each field of a trade its place in a record; -1: the file does not have it. */
  readonly #places: Readonly<Record<keyof RawTrade, number>>
  readonly #symbol: string | null
  /** Used for each row. */
  readonly #raw: RawTrade

  constructor(dialect: CsvDialect, names: readonly string[], columns: TradeColumns, options: SourceOptions) {
    this.#dialect = dialect
    this.#width = names.length
    this.#symbol = options.symbol
    this.#builder = new TradeBatchBuilder(columns, options.batchRows)
    this.#places = recordFrom(FIELDS, (field) => {
      const name = columns[field]
      return name === null ? -1 : names.indexOf(name)
    })
    this.#raw = { ...NO_VALUES, symbol: options.symbol }
  }

  async *read(head: string[], blocks: AsyncGenerator<string[]>): AsyncGenerator<TradeBatch> {
    let lines = head
    try {
      for (let isEnd = false; !isEnd; ) {
        const next = await blocks.next()
        isEnd = next.done === true
        const { records, rest } = readRecords(lines, this.#dialect, isEnd)
        for (const record of records) {
          this.#add(record)
          if (this.#builder.isFull) yield this.#builder.finish()
        }
        if (next.done !== true) lines = rest.length === 0 ? next.value : [...rest, ...next.value]
      }
      if (!this.#builder.isEmpty) yield this.#builder.finish()
    } finally {
      await blocks.return(undefined)
    }
  }

  #add(record: CsvRecord): void {
    if (typeof record === 'string') this.#builder.addMalformed(record)
    else if (record.length < this.#width || !this.#hasBlankEnd(record))
      this.#builder.addMalformed(record.join(this.#dialect.delimiter))
    else this.#builder.add(this.#toRaw(record))
  }

  #hasBlankEnd(fields: readonly string[]): boolean {
    for (let at = this.#width; at < fields.length; at++) if (fields[at] !== '') return false
    return true
  }

  #toRaw(fields: readonly string[]): RawTrade {
    const { ts, date, symbol, price, size, side, wallet, tx } = this.#places
    const raw = this.#raw
    raw.ts = fields[ts]
    raw.date = date < 0 ? null : fields[date]
    raw.symbol = symbol < 0 ? this.#symbol : fields[symbol]
    raw.price = fields[price]
    raw.size = fields[size]
    raw.side = side < 0 ? null : fields[side]
    raw.wallet = wallet < 0 ? null : fields[wallet]
    raw.tx = tx < 0 ? null : fields[tx]
    return raw
  }
}
