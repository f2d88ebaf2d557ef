// node --expose-gc bench/servers/traded-market.ts TOKENS TRADES wallets|none
// A market that takes a part of a day of 300 trades a second, over tokens by Zipf's law, each of one of 200 000 wallets, which are
// counted or not; prints one line of JSON: its memory and the CPU time of a trade.
import { Market } from '../../src/market/market.ts'
import { WalletWindows } from '../../src/market/wallets/wallet-windows.ts'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import { random } from '../datasets/random.ts'
import { rssBytes } from '../harness.ts'

const START_MS = 1_772_000_000_000
const TRADES_PER_MS = 0.3
const WALLETS = 200_000
const [tokens, trades] = process.argv.slice(2, 4).map(Number)
if (process.argv[4] === 'none') WalletWindows.prototype.add = () => {}

/** A text as a decoder makes it, in one piece: not the pieces that it was put together of. */
const flat = (text: string): string => Buffer.from(text).toString('latin1')

const next = random(1)
const mints = Array.from({ length: tokens }, (_, index) => mintOfSymbol(`token ${index}`))
const wallets = Array.from({ length: WALLETS }, (_, index) => flat(mintOfSymbol(`wallet ${index}`)))
/** Ranks of tokens, each as often as Zipf's law says. */
const ranks = new Uint32Array(1 << 20)
const total = mints.reduce((sum, _, index) => sum + 1 / (index + 1), 0)
for (let place = 0, rank = 0, sum = 1; place < ranks.length; place++) {
  while (sum / total < (place + 0.5) / ranks.length) sum += 1 / (++rank + 1)
  ranks[place] = rank
}

const market = new Market({ tokensMax: tokens })
for (const [index, mint] of mints.entries())
  market.apply({ type: 'token', mint, ts: START_MS, name: `Token ${index}`, symbol: `T${index}` }, START_MS)
let charactersRead = 0
const began = process.cpuUsage()
for (let count = 0; count < trades; count++) {
  const ts = START_MS + Math.floor(count / TRADES_PER_MS)
  const wallet = wallets[Math.floor(next() * WALLETS)]
  // A feed has just written the text of a wallet: the market's reading it is not the first touch of its memory.
  for (let index = 0; index < wallet.length; index++) charactersRead += wallet.charCodeAt(index)
  market.apply(
    {
      type: 'trade',
      mint: mints[ranks[Math.floor(next() * ranks.length)]],
      ts,
      side: next() < 0.5 ? 'buy' : 'sell',
      tokenAmount: 1e4,
      priceUsd: 1e-5 * (1 + next() / 50),
      wallet,
    },
    ts,
  )
}
const { user, system } = process.cpuUsage(began)
globalThis.gc?.()
const hot = market.ownTradeFigures(mints[0])?.unique_wallet_24h
console.log(
  JSON.stringify({
    rssMebibytes: rssBytes('self') / 2 ** 20,
    tradeUs: (user + system) / trades,
    hot,
    charactersRead,
  }),
)
