// Compares bars in Arrow and msgpack with apache-arrow's own writer, with plain readers and with DuckDB's types.
import { DuckDBInstance } from '@duckdb/node-api'
import {
  Bool,
  Field,
  Float64,
  Int32,
  makeData,
  RecordBatch,
  Schema,
  Struct,
  Table,
  TimestampMillisecond,
  tableFromIPC,
  tableToIPC,
} from 'apache-arrow'
import fc from 'fast-check'
import { unpack } from 'msgpackr'
import { describe, expect, it } from 'vitest'
import { barsToArrow } from '../../../src/http/encode/bar-arrow.ts'
import { barsToMsgpack } from '../../../src/http/encode/bar-msgpack.ts'
import type { BarColumns } from '../../../src/market/types.ts'
import { BAR_NAMES, BAR_SHAPES, type BarShape } from '../../../src/schema/bar.ts'

type Values = [t: number, prices: number[], n: number, closed: boolean]

const price = fc.double({ noNaN: true, noDefaultInfinity: true })
const values: fc.Arbitrary<Values> = fc.tuple(
  fc.integer({ min: 0, max: 8_640_000_000_000_000 }),
  fc.array(price, { minLength: 5, maxLength: 5 }),
  fc.nat(2_147_483_647),
  fc.boolean(),
)
const bars = fc.oneof(
  { weight: 8, arbitrary: fc.array(values, { maxLength: 20 }) },
  { weight: 8, arbitrary: fc.array(values, { minLength: 60, maxLength: 70 }) },
  { weight: 1, arbitrary: fc.array(values, { minLength: 1_000, maxLength: 1_000 }) },
)

const columnsOf = (rows: readonly Values[]): BarColumns => {
  const [o, h, l, c, v] = [0, 1, 2, 3, 4].map((field) =>
    Float64Array.from(rows, ([, prices]) => prices[field]),
  )
  return {
    rowCount: rows.length,
    t: Float64Array.from(rows, ([t]) => t),
    o,
    h,
    l,
    c,
    v,
    n: Int32Array.from(rows, ([, , n]) => n),
    closed: Uint8Array.from(rows, ([, , , closed]) => Number(closed)),
    gaps: 0,
    version: '',
  }
}

/** The bars as a plain reader returns them. */
const objectsOf = (rows: readonly Values[], shape: BarShape) =>
  rows.map(([t, prices, n, closed]) =>
    Object.fromEntries([t, ...prices, n, closed].map((value, field) => [BAR_NAMES[shape][field], value])),
  )

/** The same bars as a table of typed arrays, written by apache-arrow. */
function written({ rowCount, t, o, h, l, c, v, n, closed }: BarColumns, shape: BarShape): Uint8Array {
  const bits = new Uint8Array(Math.ceil(rowCount / 8))
  for (let row = 0; row < rowCount; row++) bits[row >> 3] |= closed[row] << (row & 7)
  const children = [
    makeData({ type: new TimestampMillisecond(), data: BigInt64Array.from(t, BigInt) }),
    ...[o, h, l, c, v].map((data) => makeData({ type: new Float64(), data })),
    makeData({ type: new Int32(), data: n }),
    makeData({ type: new Bool(), length: rowCount, data: bits }),
  ]
  const schema = new Schema(
    children.map((child, field) => new Field(BAR_NAMES[shape][field], child.type, true)),
  )
  const data = makeData({ type: new Struct(schema.fields), length: rowCount, nullCount: 0, children })
  return tableToIPC(new Table(schema, [new RecordBatch(schema, data)]), 'stream')
}

describe('bars as Arrow', () => {
  it('equal the bytes that apache-arrow writes, and its reader finds every value', () => {
    fc.assert(
      fc.property(bars, fc.constantFrom(...BAR_SHAPES), (rows, shape) => {
        const columns = columnsOf(rows)
        const stream = barsToArrow(columns, shape)
        expect(stream.equals(written(columns, shape))).toBe(true)
        const table = tableFromIPC(stream)
        expect(table.toArray().map((row) => row.toJSON())).toEqual(objectsOf(rows, shape))
      }),
      { numRuns: 40 },
    )
  })

  it('use types that DuckDB also has, and DuckDB reads the same values', async () => {
    const types: Record<string, string> = {
      'Timestamp<MILLISECOND>': 'TIMESTAMP_MS',
      Float64: 'DOUBLE',
      Int32: 'INTEGER',
      Bool: 'BOOLEAN',
    }
    const rows: Values[] = [
      [1_772_000_040_000, [4.5e-9, 0.1, 1e-12, 1 / 3, 123_456_789.123_456], 2_147_483_647, true],
      [1_772_000_100_000, [1, 2, 3, 4, 5], 0, false],
    ]
    const table = tableFromIPC(barsToArrow(columnsOf(rows), 'short'))
    const instance = await DuckDBInstance.create(':memory:', { threads: '1' })
    const connection = await instance.connect()
    const columns = table.schema.fields.map(({ name, type }) => `${name} ${types[`${type}`]}`)
    await connection.run(`CREATE TABLE bars (${columns.join(', ')})`)
    for (const line of objectsOf(rows, 'short')) {
      const cells = BAR_NAMES.short.map((name) =>
        name === 't' ? `make_timestamp_ms(${line.t})` : line[name],
      )
      await connection.run(`INSERT INTO bars VALUES (${cells.join(', ')})`)
    }
    const read = await connection.runAndReadAll('SELECT * REPLACE (epoch_ms(t)::DOUBLE AS t) FROM bars')
    expect(read.getRowObjects()).toEqual(table.toArray().map((row) => row.toJSON()))
    connection.closeSync()
    instance.closeSync()
  })
})

describe('bars as msgpack', () => {
  it('are plain maps with the same values as JSON', () => {
    fc.assert(
      fc.property(bars, fc.constantFrom(...BAR_SHAPES), (rows, shape) => {
        const meta = { mint: 'm', tf: '1m', limit: rows.length, fill: 'none', gaps: 0 }
        const read = unpack(barsToMsgpack(columnsOf(rows), shape, meta))
        expect(read).toEqual({ ok: true, data: objectsOf(rows, shape), meta })
      }),
      { numRuns: 20 },
    )
  })
})
