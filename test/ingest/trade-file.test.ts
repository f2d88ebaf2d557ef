// Tests of trade files of all formats: each row comes out once, in the order of the file and in one form.
import { existsSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { TRADE_ORDER_ROWS_MAX, TRADE_SAMPLE_RECORDS } from '../../src/ingest/limits.ts'
import type { TradeBatch } from '../../src/ingest/replay/trade-batch.ts'
import type { TradeMapping } from '../../src/ingest/replay/trade-columns.ts'
import { openTradeFile, type TradeFileOptions } from '../../src/ingest/replay/trade-file.ts'
import { NOON_MS, readSql, removeFolder, temporaryFolder } from '../store/support.ts'

const TICKS = join(import.meta.dirname, '../../../shared/data/ticks/us-equities-trades-2013-10.parquet')

interface Trade {
  ts: number
  symbol: string
  price: number
  size: number
  side?: string | null
  wallet?: string | null
  tx?: string | null
  fault?: string | undefined
}

let folder: string
beforeEach(() => {
  folder = temporaryFolder()
})
afterEach(() => removeFolder(folder))

function rowsOf(batch: TradeBatch): Trade[] {
  return Array.from({ length: batch.rows }, (_, row) => ({
    ts: batch.tsMs[row],
    symbol: batch.symbols[batch.symbolCode[row]],
    price: batch.price[row],
    size: batch.size[row],
    ...(batch.side === null ? {} : { side: batch.side[row] }),
    ...(batch.wallet === null ? {} : { wallet: batch.wallet[row] }),
    ...(batch.tx === null ? {} : { tx: batch.tx[row] }),
    ...(batch.faults.has(row) ? { fault: batch.faults.get(row)?.reason } : {}),
  }))
}

async function* readTrades(options: TradeFileOptions): AsyncGenerator<TradeBatch> {
  yield* (await openTradeFile(options)).batches
}

async function readAll(options: TradeFileOptions): Promise<Trade[]> {
  const trades: Trade[] = []
  for await (const batch of readTrades(options)) trades.push(...rowsOf(batch))
  return trades
}

function file(name: string, text: string): string {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}

/** A file of so many records that the last ones are none of the sample. */
function deep(more: (at: number, last: number) => object): string {
  const rows = TRADE_SAMPLE_RECORDS + 3_000
  const records = Array.from({ length: rows }, (_, at) => ({ price: 1, size: 1, ...more(at, rows - 1) }))
  return file('deep.ndjson', records.map((record) => JSON.stringify(record)).join('\n'))
}

async function parquet(sql: string): Promise<string> {
  const path = join(folder, 'trades.parquet')
  await readSql(`COPY (${sql}) TO '${path}' (FORMAT parquet, ROW_GROUP_SIZE 2048)`)
  return path
}

const readTimes = async (path: string, options: Partial<TradeFileOptions> = {}): Promise<number[]> =>
  (await readAll({ path, ...options })).map((trade) => trade.ts)

describe('formats', () => {
  test('reads CSV with a timestamp, a side and texts', async () => {
    const path = file(
      'trades.csv',
      `ts,symbol,price,size,side,wallet,tx
2025-06-01 12:00:00.250,"A,B",1.5,10,BUY,w1,t1
2025-06-01 12:00:00.250,C,4.5e-9,0,s,,t2
2025-06-01T12:00:01Z,C,2,1,,w3,t3
2025-06-01T12:00:02Z,C,2,1,hold,w3,t3
`,
    )
    expect(await readAll({ path })).toEqual([
      { ts: NOON_MS + 250, symbol: 'A,B', price: 1.5, size: 10, side: 'buy', wallet: 'w1', tx: 't1' },
      { ts: NOON_MS + 250, symbol: 'C', price: 4.5e-9, size: 0, side: 'sell', wallet: null, tx: 't2' },
      { ts: NOON_MS + 1_000, symbol: 'C', price: 2, size: 1, side: null, wallet: 'w3', tx: 't3' },
      {
        ...{ ts: NOON_MS + 2_000, symbol: 'C', price: 2, size: 1, side: null, wallet: 'w3', tx: 't3' },
        fault: 'side_unknown',
      },
    ])
  })

  test('reads NDJSON with numbers as text, as exchanges send them, with a mapping', async () => {
    const lines = [
      { T: NOON_MS, s: 'SOLUSDT', p: '171.25', q: '0.5' },
      { T: NOON_MS + 1, s: 'BTCUSDT', p: '1e5', q: '0.25' },
    ]
    const path = file('trades.ndjson', lines.map((line) => JSON.stringify(line)).join('\n'))
    const mapping: TradeMapping = { ts: 'T', symbol: 's', price: 'p', size: 'q' }
    expect(await readAll({ path, mapping })).toEqual([
      { ts: NOON_MS, symbol: 'SOLUSDT', price: 171.25, size: 0.5 },
      { ts: NOON_MS + 1, symbol: 'BTCUSDT', price: 100_000, size: 0.25 },
    ])
  })

  test('keeps a row without a value: NaN, or the empty symbol', async () => {
    const sql = `SELECT * FROM (VALUES (make_timestamp(2025,6,1,12,0,0), 'A', 1.0, 2), (NULL, NULL, NULL, NULL)) t(ts, symbol, price, size)`
    const rows = await readAll({ path: await parquet(sql) })
    const none = { ts: Number.NaN, symbol: '', price: Number.NaN, size: Number.NaN, fault: 'time_invalid' }
    expect(rows[1]).toEqual(none)
    const csv = file('trades.csv', 'ts,symbol,price,size\n2025-06-01 12:00:00,A,1,2\n,,,\n')
    expect((await readAll({ path: csv }))[1]).toEqual(rows[1])
  })

  test('accepts a file without rows', async () => {
    const sql = `SELECT now()::TIMESTAMP AS ts, 'A' AS symbol, 1.0 AS price, 1 AS size LIMIT 0`
    expect(await readAll({ path: await parquet(sql) })).toEqual([])
  })
})

describe('times', () => {
  const NANOSECONDS = `${NOON_MS}123456`
  test.each([
    ['TIMESTAMP', `make_timestamp(${NOON_MS}123)`],
    ['TIMESTAMP_S', `epoch_ms(${NOON_MS})::TIMESTAMP_S`],
    ['TIMESTAMP_MS', `epoch_ms(${NOON_MS})::TIMESTAMP_MS`],
    ['TIMESTAMP_NS', `make_timestamp_ns(${NANOSECONDS})`],
    ['TIMESTAMPTZ', `'2025-06-01 14:00:00+02'::TIMESTAMPTZ`],
    ['seconds', `${NOON_MS / 1000}`],
    ['seconds with a fraction', `${NOON_MS / 1000}.0005::DOUBLE`],
    ['milliseconds', `${NOON_MS}`],
    ['microseconds', `${NOON_MS}999::UBIGINT`],
    ['nanoseconds', NANOSECONDS],
    ['text', `'2025-06-01T12:00:00Z'`],
  ])('%s become Unix milliseconds', async (_, sql) => {
    const path = await parquet(`SELECT ${sql} AS ts, 'A' AS symbol, 1 AS price, 1 AS size`)
    expect(await readTimes(path)).toEqual([NOON_MS])
  })

  test('fractions of a second lose no millisecond to rounding', async () => {
    const path = await parquet(
      `SELECT (1381132800000 + i) / 1000 AS ts, 'A' AS symbol, 1 AS price, 1 AS size FROM range(1000) r(i) ORDER BY i`,
    )
    expect(await readTimes(path)).toEqual(Array.from({ length: 1_000 }, (_, i) => 1_381_132_800_000 + i))
  })

  test('a number that is no time of any unit spoils its row alone', async () => {
    const path = await parquet(
      `SELECT unnest([${NOON_MS}, 86400, 12345678901234567890::UBIGINT, NULL, ${NOON_MS}000]) AS ts, 'A' AS symbol, 1 AS price, 1 AS size`,
    )
    expect(await readTimes(path)).toEqual([NOON_MS, Number.NaN, Number.NaN, Number.NaN, NOON_MS])
  })

  test('timestamps without end spoil their rows alone', async () => {
    const path = await parquet(
      `SELECT unnest(['infinity'::TIMESTAMP, make_timestamp(${NOON_MS}000), '-infinity'::TIMESTAMP]) AS ts, 'A' AS symbol, 1 AS price, 1 AS size`,
    )
    expect(await readTimes(path)).toEqual([Number.NaN, NOON_MS, Number.NaN])
  })
})

describe('dates and times in two columns', () => {
  const noon = { ts: NOON_MS + 250, symbol: 'A', price: 1, size: 1 }

  test.each([
    ['a mapping', 'day,at,symbol,price,size\n2025-06-01,12:00:00.25,A,1,1\n', { ts: 'day+at' }],
    ['usual names', 'Date,Time,symbol,price,size\n20250601,12:00:00.250,A,1,1\n', {}],
    ['names in brackets', '<DATE>\t<TIME>\t<TICKER>\t<PRICE>\t<VOL>\n2025.06.01\t12:00:00.25\tA\t1\t1\n', {}],
    ['digits', 'DATE,TIME_M,symbol,price,size\n2025/06/01,120000.250,A,1,1\n', {}],
    [
      'a time that has its day',
      'date,time,symbol,price,size\n2020-01-01,2025-06-01T12:00:00.25Z,A,1,1\n',
      {},
    ],
  ])('are joined: %s', async (_, text, mapping) => {
    expect(await readAll({ path: file('trades.csv', text), mapping })).toEqual([noon])
  })

  test('are joined where Parquet and JSON have them', async () => {
    const sql = `SELECT DATE '2025-06-01' AS date, TIME '12:00:00.25' AS time, 'A' AS symbol, 1 AS price, 1 AS size`
    expect(await readAll({ path: await parquet(sql) })).toEqual([noon])
    const record = { date: '2025-06-01', time: '12:00:00.250', symbol: 'A', price: 1, size: 1 }
    expect(await readAll({ path: file('trades.json', JSON.stringify(record)) })).toEqual([noon])
  })
})

describe('names that differ by case only', () => {
  test('are told apart in Parquet, where DuckDB gives one of them another name', async () => {
    const path = await parquet(`SELECT 'AAPL' AS "Ж", ${NOON_MS} AS t, 1.5 AS p, 7 AS s, 'V' AS x`)
    // DuckDB does not write such a file: the name of the symbol, in two bytes, becomes "SS".
    const bytes = readFileSync(path)
    const other = Buffer.from('Ж')
    for (let at = bytes.indexOf(other); at >= 0; at = bytes.indexOf(other)) bytes.write('SS', at)
    writeFileSync(path, bytes)
    const mapping = { symbol: 'SS' }
    expect(await readAll({ path, mapping })).toEqual([{ ts: NOON_MS, symbol: 'AAPL', price: 1.5, size: 7 }])
    const both = await parquet(`SELECT 'AAPL' AS "Жs", ${NOON_MS} AS t, 1.5 AS p, 7 AS "sSs", 'V' AS x`)
    const more = readFileSync(both)
    for (let at = more.indexOf(other); at >= 0; at = more.indexOf(other)) more.write('SS', at)
    writeFileSync(both, more)
    const exact = { ts: 't', symbol: 'SSs', price: 'p', size: 'sSs' }
    expect(await readAll({ path: both, mapping: exact })).toEqual([
      { ts: NOON_MS, symbol: 'AAPL', price: 1.5, size: 7 },
    ])
  })

  test('are told apart in CSV and JSON by a mapping too', async () => {
    const mapping: TradeMapping = { ts: 'T', symbol: 'S', price: 'p', size: 's' }
    const expected = [{ ts: NOON_MS, symbol: 'AAPL', price: 1.5, size: 7 }]
    expect(await readAll({ path: file('a.csv', `t,T,s,S,p\n1,${NOON_MS},7,AAPL,1.5\n`), mapping })).toEqual(
      expected,
    )
    const record = { t: 1, T: NOON_MS, s: 7, S: 'AAPL', p: 1.5 }
    expect(await readAll({ path: file('a.ndjson', JSON.stringify(record)), mapping })).toEqual(expected)
  })
})

test('text in UTF-16, with carriage returns alone, with a title or after sep=', async () => {
  const text = `ts,symbol,price,size\n${NOON_MS},A,1,2\n${NOON_MS},B,1,2\n`
  const expected = ['A', 'B'].map((symbol) => ({ ts: NOON_MS, symbol, price: 1, size: 2 }))
  const variants: (string | Buffer)[] = [
    Buffer.from(`\uFEFF${text}`, 'utf16le'),
    text.replaceAll('\n', '\r'),
    `Trades of today\n\n${text}`,
    `# made by hand\n# ${text}`,
    `sep=;\r\n${text.replaceAll(',', ';').replaceAll('\n', '\r\n')}`,
    text.replaceAll('\n', ',\n'),
    text.replace('\n', ',\n'),
    text.replace(/\n(.)/g, '\n\n \n$1'),
    text.replaceAll(',', ' ,  '),
    text.replace(/^.*\n/, (header) => header.toUpperCase()),
  ]
  for (const variant of variants) {
    const path = join(folder, 'trades.csv')
    writeFileSync(path, variant)
    expect(await readAll({ path }), JSON.stringify(variant.toString())).toEqual(expected)
  }
})

describe('the order of rows', () => {
  test('is that of their times, where the file is newest first or one symbol after the other', async () => {
    const at = (ms: number, symbol: string, price: number) => `${NOON_MS + ms},${symbol},${price},1`
    const text = (...rows: string[]) => file('trades.csv', `ts,symbol,price,size\n${rows.join('\n')}\n`)
    const prices = async (path: string) => (await readAll({ path })).map(({ price }) => price)
    // Of one time the row that comes first in a file newest first is the later one.
    expect(await prices(text(at(9, 'A', 4), at(5, 'A', 3), at(5, 'A', 2), at(0, 'A', 1)))).toEqual([
      1, 2, 3, 4,
    ])
    expect(await prices(text(at(0, 'A', 1), at(5, 'A', 2), at(9, 'A', 4), at(5, 'B', 3)))).toEqual([
      1, 2, 3, 4,
    ])
    // A row without a time stays behind the one before it.
    expect(await prices(text(at(9, 'A', 3), 'never,A,2.5,1', at(0, 'A', 1)))).toEqual([1, 3, 2.5])
  })

  test('keeps what only the older records of JSON have, where it is newest first', async () => {
    const late = { side: 'sell', wallet: 'w', tx: 't' }
    const path = deep((at, last) => ({ ts: NOON_MS - at, ...(at === last && late) }))
    const [oldest, ...others] = await readAll({ path, symbol: 'A', batchRows: 10_000 })
    expect(oldest).toMatchObject(late)
    expect(others.some(({ side, wallet, tx }) => side || wallet || tx)).toBe(false)
  })

  test('is refused in a sentence where a file too long to be sorted is newest first', async () => {
    const rows = TRADE_ORDER_ROWS_MAX + 1
    const path = await parquet(
      `SELECT ${NOON_MS} - i * 1000 AS ts, 'A' AS symbol, 1 AS price, 1 AS size FROM range(${rows}) r(i) ORDER BY i`,
    )
    await expect(readTimes(path)).rejects.toThrow(
      'are not in the order of their times (the newest come first)',
    )
  })

  test('is that of the file over row groups and batches, ties in time included', async () => {
    const rows = 20_000
    const path = await parquet(
      `SELECT make_timestamp(${NOON_MS}000 + (i // 100) * 1000000) AS ts, 'S' || (i % 7) AS symbol, i::DOUBLE AS price, 1 AS size
       FROM range(${rows}) r(i)`,
    )
    const file_ = await openTradeFile({ path, batchRows: 3_000 })
    expect(file_.rowsTotal).toBe(rows)
    const prices: number[] = []
    const sizes: number[] = []
    for await (const batch of file_.batches) {
      sizes.push(batch.rows)
      for (let row = 0; row < batch.rows; row++) {
        prices.push(batch.price[row])
        expect(batch.symbols[batch.symbolCode[row]]).toBe(`S${batch.price[row] % 7}`)
      }
    }
    expect(sizes).toEqual([3_000, 3_000, 3_000, 3_000, 3_000, 3_000, 2_000])
    expect(prices).toEqual(Array.from({ length: rows }, (_, i) => i))
  })

  test('a CSV larger than what DuckDB reads at once keeps it too', async () => {
    const lines = Array.from({ length: 60_000 }, (_, i) => `${NOON_MS + (i >> 3)},S${i % 11},${i},1`)
    const path = file('trades.csv', `time,ticker,price,qty\n${lines.join('\n')}\n`)
    let next = 0
    for await (const batch of readTrades({ path, batchRows: 10_000 })) {
      for (let row = 0; row < batch.rows; row++) {
        if (batch.price[row] !== next || batch.symbols[batch.symbolCode[row]] !== `S${next % 11}`)
          throw new Error(`row ${next} is out of place`)
        next++
      }
    }
    expect(next).toBe(60_000)
  })
})

describe('a name that only a record deep in a file of JSON has', () => {
  test.each([
    ['another column of a symbol, a price or a size', { pair: 'x', PRICE: 9, vol: 9 }, { wallet: 'w' }],
    ['two that could both be the wallet', { Wallet: 'a', WALLET: 'b' }, { fault: 'row_malformed' }],
  ])('%s, spoils no other row', async (_, more, expected) => {
    const path = deep((at, last) => ({
      ts: NOON_MS + at,
      ...(at === last - 1 ? more : at === last && { wallet: 'w' }),
    }))
    const rows = await readAll({ path, symbol: 'A' })
    expect(rows.filter(({ fault }) => fault !== undefined)).toHaveLength('fault' in expected ? 1 : 0)
    expect(rows.at(-1)).toEqual({
      ts: NOON_MS + rows.length - 1,
      symbol: 'A',
      price: 1,
      size: 1,
      wallet: 'w',
    })
  })
})

describe('the error is clear for', () => {
  const CSV = 'when,what,price,size\n2025-06-01 12:00:00,A,1,2\n'

  test('a column that is not there, with those that are', async () => {
    const path = file('trades.csv', CSV)
    const wrong = readAll({ path, mapping: { ts: 'moment', symbol: 'what' } })
    await expect(wrong).rejects.toThrow(
      'no column "moment" for the ts; the file\'s columns are: when, what, price, size',
    )
    await expect(wrong).rejects.toMatchObject({ code: 'invalid' })
    await expect(readAll({ path })).rejects.toThrow('no column looks like the ts')
    expect(await readAll({ path, mapping: { ts: 'WHEN', symbol: 'what' } })).toHaveLength(1)
  })

  test('a column of the wrong type, where the file declares types', async () => {
    const path = await parquet(`SELECT now()::TIMESTAMP AS ts, 'A' AS symbol, 1 AS size`)
    await expect(readAll({ path, mapping: { price: 'ts' } })).rejects.toThrow(
      '"ts" is a TIMESTAMP, which is not a number',
    )
  })

  test('two columns that may both be meant', async () => {
    const path = file('trades.csv', 'ts,symbol,Price,PRICE,size\n2025-06-01 12:00:00,A,1,2,3\n')
    await expect(readAll({ path })).rejects.toThrow('"Price" and "PRICE" could both be the price')
    await expect(readAll({ path, mapping: { price: 'pRICE' } })).rejects.toThrow('could both be the price')
    expect(await readAll({ path, mapping: { price: 'PRICE' } })).toMatchObject([{ price: 2 }])
  })

  test('a file that is missing, of no known kind, or not what its name says', async () => {
    await expect(readAll({ path: join(folder, 'none.csv') })).rejects.toThrow('there is no file')
    await expect(readAll({ path: file('trades.xyz', CSV) })).rejects.toThrow(
      'rename it, so that it ends with .parquet',
    )
    await expect(readAll({ path: file('trades.parquet', CSV) })).rejects.toThrow('cannot be read as Parquet')
  })

  test('a reader that stops early leaves nothing open', async () => {
    const path = file('trades.csv', CSV)
    const mapping: TradeMapping = { ts: 'when', symbol: 'what' }
    for await (const batch of readTrades({ path, mapping })) {
      expect(batch.rows).toBe(1)
      break
    }
    const open = () => readdirSync('/proc/self/fd').filter((fd) => readlink(fd) === long)
    const readlink = (fd: string): string | null => {
      try {
        return readlinkSync(`/proc/self/fd/${fd}`)
      } catch {
        return null
      }
    }
    const rows = Array.from({ length: 300_000 }, (_, at) => `${NOON_MS + at},A,1,2`).join('\n')
    const records = rows.replaceAll(/(\d+),A,1,2/g, '{"ts":$1,"symbol":"A","price":1,"size":2}')
    let long = ''
    for (const [name, text] of [
      ['long.csv', `ts,symbol,price,size\n${rows}`],
      ['long.ndjson', records],
    ] as const) {
      long = file(name, text)
      for await (const batch of readTrades({ path: long })) {
        expect(batch.rows).toBeGreaterThan(0)
        break
      }
      await expect.poll(open).toEqual([])
    }
  })
})

test.skipIf(!existsSync(TICKS))(
  'the real ticks come out whole, in order, as DuckDB itself counts them',
  { tags: 'drill', timeout: 30_000 },
  async () => {
    const [expected] = await readSql(
      `SELECT count(*)::DOUBLE AS rows, sum(size)::DOUBLE AS size, sum(epoch_ms(ts) % 100003)::DOUBLE AS times,
       sum(price * size) FILTER (symbol = 'IBM') AS ibm FROM '${TICKS}'`,
    )
    const ticks = await openTradeFile({ path: TICKS })
    const actual = { rows: 0, size: 0, times: 0, ibm: 0 }
    let ordered = true
    let last = 0
    for await (const batch of ticks.batches) {
      actual.rows += batch.rows
      for (let row = 0; row < batch.rows; row++) {
        actual.size += batch.size[row]
        actual.times += batch.tsMs[row] % 100_003
        if (batch.symbols[batch.symbolCode[row]] === 'IBM') actual.ibm += batch.price[row] * batch.size[row]
        ordered &&= batch.tsMs[row] >= last
        last = batch.tsMs[row]
      }
    }
    expect(ticks.rowsTotal).toBe(actual.rows)
    expect(ordered).toBe(true)
    expect({ ...actual, ibm: 0 }).toEqual({ ...expected, ibm: 0 })
    expect(actual.ibm / (expected.ibm as number)).toBeCloseTo(1, 12)
  },
)
