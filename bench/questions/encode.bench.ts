// CPU time of a response with 1000 bars as JSON, Arrow and msgpack through the route's handler, with a trade before each; and the
// same for series that nobody requested before. Compared with JSON.stringify of objects and apache-arrow's writer.
import {
  Bool,
  Float64,
  Int32,
  makeData,
  makeVector,
  Table,
  TimestampMillisecond,
  tableFromIPC,
  tableToIPC,
} from 'apache-arrow'
import { unpack } from 'msgpackr'
import { type Context, SentHeaders } from '../../src/http/context.ts'
import { singleNode } from '../../src/http/node.ts'
import { barRoute } from '../../src/http/routes/bars.ts'
import { Market } from '../../src/market/market.ts'
import type { Bar } from '../../src/schema/bar.ts'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import { random } from '../datasets/random.ts'
import { type Measured, median, microsecondsOf, type Question, type RunOptions, sha } from '../harness.ts'

const BARS = 1_000
const START_MS = 1_772_000_000_000
const TRADES_PER_BAR = 4
/** So many more seconds than bars: the bars asked for are the newest of more. */
const SECONDS = BARS + 100
const SAMPLED_BARS = 20

const MS = ({ small }: RunOptions) => (small ? 20 : 300)

interface Trading {
  market: Market
  /** One more trade of a token, of the second that is going on. */
  trade(token: number): void
}

/** A market whose tokens trade together, second after second. */
function trading(tokens: number): Trading {
  const market = new Market({ tokensMax: Math.max(tokens, 16) })
  const next = random(1)
  const mints = Array.from({ length: tokens }, (_, token) => mintOfSymbol(`token ${token}`))
  const prices = mints.map(() => 1e-4 * (1 + next()))
  let nowMs = START_MS
  const trade = (token: number) => {
    prices[token] *= 1 + (next() - 0.5) * 0.01
    const [priceUsd, mint] = [prices[token], mints[token]]
    const event = {
      type: 'trade',
      mint,
      ts: nowMs,
      side: 'buy',
      tokenAmount: 1e6 * next(),
      priceUsd,
    } as const
    const rejection = market.apply(event, nowMs)
    if (rejection !== null) throw new Error(rejection)
  }
  for (let second = 0; second < SECONDS; second++) {
    for (let index = 0; index < TRADES_PER_BAR; index++) {
      nowMs = START_MS + second * 1_000 + index * 200
      for (let token = 0; token < tokens; token++) trade(token)
    }
  }
  return { market, trade }
}

type Format = 'json' | 'arrow' | 'msgpack'

/** What the server does with a request once its head is read. */
function asker(market: Market): (token: number, format: Format) => Buffer {
  const { handle } = barRoute({ market, node: singleNode() })
  const headers = Object.assign(new SentHeaders(), { accept: '*/*' })
  const rest = { method: 'GET', path: '/api/v1/ohlc', id: '', notes: {}, headers, requestId: '1' } as const
  const ip = () => '::1'
  const body = Buffer.alloc(0)
  return (token, format) => {
    const asked = `mint=${mintOfSymbol(`token ${token}`)}&tf=1s&limit=${BARS}&format=${format}`
    const context: Context = {
      ...rest,
      ip,
      client: ip,
      isRelayed: () => false,
      isLocal: () => false,
      origin: () => '',
      body,
      onGone: () => {},
      admitRows: () => {},
      query: new URLSearchParams(asked),
      queryText: asked,
    }
    return (handle(context) as { body: Buffer }).body
  }
}

const sampleOf = (bars: readonly Bar[]): number[] =>
  bars
    .slice(-SAMPLED_BARS)
    .flatMap(({ t, o, h, l, c, v, n, closed }) => [t, o, h, l, c, v, n, Number(closed)])

/** A format whose series was asked for before; what was read before the trades is what the others are held against. */
async function warm(format: Format, options: RunOptions): Promise<Measured> {
  const { market, trade } = trading(1)
  const ask = asker(market)
  const first = ask(0, format)
  const us = await microsecondsOf(() => {
    trade(0)
    return ask(0, format)
  }, MS(options))
  return { metrics: { us, bytes: first.length }, checksum: sha(first), sample: sampleOf(read(first, format)) }
}

function read(body: Buffer, format: Format): Bar[] {
  if (format === 'json') return JSON.parse(body.toString()).data
  if (format === 'msgpack') return unpack(body).data
  return tableFromIPC(body)
    .toArray()
    .map((row) => row.toJSON() as Bar)
}

/** Each series once. No more tokens than the engine keeps a thousand one-second bars of. */
function cold(format: Format, { small }: RunOptions): Measured {
  const tokens = small ? 4 : 50
  const { market } = trading(tokens)
  const ask = asker(market)
  const times: number[] = []
  const bodies: Buffer[] = []
  for (let token = 0; token < tokens; token++) {
    const started = performance.now()
    bodies.push(ask(token, format))
    times.push((performance.now() - started) * 1_000)
  }
  const short = bodies.findIndex((body) => read(body, format).length !== BARS)
  if (short !== -1) throw new Error(`token ${short} has fewer bars`)
  // The first of them warm the compiler up.
  return {
    metrics: { us: median(times.slice(Math.floor(tokens / 4))) },
    checksum: sha(Buffer.concat(bodies)),
  }
}

function ready(): Bar[] {
  const query = { mint: mintOfSymbol('token 0'), tf: '1s', limit: BARS, fill: 'none' } as const
  return trading(1).market.bars({ ...query, fromMs: null, toMs: null })!.bars
}

async function stringify(options: RunOptions): Promise<Measured> {
  const bars = ready()
  const work = () => Buffer.from(JSON.stringify(bars))
  const us = await microsecondsOf(work, MS(options))
  return { metrics: { us, bytes: work().length }, checksum: sha(work()), sample: sampleOf(bars) }
}

async function apacheArrow(options: RunOptions): Promise<Measured> {
  const bars = ready()
  const t = BigInt64Array.from(bars, (bar) => BigInt(bar.t))
  const n = Int32Array.from(bars, (bar) => bar.n)
  const bits = new Uint8Array(Math.ceil(bars.length / 8))
  for (const [row, { closed }] of bars.entries()) bits[row >> 3] |= Number(closed) << (row & 7)
  const prices = (['o', 'h', 'l', 'c', 'v'] as const).map(
    (name) => [name, Float64Array.from(bars, (bar) => bar[name])] as const,
  )
  const work = () =>
    tableToIPC(
      new Table({
        t: makeVector(makeData({ type: new TimestampMillisecond(), data: t })),
        ...Object.fromEntries(
          prices.map(([name, data]) => [name, makeVector(makeData({ type: new Float64(), data }))]),
        ),
        n: makeVector(makeData({ type: new Int32(), data: n })),
        closed: makeVector(makeData({ type: new Bool(), length: bars.length, data: bits })),
      }),
      'stream',
    )
  const us = await microsecondsOf(work, MS(options))
  const made = Buffer.from(work())
  return { metrics: { us }, checksum: sha(made), sample: sampleOf(read(made, 'arrow')) }
}

const STRINGIFY = 'JSON.stringify of objects'
const cheaper = { metric: 'us', unit: 'µs', better: 'lower' } as const

export const question: Question = {
  name: 'encode',
  title: '1000 bars on the wire',
  rounds: 3,
  variants: ['msgpack', 'arrow, cold', 'apache-arrow'],
  candidates: {
    json: (options) => warm('json', options),
    arrow: (options) => warm('arrow', options),
    msgpack: (options) => warm('msgpack', options),
    'json, cold': (options) => cold('json', options),
    'arrow, cold': (options) => cold('arrow', options),
    [STRINGIFY]: stringify,
    'apache-arrow': apacheArrow,
  },
  comparisons: [
    { title: '1000 bars as JSON', of: 'json', against: STRINGIFY, ...cheaper, gate: 0.3, stretch: 0.1 },
    { title: '1000 bars as Arrow', of: 'arrow', against: STRINGIFY, ...cheaper, gate: 0.1, stretch: 0.02 },
    {
      title: '1000 bars: Arrow beside JSON',
      of: 'arrow',
      metric: 'bytes',
      against: STRINGIFY,
      unit: 'bytes',
      gate: 0.4,
      stretch: 0.37,
      better: 'lower',
    },
    { title: '1000 bars as msgpack', of: 'msgpack', against: STRINGIFY, ...cheaper },
    { title: '1000 bars as Arrow', of: 'arrow', against: 'apache-arrow', ...cheaper },
    { title: '1000 bars as JSON, asked for first', of: 'json, cold', against: STRINGIFY, ...cheaper },
    { title: '1000 bars as Arrow, asked for first', of: 'arrow, cold', against: STRINGIFY, ...cheaper },
  ],
}
