// Trades as a live feed sends them: mint and wallet of 44 characters, transaction of 88, prices in SOL. Popularity follows a power law:
// one token in a hundred gets about half of the trades.
import type { TradeEvent } from '../../src/schema/event.ts'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import { random } from './random.ts'

const BASE58 = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz'
const WALLET_CHARS = 44
const TX_CHARS = 88
/** Texts are cut from here, which costs what cutting them from the body of a push costs. */
const POOL_BYTES = 1 << 22

export class RecordedTrades {
  readonly mints: readonly string[]
  readonly #next: () => number
  readonly #pool: Buffer
  readonly #price: Float64Array
  #at = 0

  constructor(tokens: number) {
    this.mints = Array.from({ length: tokens }, (_, index) => mintOfSymbol(`token ${index}`))
    this.#next = random(1)
    this.#price = new Float64Array(tokens).fill(3e-8)
    this.#pool = Buffer.alloc(POOL_BYTES)
    for (let at = 0; at < POOL_BYTES; at++)
      this.#pool[at] = BASE58.charCodeAt(Math.floor(this.#next() * BASE58.length))
  }

  next(ts: number): TradeEvent {
    const next = this.#next
    const token = Math.floor(this.mints.length * next() ** 5)
    this.#price[token] *= 1 + (next() - 0.5) / 50
    const solAmount = 0.01 + next()
    return {
      ...{ type: 'trade', mint: this.mints[token], ts, side: next() < 0.5 ? 'buy' : 'sell' },
      ...{ tokenAmount: solAmount / this.#price[token], solAmount, vSol: 30 + next(), vTokens: 1e9 },
      ...{ wallet: this.#text(WALLET_CHARS), tx: this.#text(TX_CHARS) },
    }
  }

  #text(length: number): string {
    if (this.#at + length > POOL_BYTES) this.#at = 0
    this.#at += length
    return this.#pool.toString('latin1', this.#at - length, this.#at)
  }
}
