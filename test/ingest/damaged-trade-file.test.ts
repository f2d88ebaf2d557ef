// Trade files that are damaged or were cut: a bad line is refused by itself; a file that breaks off fails, and never finishes with fewer
// rows than it had.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Replay } from '../../src/ingest/replay/replay.ts'
import { openTradeFile } from '../../src/ingest/replay/trade-file.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { NOON_MS, readSql, removeFolder, temporaryFolder } from '../store/support.ts'
import { MemorySink, silentLog } from './memory-sink.ts'

/** More than a reader could guess types from. */
const ROWS = 60_000
const BAD_ROW = 50_000

const ROW = Array.from({ length: ROWS }, (_, n) => ({
  ts: NOON_MS + n,
  symbol: `T${n % 7}`,
  price: ((n * 7_919) % 1_000) / 8 + 1,
  size: (n % 10) + 1,
}))
const CSV = ROW.map(({ ts, symbol, price, size }) => `${ts},${symbol},${price},${size}\n`)
const NDJSON = ROW.map((row) => `${JSON.stringify(row)}\n`)
const HEADER = 'ts,symbol,price,size\n'

const withRow = (lines: readonly string[], line: string): string => lines.with(BAD_ROW, line).join('')
const csv = HEADER + CSV.join('')
const ndjson = NDJSON.join('')

let folder: string
let parquet: Buffer
beforeAll(async () => {
  folder = temporaryFolder()
  const path = join(folder, 'source.parquet')
  await readSql(
    `COPY (SELECT ${NOON_MS} + i AS ts, 'T' || i % 7 AS symbol, i::DOUBLE AS price, 1 AS size FROM range(${ROWS}) r(i))
     TO '${path}' (FORMAT parquet, ROW_GROUP_SIZE 8192)`,
  )
  parquet = readFileSync(path)
})
afterAll(() => removeFolder(folder))

/** Plays a file to its end. A file that is refused at once counts as failed. */
async function play(name: string, bytes: string | Uint8Array) {
  const path = join(folder, name)
  writeFileSync(path, bytes)
  let file: Awaited<ReturnType<typeof openTradeFile>>
  try {
    file = await openTradeFile({ path })
  } catch (error) {
    return { state: 'failed', rows: 0, error: String(error), trades: 0 }
  }
  const sink = new MemorySink()
  const { batches: trades, rowsTotal } = file
  const replay = new Replay({ trades, rowsTotal, speed: 'max' }, sink, systemClock, silentLog)
  await replay.ready.catch(() => {})
  await replay.done
  const played = sink.data.filter(({ type }) => type === 'trade').length
  const { state } = replay.describe()
  const { rows } = replay.progress()
  return { state, rows, error: replay.describe().error, trades: played }
}

const gzip = gzipSync(csv)
const zstd = zstdCompressSync(csv)

describe('a whole file is played to its end', () => {
  test.each([
    ['csv', csv],
    ['ndjson', ndjson],
    ['csv.gz', gzip],
    ['csv.zst', zstd],
    // A gzip file may have several members, a Zstandard file several frames and some that are to be skipped.
    ['csv.gz', Buffer.concat([gzipSync(csv.slice(0, 100_000)), gzipSync(csv.slice(100_000))])],
    [
      'csv.zst',
      Buffer.concat([
        Buffer.from([0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3]),
        zstdCompressSync(csv.slice(0, 100_000)),
        zstdCompressSync(csv.slice(100_000)),
      ]),
    ],
  ])('%s', async (name, bytes) => {
    expect(await play(`whole.${name}`, bytes)).toEqual({
      state: 'finished',
      rows: ROWS,
      error: null,
      trades: ROWS,
    })
  })
})

describe('a line that is none', () => {
  test.each([
    ['a word', 'csv', HEADER + withRow(CSV, 'what\n')],
    ['too few values', 'csv', HEADER + withRow(CSV, `${NOON_MS},T1\n`)],
    ['an object that is cut', 'ndjson', withRow(NDJSON, '{"ts":1,"symbol":"a",\n')],
  ])(
    'is refused by itself, beyond the rows from which types could be guessed: %s, %s',
    async (_, kind, bytes) => {
      const played = await play(`line.${kind}`, bytes)
      expect(played).toEqual({ state: 'finished', rows: ROWS, error: null, trades: ROWS - 1 })
    },
  )
})

test('the character with which DOS ends a text is a row that is none, at the end of a file that is whole', async () => {
  const played = await play('dos.csv', `${csv}\u001a`)
  expect(played).toMatchObject({ state: 'finished', error: null, trades: ROWS })
})

describe('a file that breaks off', () => {
  test.each([
    ['csv', csv.slice(0, csv.lastIndexOf(','))],
    ['ndjson', ndjson.slice(0, -20)],
    // One byte into a row that is the last.
    ['ndjson', `${ndjson.trimEnd()}\n{`],
  ])('within a row fails: %s', async (kind, bytes) => {
    const { state, error } = await play(`cut.${kind}`, bytes)
    expect({ state, error }).toEqual({
      state: 'failed',
      error: expect.stringMatching(/cannot be read beyond row \d+: it ends within a row/),
    })
  })

  test('a Parquet file whose pages are damaged fails', async () => {
    const damaged = Buffer.from(parquet)
    damaged.fill(0x55, Math.floor(parquet.length * 0.6), Math.floor(parquet.length * 0.6) + 4_096)
    const { state, error } = await play('damaged.parquet', damaged)
    expect({ state, error }).toEqual({ state: 'failed', error: expect.stringMatching(/cannot be read/) })
  })
})

describe('a last row that is none, though the file is whole,', () => {
  const trades = [1, 2].map((n) => ({
    ...{ ts: NOON_MS + n, symbol: 'A', price: 1.5, size: 3, wallet: n === 1 ? 'w' : 'w\u0007' },
  }))
  const refused = { state: 'finished', rows: 2, error: null, trades: 1 }

  test.each([
    ['a JSON value', JSON.stringify(trades)],
    ['a JSON value of several lines', JSON.stringify(trades, null, 1)],
    ['a line of JSON', trades.map((trade) => JSON.stringify(trade)).join('\n')],
  ])('is refused by itself: %s without a line feed at its end', async (_, text) => {
    expect(await play('last.json', text)).toEqual(refused)
  })

  test('is refused by itself: Parquet', async () => {
    const path = join(folder, 'last.parquet')
    await readSql(
      `COPY (SELECT ${NOON_MS} + i AS ts, 'A' AS symbol, 1.5 AS price, 3 AS size, 'w' || CASE i WHEN 1 THEN chr(7) ELSE '' END AS wallet
       FROM range(2) r(i)) TO '${path}' (FORMAT parquet)`,
    )
    expect(await play('last.parquet', readFileSync(path))).toEqual(refused)
  })
})

describe('a compressed file that was cut fails, wherever that was', () => {
  /** Where a line ends in the compressed bytes nobody knows: a cut there was taken for the end of the file. */
  const shares = [0.5, 0.9]
  test.each([
    ...shares.map((share) => ['csv.gz', `${share}`, gzip.subarray(0, gzip.length * share)] as const),
    ...shares.map((share) => ['csv.zst', `${share}`, zstd.subarray(0, zstd.length * share)] as const),
    ['csv.gz', 'its last byte', gzip.subarray(0, -1)] as const,
    ['csv.zst', 'its last byte', zstd.subarray(0, -1)] as const,
    ['csv.gz', 'a member', Buffer.concat([gzip, gzipSync(csv).subarray(0, 5)])] as const,
    ['csv.zst', 'a frame', Buffer.concat([zstd, zstd.subarray(0, 5)])] as const,
  ])('%s, %s', async (name, _, bytes) => {
    const { state, error } = await play(`cut.${name}`, bytes)
    expect({ state, error }).toEqual({
      state: 'failed',
      error: expect.stringMatching(/end of file|cannot be read/),
    })
  })

  test('a gzip file whose rows differ from its checksum fails', async () => {
    const damaged = Buffer.from(gzip)
    damaged[gzip.length - 6] ^= 1
    expect(await play('sum.csv.gz', damaged)).toMatchObject({
      state: 'failed',
      error: expect.stringMatching(/incorrect data check/),
    })
  })
})
