// Encodes rows from DuckDB as an Arrow IPC stream: the schema, a record batch for each DuckDB chunk, the end marker.
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

/** End of an Arrow stream: a continuation marker and a length of 0. */
const END_BYTES = 8
const END = Buffer.from([0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0])

function arrowValue(value: DuckDBValue): unknown {
  // Arrow's builder takes milliseconds, and the lake has no finer times.
  if (value instanceof DuckDBTimestampValue) return Number(value.micros / 1_000n)
  if (value instanceof DuckDBListValue) return value.items
  return value
}

/** Encodes one column of a chunk. */
type EncodeColumn = (vector: DuckDBVector, rows: number) => Data

/** Numbers and text are encoded without Arrow's builder: they are most columns and most bytes. */
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

/** Most bytes that a UTF-16 code unit takes in UTF-8. */
const BYTES_PER_UNIT_MAX = 3

/** Encodes strings with `Buffer.write`, which writes UTF-8 in place. */
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

const ENCODERS: Partial<Record<ColumnType, EncodeColumn>> = { DOUBLE: encodeDoubles, VARCHAR: encodeTexts }

function encodeWith(type: DataType): EncodeColumn {
  const builder = makeBuilder({ type, nullValues: [null] })
  return (vector, rows) => {
    for (let row = 0; row < rows; row++) builder.append(arrowValue(vector.getItem(row)) as never)
    return builder.flush()
  }
}

/** Encodes one stream: `head`, then a batch for each chunk, then `end`. Comments of columns become metadata of fields. */
export class ArrowEncoder {
  readonly head: Buffer
  readonly end = END
  readonly #schema: Schema
  readonly #encoders: readonly EncodeColumn[]

  constructor(columns: readonly Column[]) {
    this.#schema = new Schema(
      columns.map(
        ({ name, type, nullable, comment }) =>
          new Field(name, TYPES[type](), nullable, new Map([['comment', comment]])),
      ),
    )
    this.#encoders = columns.map(({ type }) => ENCODERS[type] ?? encodeWith(TYPES[type]()))
    const empty = Buffer.from(tableToIPC(new Table(this.#schema), 'stream'))
    this.head = empty.subarray(0, empty.length - END_BYTES)
  }

  encodeBatch(chunk: DuckDBDataChunk): Buffer {
    const schema = this.#schema
    const length = chunk.rowCount
    const children = this.#encoders.map((encode, index) => encode(chunk.getColumnVector(index), length))
    const data = makeData({ type: new Struct(schema.fields), length, nullCount: 0, children })
    const stream = tableToIPC(new Table(schema, [new RecordBatch(schema, data)]), 'stream')
    // Arrow writes a whole stream, with the schema before the batch and an end after it: only the batch is kept.
    return Buffer.from(stream.buffer, stream.byteOffset, stream.byteLength).subarray(
      this.head.length,
      -END_BYTES,
    )
  }
}
