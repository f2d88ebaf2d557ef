// In: rows of the market as plain values. Out: msgpack, and Arrow IPC streams of one schema, whatever the rows hold.
// Never JSON: that comes from the engine as bytes.
import {
  Bool,
  type Data,
  DataType,
  Field,
  Float64,
  Int64,
  makeData,
  RecordBatch,
  Schema,
  Struct,
  Table,
  TimestampMillisecond,
  tableToIPC,
  Utf8,
} from 'apache-arrow'
import { Packr } from 'msgpackr'
import { type MarketItem, marketItemSchema } from '../../schema/market-item.ts'
import { putWholeNumbers } from './bar-arrow.ts'

export const MSGPACK_TYPE = 'application/msgpack'
export const ARROW_TYPE = 'application/vnd.apache.arrow.stream'

/** Plain maps that any msgpack reader opens. */
const packr = new Packr({ useRecords: false, variableMapSize: true })

export const toMsgpack = (value: unknown): Buffer => Buffer.from(packr.pack(value))

const TIMES = new Set(['created_timestamp', 'last_trade_timestamp'])
const COUNTS = new Set(['analysis_count', 'holder_count'])
const FLAGS = new Set(['is_currently_live', 'complete'])
const TEXTS = new Set([
  'mint',
  'name',
  'symbol',
  'description',
  'image_uri',
  'creator',
  'website',
  'twitter',
  'telegram',
])

function typeOf(name: string): DataType {
  if (TIMES.has(name)) return new TimestampMillisecond()
  // As wide as the integers that JSON shows: a feed may count more holders than 32 bits hold.
  if (COUNTS.has(name)) return new Int64()
  if (FLAGS.has(name)) return new Bool()
  return TEXTS.has(name) ? new Utf8() : new Float64()
}

function schemaOf(names: readonly string[]): Schema {
  return new Schema(names.map((name) => new Field(name, typeOf(name), true)))
}

const ITEM_SCHEMA = schemaOf(Object.keys(marketItemSchema.shape))

export const itemsToArrow = (items: readonly MarketItem[]): Buffer => toArrow(ITEM_SCHEMA, items)

function toArrow(schema: Schema, rows: readonly object[]): Buffer {
  const children = schema.fields.map(({ name, type }) =>
    columnOf(
      type,
      rows.map((row) => (row as Record<string, unknown>)[name] ?? null),
    ),
  )
  const data = makeData({ type: new Struct(schema.fields), length: rows.length, nullCount: 0, children })
  return Buffer.from(tableToIPC(new Table(schema, [new RecordBatch(schema, data)]), 'stream'))
}

/** A column of these cells, made at once: apache-arrow's builders, which take them one by one, cost seven times as much. */
function columnOf(type: DataType, cells: readonly unknown[]): Data {
  const length = cells.length
  const nullCount = cells.filter((cell) => cell === null).length
  const nulls = {
    length,
    nullCount,
    nullBitmap: nullCount === 0 ? null : bitsOf(cells, (cell) => cell !== null),
  }
  if (DataType.isUtf8(type)) return makeData({ type, ...nulls, ...textsOf(cells as (string | null)[]) })
  if (DataType.isBool(type)) return makeData({ type, ...nulls, data: bitsOf(cells, (cell) => cell === true) })
  const numbers = Float64Array.from(cells as number[])
  if (DataType.isInt(type)) return makeData({ type: type as Int64, ...nulls, data: wholeNumbersOf(numbers) })
  return DataType.isTimestamp(type)
    ? makeData({ type, ...nulls, data: wholeNumbersOf(numbers) })
    : makeData({ type: type as Float64, ...nulls, data: numbers })
}

function bitsOf(cells: readonly unknown[], isSet: (cell: unknown) => boolean): Uint8Array {
  const bits = new Uint8Array(Math.ceil(cells.length / 8))
  for (const [row, cell] of cells.entries()) if (isSet(cell)) bits[row >> 3] |= 1 << (row & 7)
  return bits
}

/** Texts one after another, and where each begins. Each is encoded alone: halves of characters must not meet. */
function textsOf(texts: readonly (string | null)[]): { valueOffsets: Int32Array; data: Uint8Array } {
  const valueOffsets = new Int32Array(texts.length + 1)
  const parts = texts.map((text) => Buffer.from(text ?? ''))
  for (const [row, part] of parts.entries()) valueOffsets[row + 1] = valueOffsets[row] + part.length
  return { valueOffsets, data: Buffer.concat(parts) }
}

function wholeNumbersOf(numbers: Float64Array): BigInt64Array {
  const halves = new Uint32Array(2 * numbers.length)
  putWholeNumbers(halves, numbers)
  return new BigInt64Array(halves.buffer)
}
