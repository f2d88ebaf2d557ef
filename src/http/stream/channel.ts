// In: the market, and where a subscriber stands. Out: the rows that it has not seen: of a tab, of one token, or of one
// token's bars. What subscribers at the same place are sent is made once, and encoded once for each format. Never keeps
// a row, nor knows a subscriber.
import type { ChangePart, MarketEngine } from '../../market/types.ts'
import { TIMEFRAME_MS, type Timeframe } from '../../schema/bar.ts'
import type { Order, Sort, Tab } from '../../schema/vocabulary.ts'
import { controlFrame, rowsFrame, type StreamFormat } from '../encode/stream-frame.ts'
import { BARS_LIMIT_MAX, FOLLOW_CHUNKS_MAX, FOLLOW_ROWS_MAX } from '../limits.ts'

/** Where a subscriber stands. */
export interface StreamPosition {
  /** The market's number up to which it has been sent everything. */
  seq: number
  /** Of bars: start of the first one that may still change, Unix ms. */
  barMs: number
  /** Of bars: the state that it has been sent. */
  state: string
}

/** A message of a stream: rows under a head, or with null the head alone. */
interface Message {
  head: object
  rows: Buffer | null
  /** Where a subscriber stands who has been sent it. */
  next: StreamPosition
}

/** Bytes that are sent at once, and where their reader stands then. */
export interface Frame {
  bytes: Buffer
  next: StreamPosition
}

/** Messages that lead from one cursor to the next, and their bytes in the formats asked for so far. */
export class Chunk {
  readonly next: StreamPosition
  readonly #messages: readonly Message[]
  readonly #frames = new Map<StreamFormat, readonly Frame[]>()

  constructor(messages: readonly Message[], next: StreamPosition) {
    this.#messages = messages
    this.next = next
  }

  /** In NDJSON all messages are one frame. */
  frames(format: StreamFormat): readonly Frame[] {
    let frames = this.#frames.get(format)
    if (frames === undefined) {
      frames = format === 'ndjson' ? this.#lines() : this.#messages.map((message) => framed(message, format))
      this.#frames.set(format, frames)
    }
    return frames
  }

  #lines(): Frame[] {
    const parts = this.#messages.map(
      // A stream over HTTP has one channel: lines do not name it.
      ({ head, rows }) => rows ?? controlFrame('ndjson', { ...head, channel: undefined }),
    )
    const bytes = parts.length === 1 ? parts[0] : Buffer.concat(parts)
    return bytes.length === 0 ? [] : [{ bytes, next: this.next }]
  }
}

const framed = ({ head, rows, next }: Message, format: StreamFormat): Frame => ({
  bytes: rows === null ? controlFrame(format, head) : rowsFrame(format, head, rows),
  next,
})

/** The rows that come before any change, a piece at a time: as the reader takes them. */
export interface StreamSnapshot {
  /** The next piece; its `isLast` ends the opening. */
  next(): { chunk: Chunk; isLast: boolean }
}

export interface Channel {
  readonly name: string
  /** The token whose changes alone concern it; null for a tab. */
  readonly mint: string | null
  /** True when changes after the cursor are not known: it is of an earlier run, too old, or of no run at all. */
  isLost(position: Pick<StreamPosition, 'seq'>): boolean
  /** What changed after the cursor, or a first part of it; null when nothing did. */
  changes(position: StreamPosition): Chunk | null
  /** Every row, anew. */
  reopen(): StreamSnapshot
  /** True when time alone has changed it: then its subscribers are to be served. */
  hasMoved(): boolean
}

export interface MarketRequest {
  tab: Tab
  sort: Sort
  order: Order
  offset: number
  limit: number
}

const snapshot = (...chunks: Chunk[]): StreamSnapshot => ({
  next: () => ({ chunk: chunks.shift()!, isLast: chunks.length === 0 }),
})

/** What was made for followers at the same place, while nothing changes. */
class ChunkCache {
  #bySeq = new Map<number, Chunk>()
  #state: number | string = -1

  /** The piece of that place, made when it is not there. `state` tells when all are out of date. */
  at(state: number | string, place: number, make: () => Chunk): Chunk {
    if (state !== this.#state || this.#bySeq.size >= FOLLOW_CHUNKS_MAX) this.#bySeq.clear()
    this.#state = state
    let chunk = this.#bySeq.get(place)
    if (chunk === undefined) {
      chunk = make()
      this.#bySeq.set(place, chunk)
    }
    return chunk
  }
}

const atSeq = (seq: number): StreamPosition => ({ seq, barMs: 0, state: '' })

/** Rows that a stream opens with: none where it goes on from a number, and all of its tab where that is lost. */
export function snapshotRows(
  market: MarketEngine,
  request: MarketRequest & { since: number | null },
): number {
  const { tab, limit, offset, since } = request
  const { total } = market.page({ ...request, limit: 1 })
  if (since === null) return Math.max(0, Math.min(limit, total - offset))
  return new MarketChannel(market, tab).isLost({ seq: since }) ? total : 0
}

/** A tab of the market list: every row that changes in it, coalesced to the newest, one last time a row that left, and
 *  of a token that was evicted that it left. */
export class MarketChannel implements Channel {
  readonly name: string
  readonly mint = null
  readonly #market: MarketEngine
  readonly #tab: Tab
  readonly #chunks = new ChunkCache()

  constructor(market: MarketEngine, tab: Tab) {
    this.name = `market:${tab}`
    this.#market = market
    this.#tab = tab
  }

  isLost({ seq }: Pick<StreamPosition, 'seq'>): boolean {
    return seq < this.#market.oldestSince || seq > this.#market.seq
  }

  changes({ seq }: StreamPosition): Chunk | null {
    if (seq === this.#market.seq) return null
    return this.#chunks.at(this.#market.seq, seq, () => {
      const { parts, nextSeq } = this.#market.changesSince(seq, this.#tab, FOLLOW_ROWS_MAX)
      return new Chunk(
        parts.map((part) => this.#change(part)),
        atSeq(nextSeq),
      )
    })
  }

  #change(part: ChangePart): Message {
    const { seq } = part
    const [event, channel] = ['changes', this.name]
    if ('rows' in part) return { head: { event, channel, seq }, rows: part.rows, next: atSeq(seq) }
    return { head: leftHead(channel, part.left, seq), rows: null, next: atSeq(seq) }
  }

  /** The rows of a page, which may be the whole list: its order is frozen, its rows are the newest when they are sent. */
  open({ tab, sort, order, offset, limit }: MarketRequest): StreamSnapshot {
    const { seq } = this.#market
    if (limit <= FOLLOW_ROWS_MAX) {
      const page = this.#market.page({ tab, sort, order, offset, limit })
      return snapshot(this.#snapshot(page.ndjson, seq, true))
    }
    const list = this.#market.freeze(tab, sort)
    const end = Math.min(list.size, offset + limit)
    let at = offset
    return {
      next: () => {
        const { ndjson } = list.page(order, at, Math.max(0, Math.min(FOLLOW_ROWS_MAX, end - at)))
        at += FOLLOW_ROWS_MAX
        return { chunk: this.#snapshot(ndjson, seq, at >= end), isLast: at >= end }
      },
    }
  }

  reopen(): StreamSnapshot {
    const limit = Math.max(1, this.#market.stats().tokens)
    return this.open({ tab: this.#tab, sort: 'hot', order: 'desc', offset: 0, limit })
  }

  hasMoved(): boolean {
    return false
  }

  /** Who has not been sent the last rows has no position to go on from. */
  #snapshot(rows: Buffer, seq: number, isLast: boolean): Chunk {
    const head = { event: 'snapshot', channel: this.name, ...(isLast && { seq }), last: isLast }
    return new Chunk([{ head, rows, next: atSeq(seq) }], atSeq(seq))
  }
}

/** Said of a token that is gone. */
const leftHead = (channel: string, mint: string, seq: number) => ({ event: 'left', channel, mint, seq })
/** State of a cursor whose owner has been told that. */
const LEFT = 'left'

function leftChunk(channel: string, mint: string, { barMs }: StreamPosition, seq: number): Chunk {
  const next = { seq, barMs, state: LEFT }
  return new Chunk([{ head: leftHead(channel, mint, seq), rows: null, next }], next)
}

const NEWLINE = Buffer.from('\n')

/** One token: its DataPoint, at each change of its row, and once that it left when it was evicted. */
export class TokenChannel implements Channel {
  readonly name: string
  readonly mint: string
  readonly #market: MarketEngine
  readonly #chunks = new ChunkCache()

  constructor(market: MarketEngine, mint: string) {
    this.name = `token:${mint}`
    this.mint = mint
    this.#market = market
  }

  /** Only the newest DataPoint counts, so within a run no gap is too wide. */
  isLost({ seq }: Pick<StreamPosition, 'seq'>): boolean {
    return seq < this.#market.firstSeq || seq > this.#market.seq
  }

  changes(position: StreamPosition): Chunk | null {
    if (!this.#market.has(this.mint)) {
      if (position.state === LEFT) return null
      return leftChunk(this.name, this.mint, position, this.#market.seq)
    }
    const changedSeq = this.#market.changedSeq(this.mint)
    if (changedSeq <= position.seq) return null
    return this.#chunks.at(changedSeq, 0, () => this.#chunk('changes'))
  }

  reopen(): StreamSnapshot {
    return snapshot(this.#chunk('snapshot', true))
  }

  hasMoved(): boolean {
    return false
  }

  #chunk(event: string, isLast?: boolean): Chunk {
    const { seq } = this.#market
    const found = this.#market.datapointJson(this.mint)
    const rows = found === null ? Buffer.alloc(0) : Buffer.concat([found.json, NEWLINE])
    const head = { event, channel: this.name, seq, ...(isLast !== undefined && { last: isLast }) }
    return new Chunk([{ head, rows, next: atSeq(seq) }], atSeq(seq))
  }
}

/** Bars of the finest timeframe that may be unclosed at once: a token's grace for late trades, and some more. */
const FORMING_BARS = 16

/** Bars of one token: after the first ones, every bar that changed or closed, and every new one; and once that the token
 *  left when it was evicted. */
export class BarsChannel implements Channel {
  readonly name: string
  readonly mint: string
  readonly #market: MarketEngine
  readonly #tf: Timeframe
  readonly #chunks = new ChunkCache()
  /** When the first bar that was sent unclosed ends: from then on time alone may close it. */
  #endMs = Number.POSITIVE_INFINITY
  #seen = { seq: -1, timeMs: -1, state: '' }

  constructor(market: MarketEngine, mint: string, tf: Timeframe) {
    this.name = `ohlc:${mint}:${tf}`
    this.mint = mint
    this.#market = market
    this.#tf = tf
  }

  /** Bars are found again by their time, so nothing is lost. */
  isLost(): boolean {
    return false
  }

  changes(position: StreamPosition): Chunk | null {
    const { barMs, state } = position
    if (!this.#market.has(this.mint)) {
      this.#endMs = Number.POSITIVE_INFINITY
      return state === LEFT ? null : leftChunk(this.name, this.mint, position, this.#market.seq)
    }
    const now = this.#state()
    if (state === now) return null
    return this.#chunks.at(now, barMs, () => this.#chunk('changes', now, barMs, BARS_LIMIT_MAX))
  }

  /** The newest bars, from `fromMs` on when that is not null. */
  open(limit: number, fromMs: number | null): StreamSnapshot {
    return snapshot(this.#chunk('snapshot', this.#state(), fromMs, limit, true))
  }

  reopen(): StreamSnapshot {
    return this.open(BARS_LIMIT_MAX, null)
  }

  hasMoved(): boolean {
    return this.#market.timeMs >= this.#endMs
  }

  /** Changes with every trade of the token, and when a bar of it closes. */
  #state(): string {
    const { seq, timeMs } = this.#market
    if (this.#seen.seq !== seq || this.#seen.timeMs !== timeMs) {
      const forming = this.#bars(FORMING_BARS, null)?.bars.find((bar) => !bar.closed)
      this.#seen = { seq, timeMs, state: `${this.#market.changedSeq(this.mint)} ${forming?.t}` }
    }
    return this.#seen.state
  }

  #bars(limit: number, fromMs: number | null) {
    return this.#market.bars({ mint: this.mint, tf: this.#tf, limit, fromMs, toMs: null, fill: 'none' })
  }

  #chunk(event: string, state: string, fromMs: number | null, limit: number, isLast?: boolean): Chunk {
    const { seq } = this.#market
    const bars = this.#bars(limit, fromMs)?.bars ?? []
    const newest = bars[bars.length - 1]
    const forming = bars.find((bar) => !bar.closed)
    this.#endMs = forming === undefined ? Number.POSITIVE_INFINITY : forming.t + TIMEFRAME_MS[this.#tf]
    const barMs = forming?.t ?? (newest === undefined ? (fromMs ?? 0) : newest.t + 1)
    const rows = Buffer.from(bars.map((bar) => `${JSON.stringify(bar)}\n`).join(''))
    const head = { event, channel: this.name, seq, ...(isLast !== undefined && { last: isLast }) }
    const next = { seq, barMs, state }
    return new Chunk(rows.length > 0 || isLast ? [{ head, rows, next }] : [], next)
  }
}
