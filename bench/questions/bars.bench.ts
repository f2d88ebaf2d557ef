// Ticks of 10 000 tokens made into bars of nine timeframes, per second: dense (20 000 ticks a second of market time) and sparse
// (the same ticks spread over a day, so that almost each opens a bar). Compared with the same cascade in C and with libraries.
import { DuckDBInstance } from '@duckdb/node-api'
import { BarCascade } from '../../src/market/bars/bar-cascade.ts'
import { LATE_GRACE_MS } from '../../src/market/time/limits.ts'
import { TIMEFRAME_MS, TIMEFRAMES } from '../../src/schema/bar.ts'
import { random } from '../datasets/random.ts'
import { compiled, installed, jsonOf, type Measured, type Question, type RunOptions } from '../harness.ts'

const START_MS = 1_772_000_000_000
const DAY_MS = 86_400_000
const DENSE_TICKS_PER_SECOND = 20_000
const LIMIT = new URL('../limits/bars.c', import.meta.url)
const CCXT = ['ccxt', '4.5.84'] as const
const TARDIS = ['tardis-dev', '13.35.3'] as const

interface Ticks {
  count: number
  tokens: number
  token: Uint32Array
  price: Float64Array
  volume: Float64Array
  ts: Float64Array
}

const sizes = ({ small }: RunOptions) =>
  small ? { tokens: 500, ticks: 20_000 } : { tokens: 10_000, ticks: 2_000_000 }
/** Fewer ticks for the libraries from npm, which are an order of magnitude slower. */
const peerSizes = ({ small }: RunOptions) =>
  small ? sizes({ small, full: false }) : { tokens: 10_000, ticks: 400_000 }
const spanMs = (ticks: number, isDense: boolean): number =>
  isDense ? Math.ceil((ticks / DENSE_TICKS_PER_SECOND) * 1_000) : DAY_MS

function makeTicks({ tokens, ticks }: { tokens: number; ticks: number }, isDense: boolean): Ticks {
  const next = random(1)
  const made = {
    count: ticks,
    tokens,
    token: new Uint32Array(ticks),
    price: new Float64Array(ticks),
    volume: new Float64Array(ticks),
    ts: new Float64Array(ticks),
  }
  const span = spanMs(ticks, isDense)
  for (let index = 0; index < ticks; index++) {
    made.token[index] = tokens * next() ** 2
    made.price[index] = 1 + next()
    made.volume[index] = 100 * next()
    made.ts[index] = START_MS + Math.floor((index * span) / ticks)
  }
  return made
}

const measured = (ticks: number, startedMs: number, checksum: number | string): Measured => ({
  metrics: { ticksPerSecond: (ticks * 1_000) / (performance.now() - startedMs) },
  checksum: `${checksum}`,
})

function ours(options: RunOptions, isDense: boolean): Measured {
  const { count, tokens, token, price, volume, ts } = makeTicks(sizes(options), isDense)
  const bars = new BarCascade({ tokensMax: tokens, barsPerTokenMax: 1_024 })
  const watermark = new Float64Array(tokens)
  const started = performance.now()
  for (let index = 0; index < count; index++) {
    const slot = token[index]
    const at = ts[index]
    if (at - LATE_GRACE_MS > watermark[slot]) watermark[slot] = at - LATE_GRACE_MS
    bars.add(slot, at, price[index], volume[index], (index & 1) === 0, watermark[slot])
  }
  return measured(count, started, bars.held)
}

/** ccxt's batch builder, called as its users do, with trades already grouped by symbol. */
function ccxt(options: RunOptions, isDense: boolean): Measured {
  const { Exchange } = installed<{
    Exchange: new () => { buildOHLCVC(trades: object[], timeframe: string): number[][] }
  }>(...CCXT)
  const exchange = new Exchange()
  const { count, token, price, volume, ts } = makeTicks(peerSizes(options), isDense)
  const bySymbol = new Map<number, object[]>()
  for (let index = 0; index < count; index++) {
    const trades = bySymbol.get(token[index]) ?? []
    trades.push({ timestamp: ts[index], price: price[index], amount: volume[index] })
    bySymbol.set(token[index], trades)
  }
  let bars = 0
  const started = performance.now()
  for (const trades of bySymbol.values())
    for (const timeframe of TIMEFRAMES) bars += exchange.buildOHLCVC(trades, timeframe).length
  return measured(count, started, bars)
}

interface TradeBars {
  compute(message: object): Iterable<unknown>
}

/** tardis-dev's trade bars, one computable for each token and timeframe, called for each trade. */
function tardis(options: RunOptions, isDense: boolean): Measured {
  const { computeTradeBars } = installed<{ computeTradeBars(options: object): () => TradeBars }>(...TARDIS)
  const { count, tokens, token, price, volume, ts } = makeTicks(peerSizes(options), isDense)
  const makers = TIMEFRAMES.map((timeframe) =>
    computeTradeBars({ kind: 'time', interval: TIMEFRAME_MS[timeframe] }),
  )
  const states = Array.from({ length: tokens }, () => undefined as TradeBars[] | undefined)
  const messages = Array.from({ length: count }, (_, index) => ({
    type: 'trade',
    symbol: `T${token[index]}`,
    exchange: 'bench',
    price: price[index],
    amount: volume[index],
    side: 'buy',
    timestamp: new Date(ts[index]),
    localTimestamp: new Date(ts[index]),
  }))
  let bars = 0
  const started = performance.now()
  for (let index = 0; index < count; index++) {
    states[token[index]] ??= makers.map((make) => make())
    for (const state of states[token[index]]!) for (const _ of state.compute(messages[index])) bars++
  }
  return measured(count, started, bars)
}

/** DuckDB on one thread: one aggregation for each timeframe over a table of ticks in memory. */
async function duckdb(options: RunOptions, isDense: boolean): Promise<Measured> {
  const { count, token, price, volume, ts } = makeTicks(sizes(options), isDense)
  const instance = await DuckDBInstance.create(':memory:', { threads: '1' })
  const connection = await instance.connect()
  await connection.run('CREATE TABLE ticks (token INTEGER, ts BIGINT, price DOUBLE, volume DOUBLE)')
  const appender = await connection.createAppender('ticks')
  for (let index = 0; index < count; index++) {
    appender.appendInteger(token[index])
    appender.appendBigInt(BigInt(ts[index]))
    appender.appendDouble(price[index])
    appender.appendDouble(volume[index])
    appender.endRow()
  }
  appender.closeSync()
  const started = performance.now()
  let bars = 0
  for (const timeframe of TIMEFRAMES) {
    const result = await connection.run(
      `CREATE OR REPLACE TABLE bars AS SELECT token, ts // ${TIMEFRAME_MS[timeframe]} AS bucket, arg_min(price, ts) AS o,
         max(price) AS h, min(price) AS l, arg_max(price, ts) AS c, sum(volume) AS v, count(*) AS n
       FROM ticks GROUP BY ALL`,
    )
    bars += Number((await result.getRows())[0][0])
  }
  return measured(count, started, bars)
}

const limit = (options: RunOptions, isDense: boolean): Promise<Measured> => {
  const { tokens, ticks } = sizes(options)
  return jsonOf(compiled(LIMIT), [`${tokens}`, `${ticks}`, `${spanMs(ticks, isDense)}`])
}

const both =
  (candidate: (options: RunOptions, isDense: boolean) => Promise<Measured> | Measured) =>
  async (options: RunOptions): Promise<Measured> => {
    const dense = await candidate(options, true)
    const sparse = await candidate(options, false)
    return {
      metrics: { dense: dense.metrics.ticksPerSecond, sparse: sparse.metrics.ticksPerSecond },
      checksum: `${dense.checksum} ${sparse.checksum}`,
    }
  }

export const question: Question = {
  name: 'bars',
  title: 'ticks → bars, nine timeframes, one thread',
  rounds: 5,
  onDemand: ['ccxt buildOHLCVC', 'tardis-dev trade bars'],
  candidates: {
    ours: both(ours),
    'cascade in C': both(limit),
    'ccxt buildOHLCVC': both(ccxt),
    'tardis-dev trade bars': both(tardis),
    'DuckDB, one thread': both(duckdb),
  },
  comparisons: [
    ...(['dense', 'sparse'] as const).map((metric) => ({
      title: `ticks → bars, ${metric}`,
      metric,
      against: 'cascade in C',
      unit: 'ticks/s',
      gate: metric === 'dense' ? 0.4 : 0.45,
      stretch: metric === 'dense' ? 0.55 : 0.65,
      better: 'higher' as const,
    })),
    ...(
      [
        ['ccxt buildOHLCVC', 6, 9],
        ['tardis-dev trade bars', 12, 20],
        ['DuckDB, one thread', 5, 8],
      ] as const
    ).map(([against, gate, stretch]) => ({
      title: 'ticks → bars, dense',
      metric: 'dense',
      against,
      unit: 'ticks/s',
      gate,
      stretch,
      better: 'higher' as const,
    })),
  ],
  prepare({ small }) {
    compiled(LIMIT)
    if (small) return
    installed(...CCXT)
    installed(...TARDIS)
  },
}
