// Properties of trade files: whatever the dialect, the trades that were written are read; whatever the damage, what is read is
// what a plain reader finds, or a refusal that is told.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openTradeFile, type TradeFileOptions } from '../../src/ingest/replay/trade-file.ts'
import { StoreError } from '../../src/store/errors.ts'
import { readSql, removeFolder, temporaryFolder } from '../store/support.ts'

interface Trade {
  ts: number
  symbol: string
  price: number
  size: number
  side: 'buy' | 'sell' | null
  wallet: string | null
  tx: string | null
}

let folder: string
beforeAll(() => {
  folder = temporaryFolder()
})
afterAll(() => removeFolder(folder))

function file(name: string, content: string | Uint8Array): string {
  const path = join(folder, name)
  writeFileSync(path, content)
  return path
}

async function read(options: TradeFileOptions): Promise<{ trades: Trade[]; faults: string[] }> {
  const trades: Trade[] = []
  const faults: string[] = []
  for await (const batch of (await openTradeFile(options)).batches) {
    for (let row = 0; row < batch.rows; row++) {
      const fault = batch.faults.get(row)
      if (fault !== undefined) faults.push(fault.reason)
      else
        trades.push({
          ts: batch.tsMs[row],
          symbol: batch.symbols[batch.symbolCode[row]],
          price: batch.price[row],
          size: batch.size[row],
          side: batch.side?.[row] ?? null,
          wallet: batch.wallet?.[row] ?? null,
          tx: batch.tx?.[row] ?? null,
        })
    }
  }
  return { trades, faults }
}

/** How times are written, each exact to the millisecond or to the second. */
const TIMES: Record<string, { stepMs: number; write(ms: number): string }> = {
  s: { stepMs: 1_000, write: (ms) => `${ms / 1_000}` },
  'fraction of s': { stepMs: 1, write: (ms) => (ms / 1_000).toFixed(3) },
  ms: { stepMs: 1, write: (ms) => `${ms}` },
  us: { stepMs: 1, write: (ms) => `${ms}999` },
  ns: { stepMs: 1, write: (ms) => `${ms}999999` },
  iso: { stepMs: 1, write: (ms) => new Date(ms).toISOString() },
  'iso without a zone': {
    stepMs: 1,
    write: (ms) => new Date(ms).toISOString().replace('T', ' ').replace('Z', ''),
  },
  'iso in ns': { stepMs: 1, write: (ms) => new Date(ms).toISOString().replace('Z', '456789+00:00') },
  'another zone': {
    stepMs: 1,
    write: (ms) => new Date(ms + 5.5 * 3_600_000).toISOString().replace('Z', '+0530'),
  },
  slashes: {
    stepMs: 1_000,
    write: (ms) => new Date(ms).toISOString().slice(0, 19).replaceAll('-', '/').replace('T', ' '),
  },
  compact: { stepMs: 1_000, write: (ms) => new Date(ms).toISOString().slice(0, 19).replace(/[-T:]/g, '') },
}
const SIDES: Record<string, { name: string; buy: string; sell: string; none: string }> = {
  words: { name: 'side', buy: 'BUY', sell: 'Sell', none: '' },
  letters: { name: 'side', buy: 'b', sell: 's', none: 'N' },
  books: { name: 'side', buy: 'B', sell: 'A', none: 'N' },
  brokers: { name: 'side', buy: 'BOT', sell: 'S', none: 'unknown' },
  numbers: { name: 'side', buy: '1', sell: '0', none: '' },
  signs: { name: 'side', buy: '1', sell: '-1', none: '' },
  isBuy: { name: 'is_buy', buy: 'true', sell: 'False', none: '' },
  maker: { name: 'isBuyerMaker', buy: 'FALSE', sell: '1', none: '' },
}
const FIRST_MS = Date.UTC(2025, 0, 1)

const trade = fc.record({
  gapMs: fc.integer({ min: 0, max: 400_000_000 }),
  symbol: fc.constantFrom('SPY', 'BRK.B', '000001', 'TRUE', '1e5', 'null', 'ÄÖ€', 'NaN', '2025-01-01'),
  price: fc.constantFrom('100', '0.7', '168.5', '1e-9', '.5', '12345678901', '99.', '+3'),
  size: fc.constantFrom('0', '1', '0.00000001', '250', '1000000'),
  side: fc.constantFrom('buy' as const, 'sell' as const, null),
  wallet: fc.constantFrom(null, 'w1', '12345678901234567890', '0007', 'A, B', 'a;b|c', 'O’Neil'),
  tx: fc.constantFrom(null, '98765432109876543210', 't"1', 'TRUE', '1_000'),
})
const dialect = fc.record({
  delimiter: fc.constantFrom(',', ';', '\t', '|'),
  quotes: fc.constantFrom('needed' as const, 'all' as const),
  hasHeader: fc.boolean(),
  time: fc.constantFrom(...Object.keys(TIMES)),
  isTwoColumns: fc.boolean(),
  side: fc.constantFrom(...Object.keys(SIDES)),
  order: fc.shuffledSubarray(['ts', 'symbol', 'price', 'size', 'side', 'wallet', 'tx', 'note'], {
    minLength: 8,
  }),
  blank: fc.constantFrom('', ' '),
  lineEnd: fc.constantFrom('\n', '\r\n'),
  mark: fc.constantFrom('', '\uFEFF'),
  nullsFirst: fc.boolean(),
  isNewestFirst: fc.boolean(),
})
type Dialect = typeof dialect extends fc.Arbitrary<infer T> ? T : never
type Written = typeof trade extends fc.Arbitrary<infer T> ? T : never

/** The trades that rows of this dialect stand for, the oldest first. */
function tradesOf(rows: readonly Written[], { time, nullsFirst }: Dialect): Trade[] {
  const { stepMs } = TIMES[time]
  let ts = FIRST_MS
  return rows.map((row, at) => {
    ts += Math.floor(row.gapMs / stepMs) * stepMs
    const isNull = nullsFirst && at < rows.length / 2
    const texts = isNull
      ? { side: null, wallet: null, tx: null }
      : { side: row.side, wallet: row.wallet, tx: row.tx }
    return { ts, symbol: row.symbol, price: Number(row.price), size: Number(row.size), ...texts }
  })
}

function writeCsv(
  rows: readonly Written[],
  trades: readonly Trade[],
  style: Dialect,
): { text: string; names: string[] } {
  const side = SIDES[style.side]
  const quoted = (field: string): string =>
    style.quotes === 'all' || field.includes(style.delimiter) || field.includes('"')
      ? `"${field.replaceAll('"', '""')}"`
      : field
  const isSplit = style.isTwoColumns && TIMES[style.time].write(FIRST_MS).includes('T')
  const names = style.order.flatMap((name) =>
    name === 'ts' && isSplit ? ['date', 'time'] : name === 'side' ? [side.name] : [name],
  )
  const lines = trades.map((one, at) => {
    const values: Record<string, string[]> = {
      ts: isSplit ? TIMES[style.time].write(one.ts).split('T') : [TIMES[style.time].write(one.ts)],
      symbol: [one.symbol],
      price: [rows[at].price],
      size: [rows[at].size],
      side: [one.side === null ? side.none : side[one.side]],
      wallet: [one.wallet ?? ''],
      tx: [one.tx ?? ''],
      note: [at % 7 === 6 && style.quotes === 'all' ? 'two\nlines' : 'x'],
    }
    return style.order.flatMap((name) => values[name].map(quoted)).join(style.delimiter + style.blank)
  })
  if (style.isNewestFirst) lines.reverse()
  const header = style.hasHeader ? [names.map(quoted).join(style.delimiter + style.blank)] : []
  return { text: `${style.mark}${[...header, ...lines].join(style.lineEnd)}${style.lineEnd}`, names }
}

/** A mapping by place, for a file without a header. */
function mappingOf(names: readonly string[]): Record<string, string> {
  const column = (name: string): string => `column${names.indexOf(name)}`
  const ts = names.includes('date') ? `${column('date')}+${column('time')}` : column('ts')
  return Object.fromEntries([
    ['ts', ts],
    ...['symbol', 'price', 'size', 'wallet', 'tx'].map((name) => [name, column(name)]),
  ])
}

test('CSV of every dialect: the trades that were written are read', { timeout: 60_000 }, async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(trade, { minLength: 1, maxLength: 12 }), dialect, async (rows, given) => {
      const style = { ...given, hasHeader: given.hasHeader || SIDES[given.side].name !== 'side' }
      const trades = tradesOf(rows, style)
      // A price in quotes shows nothing of the header; a file of two rows may be newest first or not.
      const { text, names } = writeCsv(rows, trades, style)
      const mapping = style.hasHeader ? {} : { ...mappingOf(names), side: `column${names.indexOf('side')}` }
      const { trades: found, faults } = await read({ path: file('dialect.csv', text), mapping })
      expect(faults).toEqual([])
      const isOneTime = new Set(trades.map(({ ts }) => ts)).size < trades.length
      if (isOneTime && style.isNewestFirst)
        // Rows of one time have an order only where others show that of the file.
        expect(found.map((one) => JSON.stringify(one)).toSorted()).toEqual(
          trades.map((one) => JSON.stringify(one)).toSorted(),
        )
      else expect(found).toEqual(trades)
    }),
    { numRuns: 120 },
  )
})

test('JSON of every dialect: texts or numbers, a line or a list', { timeout: 60_000 }, async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(trade, { minLength: 1, maxLength: 12 }),
      dialect,
      fc.constantFrom('lines', 'list', 'pretty'),
      fc.boolean(),
      async (rows, style, form, asNumbers) => {
        const trades = tradesOf(rows, style)
        const side = SIDES[style.side]
        const bare = (text: string): string =>
          asNumbers && /^(0|[1-9]\d*)(\.\d+)?$/.test(text) ? text : JSON.stringify(text)
        const lines = trades.map((one, at) => {
          const members: [string, string][] = [
            ['ts', bare(TIMES[style.time].write(one.ts))],
            ['symbol', JSON.stringify(one.symbol)],
            ['price', bare(rows[at].price)],
            ['size', bare(rows[at].size)],
          ]
          if (one.side !== null) members.push([side.name, bare(side[one.side])])
          if (one.wallet !== null) members.push(['wallet', bare(one.wallet)])
          if (one.tx !== null) members.push(['tx', bare(one.tx)])
          return `{${members.map(([name, value]) => `"${name}": ${value}`).join(', ')}}`
        })
        const text =
          form === 'lines'
            ? lines.join('\n')
            : form === 'list'
              ? `[${lines}]`
              : `[\n  ${lines.join(',\n  ')}\n]\n`
        const { trades: found, faults } = await read({ path: file('dialect.json', text) })
        expect(faults).toEqual([])
        expect(found).toEqual(trades)
      },
    ),
    { numRuns: 80 },
  )
})

describe('beyond the rows from which types were guessed', () => {
  const ROWS = 22_500
  const EARLY = 21_000
  /** 100 and nothing at first, then what a guess would have spoilt. */
  const rowAt = (at: number): Trade => ({
    ts: at < EARLY ? FIRST_MS + at : FIRST_MS + at,
    symbol: at % 2 === 0 ? '000001' : 'TRUE',
    price: at < EARLY ? 100 : 0.7,
    size: 1,
    side: at < EARLY ? null : at % 2 === 0 ? 'buy' : 'sell',
    wallet: at < EARLY ? null : 'w1',
    tx: at < EARLY ? `${at}` : `9876543210987654${3210 + (at % 1_000)}`,
  })
  const expected = Array.from({ length: ROWS }, (_, at) => rowAt(at))
  const unit = (at: number): string => (at < EARLY ? '' : '000')

  test('CSV', async () => {
    const lines = expected.map(({ ts, symbol, price, size, side, wallet, tx }, at) =>
      [`${ts}${unit(at)}`, symbol, price, size, side ?? '', wallet ?? '', tx].join(','),
    )
    const text = `ts,symbol,price,size,side,wallet,tx\n${lines.join('\n')}\n`
    expect(await read({ path: file('late.csv', text) })).toEqual({ trades: expected, faults: [] })
  })

  test.each([
    ['null', (row: object) => row],
    [
      'left out',
      (row: object) => Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null)),
    ],
  ])('JSON, %s at first', async (_, shape) => {
    const lines = expected.map((row, at) =>
      JSON.stringify(shape({ ...row, ts: Number(`${row.ts}${unit(at)}`) })),
    )
    expect(await read({ path: file('late.ndjson', lines.join('\n')) })).toEqual({
      trades: expected,
      faults: [],
    })
  })

  test('JSON, left out in more records than are looked at before', async () => {
    const lines = Array.from(
      { length: 33_000 },
      (_, at) => `{"ts":${FIRST_MS + at},"symbol":"A","price":1,"size":1}`,
    )
    const last = `{"ts":${FIRST_MS + 33_000},"symbol":"A","price":1,"size":1,"side":"sell","wallet":"w1","tx":"t"}`
    const { trades } = await read({ path: file('later.ndjson', [...lines, last].join('\n')) })
    expect(trades.at(-2)).toMatchObject({ side: null, wallet: null })
    expect(trades.at(-1)).toMatchObject({ side: 'sell', wallet: 'w1', tx: 't' })
  })

  test('Parquet, as text and as the types that it declares', async () => {
    const early = `i < ${EARLY}`
    const sql = (price: string): string =>
      `SELECT CASE WHEN ${early} THEN ${FIRST_MS} + i ELSE (${FIRST_MS} + i) * 1000 END AS ts,
       CASE WHEN i % 2 = 0 THEN '000001' ELSE 'TRUE' END AS symbol, ${price} AS price, 1::DECIMAL(9,2) AS size,
       CASE WHEN ${early} THEN NULL WHEN i % 2 = 0 THEN 'buy' ELSE 'sell' END AS side,
       CASE WHEN ${early} THEN NULL ELSE 'w1' END AS wallet,
       CASE WHEN ${early} THEN i::VARCHAR ELSE '9876543210987654' || (3210 + i % 1000) END AS tx
       FROM range(${ROWS}) r(i) ORDER BY i`
    for (const price of [
      `CASE WHEN ${early} THEN '100' ELSE '0.7' END`,
      `CASE WHEN ${early} THEN 100 ELSE 0.7 END`,
    ]) {
      const path = join(folder, 'late.parquet')
      await readSql(`COPY (${sql(price)}) TO '${path}' (FORMAT parquet)`)
      expect(await read({ path })).toEqual({ trades: expected, faults: [] })
    }
  })
})

describe('a small file that is damaged at every byte', () => {
  /** Reads by the letter: no quotes over lines, no envelopes, the names as they are written. */
  const NAMES = ['ts', 'symbol', 'price', 'size', 'side', 'wallet', 'tx']
  const NUMBER = /^[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?$/i

  function plainTrade(get: (name: string) => string | null): Trade | null {
    const ts = get('ts') ?? ''
    const perMs = [1e-3, 1, 1e3, 1e6].find((units) => {
      const year = new Date(Math.min(Number(ts) / units, 8e15)).getUTCFullYear()
      return year >= 2000 && year < 2100
    })
    const tsMs = Number(ts) / (perMs ?? 1)
    const [price, size] = [get('price') ?? '', get('size') ?? '']
    if (!NUMBER.test(price) || !NUMBER.test(size) || !NUMBER.test(ts)) return null
    const word = (get('side') ?? '').toLowerCase()
    const side = ['buy', 'b'].includes(word) ? 'buy' : ['sell', 's', 'a', '0'].includes(word) ? 'sell' : null
    return {
      ...{
        ts: Math.floor(tsMs),
        symbol: get('symbol') ?? '',
        price: Number(price),
        size: Number(size),
        side,
      },
      ...{ wallet: get('wallet') || null, tx: get('tx') || null },
    }
  }

  function plainCsv(text: string): Trade[] {
    const rows = text
      .split('\n')
      .filter((line) => line.trim() !== '')
      .flatMap((line) => {
        const field = /\s*(?:"((?:[^"]|"")*)"\s*|((?!\s*")[^,]*))(?:,|$)/y
        const fields: string[] = []
        while (field.lastIndex < line.length || line[field.lastIndex - 1] === ',') {
          const match = field.exec(line)
          if (match === null) return []
          fields.push((match[1]?.replaceAll('""', '"') ?? match[2]).trim())
          if (!match[0].endsWith(',')) break
        }
        return [fields]
      })
    const [names = [], ...records] = rows
    const place = (name: string): number =>
      names.findIndex(
        (column) =>
          column
            .split('/')[0]
            .toLowerCase()
            .replace(/[^a-z0-9]/g, '') === name,
      )
    const places = new Map(NAMES.map((name) => [name, place(name)]))
    return records.flatMap((fields) => plainTrade((name) => fields[places.get(name) ?? -1] ?? null) ?? [])
  }

  function plainJson(text: string): Trade[] {
    return text.split('\n').flatMap((line) => {
      try {
        const record: Record<string, unknown> = JSON.parse(line)
        const get = (name: string) => {
          const value = record[name]
          return typeof value === 'string' || typeof value === 'number' ? `${value}`.trim() : null
        }
        return plainTrade(get) ?? []
      } catch {
        return []
      }
    })
  }

  const ROWS: (string | number)[][] = [
    [FIRST_MS + 1, 'SPY', '168.5', 10, 'buy', 'w1', 't1'],
    [FIRST_MS + 2, 'IBM', '0.75', 2, 'sell', 'w2', ''],
    [FIRST_MS + 3, 'SPY', '170', 1, '', 'w1', 't3'],
  ]
  const CSV = `${NAMES.join(',')}\n${ROWS.map((row) => row.join(',')).join('\n')}\n`
  const QUOTED = `${NAMES.join(',')}\n${ROWS.map((row) => row.map((field) => `"${field}"`).join(',')).join('\n')}\n`
  const JSON_LINES = ROWS.map((row) =>
    JSON.stringify(Object.fromEntries(NAMES.map((name, at) => [name, row[at]]))),
  ).join('\n')
  const BYTES = [...'x0,";#\n\r |{}[]:-.\t\'', '\u0000'].map((char) => char.charCodeAt(0))

  /** The file with one byte replaced, removed or added, and the file cut there. */
  function damages(bytes: Uint8Array, at: number): Uint8Array[] {
    const [before, after] = [bytes.subarray(0, at), bytes.subarray(at + 1)]
    const put = (...middle: number[]): Uint8Array => Uint8Array.from([...before, ...middle, ...after])
    return [
      ...[...BYTES, 0xff, bytes[at] ^ 1, bytes[at] ^ 0x20].flatMap((byte) => [
        put(byte),
        put(bytes[at], byte),
      ]),
      ...[put(), put(bytes[at], bytes[at]), before],
    ]
  }

  const keys = (trades: readonly Trade[]): string[] => trades.map((one) => JSON.stringify(one)).toSorted()

  async function check(
    name: string,
    content: Uint8Array,
    plain: (text: string) => Trade[],
  ): Promise<'read' | 'told'> {
    const path = file(name, content)
    try {
      const { trades, faults } = await read({ path, batchRows: 16 })
      const known = keys(plain(new TextDecoder().decode(content)))
      const found = keys(trades)
      const shown = JSON.stringify(Buffer.from(content).toString('latin1'))
      if (faults.length === 0) expect(found, shown).toEqual(known)
      else for (const one of found) expect(known, shown).toContain(one)
      return faults.length === 0 ? 'read' : 'told'
    } catch (error) {
      if (!(error instanceof StoreError)) throw error
      expect(error.code).toBe('invalid')
      return 'told'
    }
  }

  const FILES = [
    ['CSV', 'damaged.csv', CSV, plainCsv],
    ['CSV with quotes', 'damaged.csv', QUOTED, plainCsv],
    ['JSON', 'damaged.ndjson', JSON_LINES, plainJson],
  ] as const

  test.each(FILES)('%s, by some of all damages', async (_, name, text, plain) => {
    const bytes = new TextEncoder().encode(text)
    const outcomes = { read: 0, told: 0 }
    for (let at = 0; at < bytes.length; at++) {
      const all = damages(bytes, at)
      outcomes[await check(name, all[(at * 7) % all.length], plain)]++
    }
    expect(Math.min(outcomes.read, outcomes.told)).toBeGreaterThan(10)
  })

  test.each(FILES)(
    '%s, by many of all damages',
    { tags: 'drill', timeout: 120_000 },
    async (_, name, text, plain) => {
      const bytes = new TextEncoder().encode(text)
      for (let at = 0; at < bytes.length; at++)
        for (const [kind, content] of damages(bytes, at).entries())
          if ((kind + at) % 4 === 0) await check(name, content, plain)
    },
  )
})
