// In: bars as columns. Out: an Arrow IPC stream, byte for byte what apache-arrow writes. All that depends on the schema and
// the count of rows alone is written by apache-arrow, once, and kept: an answer is that, with the columns copied into
// their places. Never decides which bars.
import {
  Bool,
  type Data,
  Field,
  Float64,
  Int32,
  MessageReader,
  makeData,
  RecordBatch,
  Schema,
  Struct,
  Table,
  TimestampMillisecond,
  tableToIPC,
} from 'apache-arrow'
import { assert } from '../../lib/assert.ts'
import type { BarColumns } from '../../market/types.ts'
import { BAR_NAMES, type BarShape } from '../../schema/bar.ts'
import { ARROW_TEMPLATES_MAX } from '../limits.ts'

const HIGH = 2 ** 32
/** The end of a stream: a continuation and a length of zero. */
const END_BYTES = 8

/** Where the columns of a stream of so many rows lie, and everything around them. */
interface Template {
  /** Schema and header of the batch. */
  head: Buffer
  tail: Buffer
  bytes: number
  /** By column: where its values begin. */
  at: readonly number[]
}

const templates = new Map<string, Template>()

export function barsToArrow(columns: BarColumns, shape: BarShape): Buffer {
  const { head, tail, bytes, at } = templateOf(columns.rowCount, shape)
  // A buffer of its own, so that its places are aligned for the columns.
  const stream = Buffer.allocUnsafeSlow(bytes)
  const { buffer } = stream
  stream.set(head)
  // Padding is zero; only the last two columns have any.
  stream.fill(0, at[6], bytes - tail.length)
  stream.set(tail, bytes - tail.length)
  const { t, o, h, l, c, v, n, closed, rowCount } = columns
  putWholeNumbers(new Uint32Array(buffer, at[0], 2 * rowCount), t)
  for (const [column, values] of [o, h, l, c, v].entries())
    new Float64Array(buffer, at[1 + column], rowCount).set(values)
  new Int32Array(buffer, at[6], rowCount).set(n)
  putFlags(stream, at[7], closed)
  return stream
}

/** Whole numbers as 64-bit integers, in halves: a BigInt for each costs more than all the rest. */
export function putWholeNumbers(halves: Uint32Array, numbers: Float64Array): void {
  for (let row = 0; row < numbers.length; row++) {
    const high = Math.floor(numbers[row] / HIGH)
    halves[2 * row] = numbers[row] - high * HIGH
    halves[2 * row + 1] = high
  }
}

function putFlags(stream: Buffer, at: number, flags: Uint8Array): void {
  let bits = 0
  for (let row = 0; row < flags.length; row++) {
    bits |= flags[row] << (row & 7)
    if ((row & 7) !== 7 && row !== flags.length - 1) continue
    stream[at + (row >> 3)] = bits
    bits = 0
  }
}

function templateOf(rowCount: number, shape: BarShape): Template {
  const key = `${shape} ${rowCount}`
  const kept = templates.get(key)
  if (kept !== undefined) return kept
  if (templates.size >= ARROW_TEMPLATES_MAX) templates.clear()
  const made = templateFrom(emptyStream(rowCount, shape))
  templates.set(key, made)
  return made
}

/** A stream of so many rows of zeros, as apache-arrow writes it. */
function emptyStream(rowCount: number, shape: BarShape): Uint8Array {
  const zeros = () => new Float64Array(rowCount)
  const children: Data[] = [
    makeData({ type: new TimestampMillisecond(), data: new BigInt64Array(rowCount) }),
    ...Array.from({ length: 5 }, () => makeData({ type: new Float64(), data: zeros() })),
    makeData({ type: new Int32(), data: new Int32Array(rowCount) }),
    makeData({ type: new Bool(), length: rowCount, data: new Uint8Array(Math.ceil(rowCount / 8)) }),
  ]
  const schema = new Schema(
    children.map(({ type }, column) => new Field(BAR_NAMES[shape][column], type, true)),
  )
  const data = makeData({ type: new Struct(schema.fields), length: rowCount, nullCount: 0, children })
  return tableToIPC(new Table(schema, [new RecordBatch(schema, data)]), 'stream')
}

function templateFrom(stream: Uint8Array): Template {
  const reader = new MessageReader(stream)
  reader.readSchema()
  const batch = reader.readMessage()
  assert(batch?.isRecordBatch(), 'a stream is a schema and one batch')
  const body = stream.length - END_BYTES - batch.bodyLength
  const { buffers } = batch.header()
  // Two for each column: which rows are there, and their values.
  const at = buffers.filter((_, index) => index % 2 === 1).map(({ offset }) => body + offset)
  return {
    head: Buffer.from(stream.subarray(0, body)),
    tail: Buffer.from(stream.subarray(stream.length - END_BYTES)),
    bytes: stream.length,
    at,
  }
}
