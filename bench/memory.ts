// In: how many tokens and trades (`node bench/memory.ts 100000 4000000`). Out: what the engine costs in memory when a
// day of trades, popularity-skewed, has filled it: bars of nine timeframes, windows, versions, rankings and tape.
// Prints a checksum of a page, so that nothing is left out. Alone in its process: RSS is the process's.
import { createHash } from 'node:crypto'
import { Market } from '../src/market/market.ts'
import type { TradeEvent } from '../src/schema/event.ts'
import { mintOfSymbol } from '../src/schema/mint.ts'

const TOKENS = Number(process.argv[2] ?? 100_000)
const TRADES = Number(process.argv[3] ?? 4_000_000)
const DAY_MS = 86_400_000
const START_MS = 1_772_000_000_000
const MEBIBYTE = 1_048_576

/** mulberry32: small, seeded, good enough for a load. */
function random(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

const rssMebibytes = (): number => {
  globalThis.gc?.()
  return process.memoryUsage().rss / MEBIBYTE
}

const next = random(1)
const before = rssMebibytes()
const mints = Array.from({ length: TOKENS }, (_, index) => mintOfSymbol(`token ${index}`))
const market = new Market({ tokensMax: TOKENS })
const empty = rssMebibytes()
const price = new Float64Array(TOKENS).fill(1e-5)
mints.forEach((mint, index) => {
  market.apply(
    { type: 'token', mint, ts: START_MS, name: `Token ${index}`, symbol: `T${index}`, totalSupply: 1e9 },
    START_MS,
  )
})

const started = performance.now()
for (let count = 0; count < TRADES; count++) {
  // Popularity falls off as a power law: the hottest hundredth takes about half of the trades.
  const token = Math.floor(TOKENS * next() ** 5)
  price[token] *= 1 + (next() - 0.5) / 50
  const ts = START_MS + Math.floor((count / TRADES) * DAY_MS)
  const trade: TradeEvent = {
    type: 'trade',
    mint: mints[token],
    ts,
    side: next() < 0.5 ? 'buy' : 'sell',
    tokenAmount: 1e4,
    priceUsd: price[token],
  }
  market.apply(trade, ts)
}
const seconds = (performance.now() - started) / 1_000
const page = market.page({ tab: 'all', sort: 'hot', order: 'desc', limit: 1_000, offset: 0 })
const full = rssMebibytes()
const stats = market.stats()
console.log(
  JSON.stringify(
    {
      tokens: stats.tokens,
      trades: stats.trades,
      tradesPerSecond: Math.round(TRADES / seconds),
      rssEmptyMiB: Math.round(empty),
      rssFullMiB: Math.round(full),
      bytesPerToken: Math.round(((full - before) * MEBIBYTE) / TOKENS),
      barsHeld: stats.barsHeld,
      barsReclaimed: stats.barsReclaimed,
      versionsHeld: stats.versionsHeld,
      checksum: createHash('sha256').update(page.ndjson).digest('hex').slice(0, 16),
    },
    null,
    2,
  ),
)
