// Pushed trades per second on one thread, from NDJSON or msgpack bytes to a market that can be queried: 100 000 tokens, half of the
// trades on the hundred hottest, the top page read every twenty milliseconds of market time. Also the cost of decoding alone.
import { Packr } from 'msgpackr'
import { ingest } from '../../src/ingest/push/push.ts'
import { Market } from '../../src/market/market.ts'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import { random } from '../datasets/random.ts'
import { type Measured, type Question, type RunOptions, sha } from '../harness.ts'

const START_MS = 1_772_000_000_000
const TRADES_PER_SECOND = 20_000
/** One push each twenty milliseconds of market time. */
const BATCH = 400
const HOT_TOKENS = 100

const sizes = ({ small }: RunOptions) =>
  small ? { tokens: 500, trades: 4_000 } : { tokens: 100_000, trades: 400_000 }

type Encode = (records: object[]) => Uint8Array
const ndjson: Encode = (records) =>
  Buffer.from(records.map((record) => `${JSON.stringify(record)}\n`).join(''))
const packr = new Packr({ useRecords: false })
const msgpack: Encode = (records) => Buffer.from(packr.pack(records))

/** A market that has been up for a while: the feed has spoken of each token before. */
function filledMarket(
  mints: readonly string[],
  price: Float64Array,
  push: (records: object[], market: Market) => void,
): Market {
  const market = new Market({ tokensMax: mints.length })
  for (let from = 0; from < mints.length; from += BATCH) {
    const records = mints.slice(from, from + BATCH).flatMap((mint, at) => [
      {
        type: 'token',
        mint,
        ts: START_MS,
        name: `Token ${from + at}`,
        symbol: `T${from + at}`,
        totalSupply: 1e9,
      },
      { type: 'trade', mint, ts: START_MS, side: 'buy', tokenAmount: 1e4, priceUsd: price[from + at] },
    ])
    push(records, market)
  }
  return market
}

function run(options: RunOptions, encode: Encode, contentType: string): Measured {
  const { tokens, trades } = sizes(options)
  const next = random(1)
  const mints = Array.from({ length: tokens }, (_, index) => mintOfSymbol(`token ${index}`))
  const price = Float64Array.from(mints, () => 1e-5 * Math.exp(6 * next()))
  const market = filledMarket(mints, price, (records, filled) => {
    ingest(encode(records), contentType, filled, START_MS)
  })
  let ms = 0
  let accepted = 0
  for (let from = 0; from < trades; from += BATCH) {
    const nowMs = START_MS + 1_000 + Math.floor((from / TRADES_PER_SECOND) * 1_000)
    const records = Array.from({ length: BATCH }, (_, offset) => {
      const token = Math.floor(next() * (next() < 0.5 ? Math.min(HOT_TOKENS, tokens) : tokens))
      price[token] *= 1 + (next() - 0.5) / 100
      return {
        type: 'trade',
        mint: mints[token],
        ts: nowMs + Math.floor((offset / TRADES_PER_SECOND) * 1_000),
        side: next() < 0.5 ? 'buy' : 'sell',
        tokenAmount: Math.round(1e6 * next()) / 10,
        priceUsd: price[token],
        wallet: mints[Math.floor(next() * tokens)],
      }
    })
    const body = encode(records)
    const started = performance.now()
    accepted += ingest(body, contentType, market, nowMs + 20).accepted
    market.page({ tab: 'all', sort: 'hot', order: 'desc', offset: 0, limit: 100 })
    ms += performance.now() - started
  }
  if (accepted !== trades) throw new Error(`${accepted} of ${trades} trades were accepted`)
  const page = market.page({ tab: 'all', sort: 'market_cap', order: 'desc', offset: 0, limit: 100 })
  return { metrics: { tradesPerSecond: (trades * 1_000) / ms }, checksum: sha(page.ndjson) }
}

const target = (of: string, title: string, gate: number, stretch: number) =>
  ({ title, metric: 'tradesPerSecond', of, unit: 'trades/s', gate, stretch, better: 'higher' }) as const

export const question: Question = {
  name: 'wire',
  title: 'wire to queryable, 100 000 tokens, one thread',
  rounds: 3,
  candidates: {
    NDJSON: (options) => run(options, ndjson, 'application/x-ndjson'),
    msgpack: (options) => run(options, msgpack, 'application/msgpack'),
  },
  comparisons: [
    target('NDJSON', 'wire to queryable, NDJSON', 100_000, 300_000),
    target('msgpack', 'wire to queryable, msgpack', 200_000, 500_000),
  ],
}
