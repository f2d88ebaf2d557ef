import type { Market } from '../../market/market.ts'
import { BARS_LIMIT_MAX } from '../../schema/api/bars.ts'
import { TIMEFRAME_MS, type Timeframe } from '../../schema/bar.ts'
import { type Channel, leftChunk, rowsChunk, type StreamSnapshot, singleSnapshot } from './channel.ts'
import { type Chunk, ChunkCache, type StreamPosition } from './chunk.ts'

/** How many of the newest bars may be unclosed: in the finest timeframe the grace for late trades spans several. */
const UNCLOSED_BARS_MAX = 16

/** The bars of one token: every bar that changed, closed or is new, and a message that the token left once it was evicted. */
export class BarsChannel implements Channel {
  readonly name: string
  readonly key: string
  readonly isPaced = false
  readonly mint: string
  readonly #market: Market
  readonly #tf: Timeframe
  readonly #chunks = new ChunkCache()
  /** When the first bar that was sent unclosed ends: from then on the passing of time may close it. */
  #closesAtMs = Number.POSITIVE_INFINITY
  /** The last result of `#state`, and when it was computed. */
  #computed = { seq: -1, timeMs: -1, state: '' }

  constructor(market: Market, mint: string, tf: Timeframe) {
    this.name = `ohlc:${mint}:${tf}`
    this.key = this.name
    this.mint = mint
    this.#market = market
    this.#tf = tf
  }

  /** Never: bars are found by their time. */
  isLost(): boolean {
    return false
  }

  changes(position: StreamPosition): Chunk | null {
    if (!this.#market.has(this.mint)) {
      this.#closesAtMs = Number.POSITIVE_INFINITY
      return leftChunk(this.name, this.mint, position, this.#market.seq)
    }
    const { barMs } = position
    const state = this.#state()
    if (position.state === state) return null
    return this.#chunks.get(state, barMs, () => this.#chunk('changes', state, barMs, BARS_LIMIT_MAX))
  }

  /** The newest bars. @param fromMs the start of the first one, or null. */
  open(limit: number, fromMs: number | null): StreamSnapshot {
    return singleSnapshot(this.#chunk('snapshot', this.#state(), fromMs, limit))
  }

  reopen(): StreamSnapshot {
    return this.open(BARS_LIMIT_MAX, null)
  }

  hasMoved(): boolean {
    return this.#market.timeMs >= this.#closesAtMs
  }

  /** A text that changes with each trade of the token and whenever one of its bars closes. */
  #state(): string {
    const { seq, timeMs } = this.#market
    if (this.#computed.seq !== seq || this.#computed.timeMs !== timeMs) {
      const unclosed = this.#bars(UNCLOSED_BARS_MAX, null).find((bar) => !bar.closed)
      this.#computed = { seq, timeMs, state: `${this.#market.changedSeq(this.mint)} ${unclosed?.t}` }
    }
    return this.#computed.state
  }

  #bars(limit: number, fromMs: number | null) {
    const query = { mint: this.mint, tf: this.#tf, limit, fromMs, toMs: null, fill: 'none' } as const
    return this.#market.bars(query)?.bars ?? []
  }

  #chunk(event: 'changes' | 'snapshot', state: string, fromMs: number | null, limit: number): Chunk {
    const { seq } = this.#market
    const bars = this.#bars(limit, fromMs)
    const newest = bars.at(-1)
    const unclosed = bars.find((bar) => !bar.closed)
    this.#closesAtMs = unclosed === undefined ? Number.POSITIVE_INFINITY : unclosed.t + TIMEFRAME_MS[this.#tf]
    const barMs = unclosed?.t ?? (newest === undefined ? (fromMs ?? 0) : newest.t + 1)
    const rows = Buffer.from(bars.map((bar) => `${JSON.stringify(bar)}\n`).join(''))
    return rowsChunk(event, this.name, rows, { seq, barMs, state })
  }
}
