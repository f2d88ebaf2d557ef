// @module-tag drill
// Replays the trades of five real days. Compares every bar of every timeframe with DuckDB's aggregation of the file, and the
// answers of two replays with each other and with a pinned hash.
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Market } from '../../src/market/market.ts'
import { TIMEFRAME_MS, TIMEFRAMES } from '../../src/schema/bar.ts'
import { mintOfSymbol } from '../../src/schema/mint.ts'

const FILE = new URL('../../../shared/data/ticks/us-equities-trades-2013-10.parquet', import.meta.url)
  .pathname
const SYMBOLS = ['AIG', 'BAC', 'IBM', 'SPY']
/** DuckDB sums decimals exactly and rounds once; the engine sums doubles. */
const VOLUME_TOLERANCE = 1e-12

describe.skipIf(!existsSync(FILE))('a replay of five days of real trades', () => {
  let connection: DuckDBConnection
  let market: Market

  beforeAll(async () => {
    const instance = await DuckDBInstance.create(':memory:', { threads: '2' })
    connection = await instance.connect()
    await connection.run(
      `CREATE TABLE ticks AS SELECT row_number() OVER () AS row, epoch_ms(ts) AS ms, symbol, price, size::DOUBLE AS size FROM read_parquet('${FILE}')`,
    )
    market = await replay()
  }, 60_000)

  afterAll(() => connection.closeSync())

  async function replay(): Promise<Market> {
    const mints = new Map(SYMBOLS.map((symbol) => [symbol, mintOfSymbol(symbol)]))
    const replayed = new Market({ tokensMax: 16, barsPerTokenMax: 400_000 })
    const result = await connection.stream('SELECT ms, symbol, price, size FROM ticks ORDER BY row')
    for (
      let chunk = await result.fetchChunk();
      chunk !== null && chunk.rowCount > 0;
      chunk = await result.fetchChunk()
    ) {
      const [ms, symbol, price, size] = [0, 1, 2, 3].map((column) => chunk.getColumnValues(column))
      for (let row = 0; row < chunk.rowCount; row++) {
        const ts = Number(ms[row])
        const rejection = replayed.apply(
          {
            type: 'trade',
            mint: mints.get(symbol[row] as string)!,
            ts,
            side: 'buy',
            tokenAmount: size[row] as number,
            priceUsd: price[row] as number,
          },
          ts,
        )
        if (rejection !== null) throw new Error(`${rejection} at row ${row}`)
      }
    }
    return replayed
  }

  it.each(TIMEFRAMES)('gives the same %s bars as DuckDB, field by field', async (tf) => {
    const length = TIMEFRAME_MS[tf]
    for (const symbol of SYMBOLS) {
      const expected = await connection.runAndReadAll(
        `SELECT (ms // ${length}) * ${length} AS t, arg_min(price, row) AS o, max(price) AS h, min(price) AS l, arg_max(price, row) AS c,
           sum(price::DECIMAL(18, 4) * size::INTEGER)::DOUBLE AS v, count(*)::INTEGER AS n
         FROM ticks WHERE symbol = '${symbol}' GROUP BY 1 ORDER BY 1`,
      )
      const [t, o, h, l, c, v, n] = expected.getColumns() as number[][]
      const { bars } = market.bars({
        mint: mintOfSymbol(symbol),
        tf,
        limit: 1e6,
        fromMs: null,
        toMs: null,
        fill: 'none',
      })!
      expect(bars.length).toBe(t.length)
      let wrong = 0
      for (let index = 0; index < bars.length; index++) {
        const bar = bars[index]
        const same =
          bar.t === Number(t[index]) &&
          bar.o === o[index] &&
          bar.h === h[index] &&
          bar.l === l[index] &&
          bar.c === c[index] &&
          Math.abs(bar.v - v[index]) <= VOLUME_TOLERANCE * Math.abs(v[index]) &&
          bar.n === n[index]
        if (!same) wrong++
      }
      expect(wrong).toBe(0)
    }
  })

  it('gives byte-identical pages, DataPoints and bars when replayed again', async () => {
    const again = await replay()
    expect(fingerprint(again)).toBe(fingerprint(market))
    expect(fingerprint(market)).toBe('1603d5d34e88d5fd00ebe89c29b298380e1ade5450dbd76abfceb5622e101d22')
  }, 60_000)

  function fingerprint(of: Market): string {
    const hash = createHash('sha256')
    hash.update(of.page({ tab: 'all', sort: 'hot', order: 'desc', limit: 100, offset: 0 }).ndjson)
    for (const symbol of SYMBOLS) {
      hash.update(of.datapointJson(mintOfSymbol(symbol))!.json)
      for (const tf of TIMEFRAMES) {
        const query = { tf, limit: 1_000, fromMs: null, toMs: null, fill: 'prev' } as const
        const { bars, gaps } = of.bars({ mint: mintOfSymbol(symbol), ...query })!
        hash.update(JSON.stringify({ bars, gaps }))
      }
    }
    return hash.digest('hex')
  }
})
