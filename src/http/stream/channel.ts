// In: the market, and where a subscriber stands. Out: the rows that it has not seen: of a tab, of one token, or of one
// token's bars. What subscribers at the same place are sent is made once, and encoded once for each format. Never keeps
// a row, nor knows a subscriber.
import type { ChangePart, MarketDoor } from '../../market/types.ts'
import { TIMEFRAME_MS, type Timeframe } from '../../schema/bar.ts'
import type { Order, Sort, Tab } from '../../schema/vocabulary.ts'
import { controlFrame, rowsFrame, type StreamFormat } from '../encode/stream-frame.ts'
import { BARS_LIMIT_MAX, FOLLOW_PIECES_MAX, FOLLOW_ROWS_MAX } from '../limits.ts'

/** Where a subscriber stands. */
export interface Cursor {
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
  next: Cursor
}

/** Bytes that are sent at once, and where their reader stands then. */
export interface Frame {
  bytes: Buffer
  next: Cursor
}

/** Messages that lead from one cursor to the next, and their bytes in the formats asked for so far. */
export class Piece {
  readonly next: Cursor
  readonly #messages: readonly Message[]
  readonly #frames = new Map<StreamFormat, readonly Frame[]>()

  constructor(messages: readonly Message[], next: Cursor) {
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
export interface Opening {
  /** The next piece; its `isLast` ends the opening. */
  next(): { piece: Piece; isLast: boolean }
}

export interface Channel {
  readonly name: string
  /** The token whose changes alone concern it; null for a tab. */
  readonly mint: string | null
  /** True when changes after the cursor are not known: it is of an earlier run, too old, or of no run at all. */
  isLost(cursor: Pick<Cursor, 'seq'>): boolean
  /** What changed after the cursor, or a first part of it; null when nothing did. */
  changes(cursor: Cursor): Piece | null
  /** Every row, anew. */
  reopen(): Opening
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

const opening = (...pieces: Piece[]): Opening => ({
  next: () => ({ piece: pieces.shift()!, isLast: pieces.length === 0 }),
})

/** What was made for followers at the same place, while nothing changes. */
class Pieces {
  #bySeq = new Map<number, Piece>()
  #state: number | string = -1

  /** The piece of that place, made when it is not there. `state` tells when all are out of date. */
  at(state: number | string, place: number, make: () => Piece): Piece {
    if (state !== this.#state || this.#bySeq.size >= FOLLOW_PIECES_MAX) this.#bySeq.clear()
    this.#state = state
    let piece = this.#bySeq.get(place)
    if (piece === undefined) {
      piece = make()
      this.#bySeq.set(place, piece)
    }
    return piece
  }
}

const atSeq = (seq: number): Cursor => ({ seq, barMs: 0, state: '' })

/** Rows that a stream opens with: none where it goes on from a number, and all of its tab where that is lost. */
export function openingRows(market: MarketDoor, request: MarketRequest & { since: number | null }): number {
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
  readonly #market: MarketDoor
  readonly #tab: Tab
  readonly #pieces = new Pieces()

  constructor(market: MarketDoor, tab: Tab) {
    this.name = `market:${tab}`
    this.#market = market
    this.#tab = tab
  }

  isLost({ seq }: Pick<Cursor, 'seq'>): boolean {
    return seq < this.#market.oldestSince || seq > this.#market.seq
  }

  changes({ seq }: Cursor): Piece | null {
    if (seq === this.#market.seq) return null
    return this.#pieces.at(this.#market.seq, seq, () => {
      const { parts, nextSeq } = this.#market.changesSince(seq, this.#tab, FOLLOW_ROWS_MAX)
      return new Piece(
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
  open({ tab, sort, order, offset, limit }: MarketRequest): Opening {
    const { seq } = this.#market
    if (limit <= FOLLOW_ROWS_MAX) {
      const page = this.#market.page({ tab, sort, order, offset, limit })
      return opening(this.#snapshot(page.ndjson, seq, true))
    }
    const list = this.#market.freeze(tab, sort)
    const end = Math.min(list.size, offset + limit)
    let at = offset
    return {
      next: () => {
        const { ndjson } = list.page(order, at, Math.max(0, Math.min(FOLLOW_ROWS_MAX, end - at)))
        at += FOLLOW_ROWS_MAX
        return { piece: this.#snapshot(ndjson, seq, at >= end), isLast: at >= end }
      },
    }
  }

  reopen(): Opening {
    const limit = Math.max(1, this.#market.stats().tokens)
    return this.open({ tab: this.#tab, sort: 'hot', order: 'desc', offset: 0, limit })
  }

  hasMoved(): boolean {
    return false
  }

  /** Who has not been sent the last rows has no position to go on from. */
  #snapshot(rows: Buffer, seq: number, isLast: boolean): Piece {
    const head = { event: 'snapshot', channel: this.name, ...(isLast && { seq }), last: isLast }
    return new Piece([{ head, rows, next: atSeq(seq) }], atSeq(seq))
  }
}

/** Said of a token that is gone. */
const leftHead = (channel: string, mint: string, seq: number) => ({ event: 'left', channel, mint, seq })
/** State of a cursor whose owner has been told that. */
const LEFT = 'left'

function leftPiece(channel: string, mint: string, { barMs }: Cursor, seq: number): Piece {
  const next = { seq, barMs, state: LEFT }
  return new Piece([{ head: leftHead(channel, mint, seq), rows: null, next }], next)
}

const NEWLINE = Buffer.from('\n')

/** One token: its DataPoint, at each change of its row, and once that it left when it was evicted. */
export class TokenChannel implements Channel {
  readonly name: string
  readonly mint: string
  readonly #market: MarketDoor
  readonly #pieces = new Pieces()

  constructor(market: MarketDoor, mint: string) {
    this.name = `token:${mint}`
    this.mint = mint
    this.#market = market
  }

  /** Only the newest DataPoint counts, so within a run no gap is too wide. */
  isLost({ seq }: Pick<Cursor, 'seq'>): boolean {
    return seq < this.#market.firstSeq || seq > this.#market.seq
  }

  changes(cursor: Cursor): Piece | null {
    if (!this.#market.has(this.mint)) {
      if (cursor.state === LEFT) return null
      return leftPiece(this.name, this.mint, cursor, this.#market.seq)
    }
    const changedSeq = this.#market.changedSeq(this.mint)
    if (changedSeq <= cursor.seq) return null
    return this.#pieces.at(changedSeq, 0, () => this.#piece('changes'))
  }

  reopen(): Opening {
    return opening(this.#piece('snapshot', true))
  }

  hasMoved(): boolean {
    return false
  }

  #piece(event: string, isLast?: boolean): Piece {
    const { seq } = this.#market
    const found = this.#market.datapointJson(this.mint)
    const rows = found === null ? Buffer.alloc(0) : Buffer.concat([found.json, NEWLINE])
    const head = { event, channel: this.name, seq, ...(isLast !== undefined && { last: isLast }) }
    return new Piece([{ head, rows, next: atSeq(seq) }], atSeq(seq))
  }
}

/** Bars of the finest timeframe that may be unclosed at once: a token's grace for late trades, and some more. */
const FORMING_BARS = 16

/** Bars of one token: after the first ones, every bar that changed or closed, and every new one; and once that the token
 *  left when it was evicted. */
export class BarsChannel implements Channel {
  readonly name: string
  readonly mint: string
  readonly #market: MarketDoor
  readonly #tf: Timeframe
  readonly #pieces = new Pieces()
  /** When the first bar that was sent unclosed ends: from then on time alone may close it. */
  #endMs = Number.POSITIVE_INFINITY
  #seen = { seq: -1, timeMs: -1, state: '' }

  constructor(market: MarketDoor, mint: string, tf: Timeframe) {
    this.name = `ohlc:${mint}:${tf}`
    this.mint = mint
    this.#market = market
    this.#tf = tf
  }

  /** Bars are found again by their time, so nothing is lost. */
  isLost(): boolean {
    return false
  }

  changes(cursor: Cursor): Piece | null {
    const { barMs, state } = cursor
    if (!this.#market.has(this.mint)) {
      this.#endMs = Number.POSITIVE_INFINITY
      return state === LEFT ? null : leftPiece(this.name, this.mint, cursor, this.#market.seq)
    }
    const now = this.#state()
    if (state === now) return null
    return this.#pieces.at(now, barMs, () => this.#piece('changes', now, barMs, BARS_LIMIT_MAX))
  }

  /** The newest bars, from `fromMs` on when that is not null. */
  open(limit: number, fromMs: number | null): Opening {
    return opening(this.#piece('snapshot', this.#state(), fromMs, limit, true))
  }

  reopen(): Opening {
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

  #piece(event: string, state: string, fromMs: number | null, limit: number, isLast?: boolean): Piece {
    const { seq } = this.#market
    const bars = this.#bars(limit, fromMs)?.bars ?? []
    const newest = bars[bars.length - 1]
    const forming = bars.find((bar) => !bar.closed)
    this.#endMs = forming === undefined ? Number.POSITIVE_INFINITY : forming.t + TIMEFRAME_MS[this.#tf]
    const barMs = forming?.t ?? (newest === undefined ? (fromMs ?? 0) : newest.t + 1)
    const rows = Buffer.from(bars.map((bar) => `${JSON.stringify(bar)}\n`).join(''))
    const head = { event, channel: this.name, seq, ...(isLast !== undefined && { last: isLast }) }
    const next = { seq, barMs, state }
    return new Piece(rows.length > 0 || isLast ? [{ head, rows, next }] : [], next)
  }
}
