// In: rows of the market as plain values. Out: msgpack, and Arrow IPC streams of one schema, whatever the rows hold.
// Never JSON: that comes from the engine as bytes.
import {
  Bool,
  type DataType,
  Field,
  Float64,
  Int32,
  makeBuilder,
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
import { type MarketItem, marketItemSchema } from '../schema/market-item.ts'

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
  if (COUNTS.has(name)) return new Int32()
  if (FLAGS.has(name)) return new Bool()
  return TEXTS.has(name) ? new Utf8() : new Float64()
}

function schemaOf(names: readonly string[]): Schema {
  return new Schema(names.map((name) => new Field(name, typeOf(name), true)))
}

const ITEM_SCHEMA = schemaOf(Object.keys(marketItemSchema.shape))

export const itemsToArrow = (items: readonly MarketItem[]): Buffer => toArrow(ITEM_SCHEMA, items)

function toArrow(schema: Schema, rows: readonly object[]): Buffer {
  const children = schema.fields.map((field) => {
    const builder = makeBuilder({ type: field.type, nullValues: [null, undefined] })
    for (const row of rows) builder.append((row as Record<string, unknown>)[field.name] as never)
    return builder.finish().flush()
  })
  const data = makeData({ type: new Struct(schema.fields), length: rows.length, nullCount: 0, children })
  return Buffer.from(tableToIPC(new Table(schema, [new RecordBatch(schema, data)]), 'stream'))
}
