// node --expose-gc bench/servers/traded-market.ts TOKENS TRADES wallets|none|turns
// A market that takes a part of a day of 300 trades a second, over tokens by Zipf's law, each of one of 200 000 wallets, as feeds that
// are pushed deliver them; wallets are counted, or not, or in every other block of trades. Prints one line of JSON: its memory, and what
// counting adds to the CPU time of a trade: the median over pairs of neighbouring blocks, as two processes differ by more than that.

import { WalletWindows } from '../../src/market/bars/wallet-windows.ts'
import { Market } from '../../src/market/market.ts'
import { PREFETCHED_MAX, type TradeEvent } from '../../src/schema/event.ts'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import { random } from '../datasets/random.ts'
import { median, rssBytes } from '../harness.ts'

const START_MS = 1_772_000_000_000
const TRADES_PER_MS = 0.3
const WALLETS = 200_000
/** Trades of a block: some 50 ms, in which a machine changes little. A quarter of all trades comes before the first one that counts. */
const BLOCK_TRADES = 8_192
const [tokens, trades] = process.argv.slice(2, 4).map(Number)
const mode = process.argv[4]
let counts = mode !== 'none'
const { add, prefetch } = WalletWindows.prototype
Object.assign(WalletWindows.prototype, {
  add(...sighting) {
    if (counts) add.apply(this, sighting)
  },
  prefetch(slot) {
    return counts ? prefetch.call(this, slot) : 0
  },
} satisfies Partial<WalletWindows>)

const next = random(1)
const mints = Array.from({ length: tokens }, (_, index) => mintOfSymbol(`token ${index}`))
const WALLET_CHARS = 44
const wallets = Buffer.alloc(WALLETS * WALLET_CHARS, '1')
for (let index = 0; index < WALLETS; index++)
  wallets.write(mintOfSymbol(`wallet ${index}`), index * WALLET_CHARS)
/** A text is made of bytes for each trade, as feeds do: it is in the processor's cache when the market reads it. */
function nextWallet(): string {
  const at = Math.floor(next() * WALLETS) * WALLET_CHARS
  return wallets.toString('latin1', at, at + WALLET_CHARS)
}
/** Ranks of tokens, each as often as Zipf's law says. */
const ranks = new Uint32Array(1 << 20)
const total = mints.reduce((sum, _, index) => sum + 1 / (index + 1), 0)
for (let place = 0, rank = 0, sum = 1; place < ranks.length; place++) {
  while (sum / total < (place + 0.5) / ranks.length) sum += 1 / (++rank + 1)
  ranks[place] = rank
}

const tradeAt = (count: number): TradeEvent => ({
  type: 'trade',
  mint: mints[ranks[Math.floor(next() * ranks.length)]],
  ts: START_MS + Math.floor(count / TRADES_PER_MS),
  side: next() < 0.5 ? 'buy' : 'sell',
  tokenAmount: 1e4,
  priceUsd: 1e-5 * (1 + next() / 50),
  wallet: nextWallet(),
})

const market = new Market({ tokensMax: tokens })
for (const [index, mint] of mints.entries())
  market.apply({ type: 'token', mint, ts: START_MS, name: `Token ${index}`, symbol: `T${index}` }, START_MS)
/** CPU time of a trade by block, µs, with wallets and without. */
const tradeUs: Record<'counted' | 'bare', number[]> = { counted: [], bare: [] }
let began = process.cpuUsage()
function endBlock(count: number): void {
  const { user, system } = process.cpuUsage(began)
  if (mode === 'turns' && count > trades / 4) {
    tradeUs[counts ? 'counted' : 'bare'].push((user + system) / BLOCK_TRADES)
    counts = !counts
  }
  began = process.cpuUsage()
}
for (let count = 0; count < trades; count += PREFETCHED_MAX) {
  const batch = Array.from({ length: Math.min(PREFETCHED_MAX, trades - count) }, (_, at) =>
    tradeAt(count + at),
  )
  market.prefetch(batch.map(({ mint }) => mint))
  for (const trade of batch) market.apply(trade, trade.ts)
  if ((count + PREFETCHED_MAX) % BLOCK_TRADES === 0) endBlock(count)
}
globalThis.gc?.()
const hot = market.enriched(mints[0])?.unique_wallet_24h
const addedUs = tradeUs.bare.map((us, pair) => tradeUs.counted[pair] - us)
console.log(
  JSON.stringify({
    rssMebibytes: rssBytes('self') / 2 ** 20,
    addedUs: addedUs.length === 0 ? null : median(addedUs),
    hot,
  }),
)
