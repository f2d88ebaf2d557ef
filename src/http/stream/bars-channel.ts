import type { Market } from '../../market/market.ts'
import { BARS_LIMIT_MAX } from '../../schema/api/bars.ts'
import type { Bar, Timeframe } from '../../schema/bar.ts'
import { type Channel, leftChunk, rowsChunk, type StreamSnapshot, singleSnapshot } from './channel.ts'
import { type Chunk, ChunkCache, type StreamPosition } from './chunk.ts'

/** A bar that may still change, and the number of the state in which it became what it is. */
interface KnownBar {
  bar: Bar
  number: number
}

/** Every trade raises the count. The volume tells those of a token apart that was evicted and came back. */
const isSame = (a: Bar, b: Bar): boolean => a.n === b.n && a.v === b.v && a.closed === b.closed

/** The bars of one token: every bar that changed, closed or is new, and a message that the token left once it was evicted. */
export class BarsChannel implements Channel {
  readonly name: string
  readonly key: string
  readonly isPaced = false
  readonly mint: string
  readonly #market: Market
  readonly #tf: Timeframe
  readonly #fromMs: number | null
  readonly #chunks = new ChunkCache()
  /** Rises with each state in which any bar is another one than before. A follower's position has the one that it was sent. */
  #number = 1
  /** That of the last `hasMoved`. */
  #askedNumber = 1
  /** By start: the bars that may still have changed between the last two looks. */
  #known = new Map<number, KnownBar>()
  /** When it was looked last: the latest change of the token, and the start of the first interval that could still change. A late
   *  trade, or one that a feed brings while it heals, may open a bar there that is older than others that are open. */
  #seen = { changedSeq: -1, openMs: Number.POSITIVE_INFINITY }
  /** Start of the first bar that was not closed then. */
  #unclosedMs = Number.POSITIVE_INFINITY

  /** @param fromMs bars that start before it are not followed; null: all are */
  constructor(market: Market, mint: string, tf: Timeframe, fromMs: number | null = null) {
    this.name = `ohlc:${mint}:${tf}`
    this.key = fromMs === null ? this.name : `${this.name} ${fromMs}`
    this.mint = mint
    this.#market = market
    this.#tf = tf
    this.#fromMs = fromMs
  }

  /** Never: bars are found by their time. */
  isLost(): boolean {
    return false
  }

  changes(position: StreamPosition): Chunk | null {
    if (!this.#market.has(this.mint)) {
      this.#known.clear()
      this.#unclosedMs = Number.POSITIVE_INFINITY
      this.#seen.openMs = 0
      return leftChunk(this.name, this.mint, position, this.#market.seq)
    }
    this.#look()
    // Whoever was told that the token left has none of its bars.
    const sent = Number.parseInt(position.state, 10) || 0
    if (sent === this.#number) return null
    return this.#chunks.get(this.#number, sent, () => {
      const fromMs = sent === 0 ? 0 : Math.min(position.barMs, this.#seen.openMs)
      // Those that are not known any more have closed since the follower was sent them.
      const isNew = ({ t }: Bar) => (this.#known.get(t)?.number ?? this.#number) > sent
      return this.#chunk('changes', this.#bars(BARS_LIMIT_MAX, fromMs).filter(isNew))
    })
  }

  /** The newest bars, of those that start at `fromMs` or later. */
  open(limit: number, fromMs = 0): StreamSnapshot {
    this.#look()
    return singleSnapshot(this.#chunk('snapshot', this.#bars(limit, fromMs)))
  }

  reopen(): StreamSnapshot {
    return this.open(BARS_LIMIT_MAX)
  }

  /** Whether a bar has closed without a trade, or is open again, because a feed tells late that it heals. It may have been found by a look
   *  for one follower alone, who has just come. */
  hasMoved(): boolean {
    const isFound = this.#number !== this.#askedNumber
    this.#askedNumber = this.#number
    const openMs = this.#openMs()
    return isFound || openMs > this.#unclosedMs || openMs < this.#seen.openMs
  }

  #openMs(): number {
    return this.#market.barsOpenFromMs(this.mint, this.#tf)
  }

  /** Finds the bars that are others than when it was looked last. */
  #look(): void {
    const before = this.#seen
    const changedSeq = this.#market.changedSeq(this.mint)
    const openMs = this.#openMs()
    if (before.changedSeq === changedSeq && before.openMs === openMs) return
    this.#seen = { changedSeq, openMs }
    const bars = this.#bars(BARS_LIMIT_MAX, Math.min(before.openMs, openMs))
    const number = this.#number + 1
    const known = bars.map((bar): [number, KnownBar] => {
      const old = this.#known.get(bar.t)
      return [bar.t, { bar, number: old !== undefined && isSame(old.bar, bar) ? old.number : number }]
    })
    if (known.some(([, each]) => each.number === number)) this.#number = number
    this.#known = new Map(known)
    this.#unclosedMs = bars.find(({ closed }) => !closed)?.t ?? Number.POSITIVE_INFINITY
  }

  #bars(limit: number, fromMs: number): Bar[] {
    const from = Math.max(fromMs, this.#fromMs ?? 0)
    const query = { mint: this.mint, tf: this.#tf, limit, fromMs: from, toMs: null, fill: 'none' } as const
    return this.#market.bars(query)?.bars ?? []
  }

  #chunk(event: 'changes' | 'snapshot', bars: readonly Bar[]): Chunk {
    const barMs = Math.max(this.#seen.openMs, this.#fromMs ?? 0)
    const rows = Buffer.from(bars.map((bar) => `${JSON.stringify(bar)}\n`).join(''))
    const next = { seq: this.#market.seq, barMs, state: `${this.#number}` }
    return rowsChunk(event, this.name, rows, next, { from: barMs })
  }
}
