import { errorMessage } from '../../lib/error-text.ts'
import { isRecord } from '../../lib/record.ts'
import { TRADE_SAMPLE_RECORDS } from '../limits.ts'
import { type JsonItem, type JsonRecord, readJsonItems } from './json-records.ts'
import { readHead, readLines } from './text-lines.ts'
import type { TradeBatch } from './trade-batch.ts'
import { FIELDS, NO_VALUES, type RawTrade, TradeBatchBuilder } from './trade-batch-builder.ts'
import { addLateColumns, invalid, resolveColumns, type TradeColumns } from './trade-columns.ts'
import type { SourceOptions, TradeFile } from './trade-source.ts'
import type { RawValue } from './trade-values.ts'

/** Opens a file of JSON, a record a line or one value. @throws StoreError `invalid` */
export async function openJson(options: SourceOptions): Promise<TradeFile> {
  const items = readJsonItems(options.path, readLines(options.path))
  try {
    const head = await readHead(items, TRADE_SAMPLE_RECORDS)
    const records = head.filter((item) => typeof item !== 'string')
    if (records.length === 0) throw invalid(`${options.path} holds no record of JSON`)
    const names = new Set<string>()
    for (const record of records) addNames(record, names)
    const rows = new JsonRows(names, options)
    return { rowsTotal: null, isLastWhole: () => rows.isLastWhole, batches: rows.read(head, items) }
  } catch (error) {
    await items.return(undefined)
    throw error
  }
}

/** Distinct names of fields; further ones are not looked for. */
const NAMES_MAX = 1_000

/** Adds the names of a record's members; those of a member that is an object itself as `outer.inner`. */
function addNames(record: JsonRecord, names: Set<string>): void {
  if (names.size > NAMES_MAX) return
  for (const name in record) {
    const value = record[name]
    if (!isRecord(value)) names.add(name)
    else for (const inner in value) names.add(`${name}.${inner}`)
  }
}

function valueAt(record: JsonRecord, name: string | null): RawValue {
  if (name === null) return null
  if (Object.hasOwn(record, name)) return toRaw(record[name])
  const dot = name.indexOf('.')
  const outer = dot < 0 ? null : record[name.slice(0, dot)]
  return isRecord(outer) && Object.hasOwn(outer, name.slice(dot + 1))
    ? toRaw(outer[name.slice(dot + 1)])
    : null
}

function toRaw(value: unknown): RawValue {
  if (typeof value === 'string') return value.trim()
  if (typeof value === 'number') return value
  return typeof value === 'boolean' ? String(value) : null
}

class JsonRows {
  /** The last record was JSON: no part of one is. */
  isLastWhole = true
  #names: ReadonlySet<string>
  readonly #options: SourceOptions
  #columns: TradeColumns
  readonly #builder: TradeBatchBuilder
  /** Used for each row. */
  readonly #raw: RawTrade = { ...NO_VALUES }

  constructor(names: Set<string>, options: SourceOptions) {
    this.#names = names
    this.#options = options
    this.#columns = resolveColumns(options.mapping, [...names], options.symbol)
    this.#builder = new TradeBatchBuilder(this.#columns, options.batchRows)
  }

  async *read(head: JsonItem[], items: AsyncGenerator<JsonItem[]>): AsyncGenerator<TradeBatch> {
    try {
      for (let block = head; ; ) {
        for (const item of block) {
          this.#add(item)
          if (this.#builder.isFull) yield this.#builder.finish()
        }
        const next = await items.next()
        if (next.done === true) break
        block = next.value
      }
      if (!this.#builder.isEmpty) yield this.#builder.finish()
    } finally {
      await items.return(undefined)
    }
  }

  #add(item: JsonItem): void {
    this.isLastWhole = typeof item !== 'string'
    if (typeof item === 'string') this.#builder.addMalformed(item)
    else {
      const doubt = this.#noteNames(item)
      if (doubt === null) this.#builder.add(this.#toRaw(item))
      else this.#builder.addMalformed(doubt)
    }
  }

  /** A field that is left out while it has no value may come later. @returns why it is not clear which one is; null: it is */
  #noteNames(record: JsonRecord): string | null {
    const { side, wallet, tx } = this.#columns
    if ((side !== null && wallet !== null && tx !== null) || this.#names.size > NAMES_MAX) return null
    let hasNew = false
    for (const name in record) hasNew ||= !this.#names.has(name)
    if (!hasNew) return null
    const names = new Set(this.#names)
    addNames(record, names)
    if (names.size === this.#names.size) return null
    try {
      this.#columns = addLateColumns(this.#columns, this.#options.mapping, [...names])
    } catch (error) {
      return errorMessage(error)
    }
    this.#names = names
    this.#builder.addColumns(this.#columns)
    return null
  }

  #toRaw(record: JsonRecord): RawTrade {
    const raw = this.#raw
    for (const field of FIELDS) raw[field] = valueAt(record, this.#columns[field])
    if (this.#columns.symbol === null) raw.symbol = this.#options.symbol
    return raw
  }
}
