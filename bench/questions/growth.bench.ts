// Cost of a trade and of a top page with 1 000, 100 000 and 1 000 000 tokens under the same stream of trades, half of them on
// the hundred hottest tokens.
import { Market } from '../../src/market/market.ts'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import { random } from '../datasets/random.ts'
import { type Measured, microsecondsOf, type Question, type RunOptions, sha } from '../harness.ts'

const START_MS = 1_772_000_000_000
const TRADES_PER_SECOND = 20_000
const HOT_TOKENS = 100
const READ_EVERY = 400

async function run(options: RunOptions, tokens: number): Promise<Measured> {
  const next = random(1)
  const trades = options.small ? 5_000 : 400_000
  const mints = Array.from({ length: tokens }, (_, index) => mintOfSymbol(`token ${index}`))
  const price = Float64Array.from(mints, () => 1e-5 * Math.exp(6 * next()))
  const market = new Market({ tokensMax: tokens })
  const trade = (token: number, ts: number) =>
    market.apply(
      {
        type: 'trade',
        mint: mints[token],
        ts,
        side: next() < 0.5 ? 'buy' : 'sell',
        tokenAmount: 1e4 * next(),
        priceUsd: price[token],
      },
      ts,
    )
  for (const [index, mint] of mints.entries()) {
    market.apply(
      { type: 'token', mint, ts: START_MS, name: `Token ${index}`, symbol: `T${index}`, totalSupply: 1e9 },
      START_MS,
    )
    trade(index, START_MS)
  }
  const query = { tab: 'all', sort: 'hot', order: 'desc', offset: 0, limit: 100 } as const
  const started = performance.now()
  for (let count = 0; count < trades; count++) {
    const token = Math.floor(next() * (next() < 0.5 ? Math.min(HOT_TOKENS, tokens) : tokens))
    price[token] *= 1 + (next() - 0.5) / 100
    trade(token, START_MS + 1_000 + Math.floor((count / TRADES_PER_SECOND) * 1_000))
    if (count % READ_EVERY === 0) market.page(query)
  }
  const applyUs = ((performance.now() - started) * 1_000) / trades
  const pageUs = await microsecondsOf(() => market.page(query), options.small ? 20 : 200)
  return { metrics: { applyUs, pageUs }, checksum: sha(market.page(query).ndjson) }
}

export const question: Question = {
  name: 'growth',
  title: 'the cost of a trade as the market grows',
  rounds: 3,
  fullOnly: ['1 000 000 tokens'],
  candidates: {
    '100 000 tokens': (options) => run(options, options.small ? 2_000 : 100_000),
    '1 000 tokens': (options) => run(options, options.small ? 200 : 1_000),
    '1 000 000 tokens': (options) => run(options, 1_000_000),
  },
  comparisons: [
    {
      title: 'apply a trade, 100 000 tokens',
      metric: 'applyUs',
      of: '100 000 tokens',
      against: '1 000 tokens',
      unit: 'µs',
      gate: 3,
      stretch: 2,
      better: 'lower',
    },
    {
      title: 'apply a trade, 1 000 000 tokens',
      metric: 'applyUs',
      of: '1 000 000 tokens',
      against: '1 000 tokens',
      unit: 'µs',
      better: 'lower',
    },
  ],
}
