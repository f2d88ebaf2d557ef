// Memory of the engine with 100 000 tokens after a day of trades (bars, windows, wallets, versions, rankings, change log), and whether
// further trades make it grow. Each trade has a transaction and a wallet, as those of feeds do.
import { Market } from '../../src/market/market.ts'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import { random } from '../datasets/random.ts'
import { type Measured, type Question, type RunOptions, rssBytes, sha } from '../harness.ts'

const DAY_MS = 86_400_000
const START_MS = 1_772_000_000_000
const GIBIBYTE = 2 ** 30
const TX_CHARS = 88
const WALLET_CHARS = 44
const WALLETS = 50_000

function rss(): number {
  globalThis.gc?.()
  return rssBytes('self')
}

function run({ small, full }: RunOptions): Measured {
  const tokens = small ? 500 : 100_000
  const trades = small ? 10_000 : full ? 8_000_000 : 2_000_000
  const next = random(1)
  const mints = Array.from({ length: tokens }, (_, index) => mintOfSymbol(`token ${index}`))
  const price = new Float64Array(tokens).fill(1e-5)
  const characters = Buffer.from(mints.join(''))
  /** Made of bytes, as texts of feeds are: nothing else holds them. */
  const text = (from: number, chars: number) => characters.toString('latin1', from, from + chars)
  const before = rss()
  const market = new Market({ tokensMax: tokens })
  for (const [index, mint] of mints.entries())
    market.apply(
      { type: 'token', mint, ts: START_MS, name: `Token ${index}`, symbol: `T${index}`, totalSupply: 1e9 },
      START_MS,
    )
  let half = 0
  for (let count = 0; count < trades; count++) {
    // Popularity follows a power law: one token in a hundred gets about half of the trades.
    const token = Math.floor(tokens * next() ** 5)
    price[token] *= 1 + (next() - 0.5) / 50
    const ts = START_MS + Math.floor((count / trades) * DAY_MS)
    market.apply(
      {
        type: 'trade',
        mint: mints[token],
        ts,
        side: next() < 0.5 ? 'buy' : 'sell',
        tokenAmount: 1e4,
        priceUsd: price[token],
        tx: text(Math.floor(next() * (characters.length - TX_CHARS)), TX_CHARS),
        wallet: text(Math.floor(next() * Math.min(WALLETS, characters.length - WALLET_CHARS)), WALLET_CHARS),
      },
      ts,
    )
    if (count === trades >> 1) half = rss()
  }
  const after = rss()
  const page = market.page({ tab: 'all', sort: 'hot', order: 'desc', limit: 1_000, offset: 0 })
  return {
    metrics: {
      rssGiB: after / GIBIBYTE,
      kilobytesPerToken: (after - before) / 1_000 / tokens,
      secondHalf: after / half,
    },
    checksum: sha(page.ndjson),
  }
}

export const question: Question = {
  name: 'memory',
  title: 'memory, 100 000 tokens, a day of trades',
  rounds: 1,
  candidates: { ours: run },
  comparisons: [
    { title: 'memory: RSS', metric: 'rssGiB', unit: 'GiB', gate: 2, stretch: 1, better: 'lower' },
    { title: 'memory: each token', metric: 'kilobytesPerToken', unit: 'kB', better: 'lower' },
    { title: 'memory: after the day / after half of it', metric: 'secondHalf', unit: '×', better: 'lower' },
  ],
}
