// In: rows as DuckDB hands them over, and the columns of their table. Out: an Arrow IPC stream: its schema, a record batch
// for each of DuckDB's chunks, its end. Never holds more than one chunk.
import type { DuckDBDataChunk, DuckDBValue, DuckDBVector } from '@duckdb/node-api'
import {
  Bool,
  type Data,
  type DataType,
  Field,
  Float64,
  Int32,
  Int64,
  List,
  makeBuilder,
  makeData,
  RecordBatch,
  Schema,
  Struct,
  Table,
  TimestampMicrosecond,
  tableToIPC,
  Utf8,
} from 'apache-arrow'
import type { Column, ColumnType } from '../../schema/tables.ts'
import { duckdb } from '../duckdb/duckdb.ts'

const { DuckDBListValue, DuckDBTimestampValue } = duckdb

const TYPES: Readonly<Record<ColumnType, () => DataType>> = {
  VARCHAR: () => new Utf8(),
  DOUBLE: () => new Float64(),
  BIGINT: () => new Int64(),
  INTEGER: () => new Int32(),
  BOOLEAN: () => new Bool(),
  TIMESTAMP: () => new TimestampMicrosecond(),
  'VARCHAR[]': () => new List(new Field('item', new Utf8(), true)),
}

/** The end of a stream: a continuation marker and no length. */
const END_BYTES = 8
const END = Buffer.from([0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0])

function arrowValue(value: DuckDBValue): unknown {
  // The builder takes milliseconds; the lake's times are whole ones.
  if (value instanceof DuckDBTimestampValue) return Number(value.micros / 1_000n)
  if (value instanceof DuckDBListValue) return value.items
  return value
}

/** A column of one chunk in Arrow's form. */
type Encode = (vector: DuckDBVector, rows: number) => Data

/** More than half of the columns are numbers, and most bytes are text: both go without a builder's steps. */
function encodeDoubles(vector: DuckDBVector, rows: number): Data {
  const data = new Float64Array(rows)
  const nullBitmap = new Uint8Array((rows + 7) >> 3)
  let nullCount = 0
  for (let row = 0; row < rows; row++) {
    const value = vector.getItem(row) as number | null
    if (value === null) nullCount++
    else {
      data[row] = value
      nullBitmap[row >> 3] |= 1 << (row & 7)
    }
  }
  return makeData({ type: new Float64(), length: rows, nullCount, nullBitmap, data })
}

/** A UTF-16 unit takes at most so many bytes in UTF-8. */
const BYTES_PER_UNIT_MAX = 3

/** Texts into one buffer, by the one call that writes UTF-8 in place. */
function encodeTexts(vector: DuckDBVector, rows: number): Data {
  const texts: (string | null)[] = []
  let units = 0
  for (let row = 0; row < rows; row++) {
    const text = vector.getItem(row) as string | null
    texts.push(text)
    units += text?.length ?? 0
  }
  const data = Buffer.allocUnsafe(units * BYTES_PER_UNIT_MAX)
  const valueOffsets = new Int32Array(rows + 1)
  const nullBitmap = new Uint8Array((rows + 7) >> 3)
  let [at, nullCount] = [0, 0]
  for (let row = 0; row < rows; row++) {
    const text = texts[row]
    if (text === null) nullCount++
    else {
      at += data.write(text, at)
      nullBitmap[row >> 3] |= 1 << (row & 7)
    }
    valueOffsets[row + 1] = at
  }
  const type = new Utf8()
  return makeData({ type, length: rows, nullCount, nullBitmap, valueOffsets, data: data.subarray(0, at) })
}

const ENCODERS: Partial<Record<ColumnType, Encode>> = { DOUBLE: encodeDoubles, VARCHAR: encodeTexts }

function encodeWith(type: DataType): Encode {
  const builder = makeBuilder({ type, nullValues: [null] })
  return (vector, rows) => {
    for (let row = 0; row < rows; row++) builder.append(arrowValue(vector.getItem(row)) as never)
    return builder.flush()
  }
}

export interface ArrowRows {
  readonly head: Buffer
  batch(chunk: DuckDBDataChunk): Buffer
  readonly end: Buffer
}

/** An encoder for one stream. Comments of the columns go with their fields. */
export function arrowRows(columns: readonly Column[]): ArrowRows {
  const schema = new Schema(
    columns.map(
      ({ name, type, nullable, comment }) =>
        new Field(name, TYPES[type](), nullable, new Map([['comment', comment]])),
    ),
  )
  const encoders = columns.map(({ type }) => ENCODERS[type] ?? encodeWith(TYPES[type]()))
  const empty = Buffer.from(tableToIPC(new Table(schema), 'stream'))
  const head = empty.subarray(0, empty.length - END_BYTES)

  function batch(chunk: DuckDBDataChunk): Buffer {
    const children = encoders.map((encode, index) => encode(chunk.getColumnVector(index), chunk.rowCount))
    const data = makeData({ type: new Struct(schema.fields), length: chunk.rowCount, nullCount: 0, children })
    const stream = tableToIPC(new Table(schema, [new RecordBatch(schema, data)]), 'stream')
    // A stream of its own says the schema anew and ends: what is between is the batch.
    return Buffer.from(stream.buffer, stream.byteOffset, stream.byteLength).subarray(head.length, -END_BYTES)
  }
  return { head, batch, end: END }
}
