// Trades that are pushed to the writer. The price of a token rises by one with each, so that who reads knows in which order they were.
import { randomUUID } from 'node:crypto'
import { mintOfSymbol } from '../../../src/schema/mint.ts'
import { FEED_KEY } from '../../support/test-server.ts'
import { type Nodes, pause } from './nodes.ts'

const CALL_MS_MAX = 3_000
/** Bursts with pauses, so that nodes are seen at the same position now and then. */
const BURST_TRADES = 20
const BURST_EVERY_MS = 60

/** Tokens whose price rises. */
export const TRADED = Array.from({ length: 30 }, (_, index) => mintOfSymbol(`traded ${index}`))
/** Tokens that agents analyse. Each is traded once. */
export const ANALYSED = Array.from({ length: 400 }, (_, index) => mintOfSymbol(`analysed ${index}`))
/** A token whose price stays, for those who push more. */
export const FILLER = mintOfSymbol('filler')

/** So many trades of the filler, about a hundred bytes each as they are recorded. */
export const fillers = (count: number): object[] =>
  Array.from({ length: count }, (_, index) => ({
    ...{ type: 'trade', mint: FILLER, ts: Date.now(), side: 'buy', tokenAmount: 1, priceUsd: 1 },
    tx: `filler ${index} ${randomUUID()}${randomUUID()}`,
  }))

export class Trades {
  /** Trades that the writer has taken. */
  acknowledged = 0
  readonly #nodes: Nodes
  #isEnding = false
  #done: Promise<void> = Promise.resolve()
  #count = 0

  constructor(nodes: Nodes) {
    this.#nodes = nodes
  }

  /** Launches all tokens, then begins to push. */
  async start(): Promise<void> {
    const ts = Date.now()
    const launches = [...TRADED, ...ANALYSED, FILLER].flatMap((mint, index) => [
      { type: 'token', mint, ts, name: `Token ${index}`, symbol: `T${index}`, totalSupply: 1e9 },
      { type: 'trade', mint, ts, side: 'buy', tokenAmount: 10, priceUsd: 1 },
    ])
    await this.#nodes.writer?.push(...launches)
    this.#done = this.#push()
  }

  async end(): Promise<void> {
    this.#isEnding = true
    await this.#done
  }

  async #push(): Promise<void> {
    while (!this.#isEnding) {
      await this.#burst()
      await pause(BURST_EVERY_MS)
    }
  }

  /** A burst that fails is not sent again: nobody knows what of it was taken. */
  async #burst(): Promise<void> {
    const ts = Date.now()
    const lines = Array.from({ length: BURST_TRADES }, () => {
      const count = this.#count++
      const mint = TRADED[count % TRADED.length]
      const priceUsd = 2 + Math.floor(count / TRADED.length)
      const side = count % 3 === 0 ? 'sell' : 'buy'
      return JSON.stringify({ type: 'trade', mint, ts, side, tokenAmount: 1 + (count % 7), priceUsd })
    })
    const { writer } = this.#nodes
    if (writer === null) return
    const answer = await fetch(`${writer.url}/api/v1/ingest`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/x-ndjson', Authorization: `Bearer ${FEED_KEY}` },
      body: lines.join('\n'),
      signal: AbortSignal.timeout(CALL_MS_MAX),
    }).catch(() => null)
    if (answer?.ok) this.acknowledged += BURST_TRADES
    await answer?.body?.cancel()
  }
}
