import type { Market } from '../../market/market.ts'
import type { ChangePart, PageQuery, RowFields } from '../../market/types.ts'
import type { Tab } from '../../schema/vocabulary.ts'
import { FOLLOW_ROWS_MAX } from '../limits.ts'
import { type Channel, leftMessageHead, type StreamSnapshot, singleSnapshot } from './channel.ts'
import { Chunk, ChunkCache, type Message, positionAt, type StreamPosition } from './chunk.ts'

/** The rows of the market list that a stream begins with. */
export type MarketRequest = Omit<PageQuery, 'fields'>

/** How many rows a stream begins with: none if it resumes from `since`, all of its tab if that position is lost. */
export function countSnapshotRows(market: Market, request: MarketRequest & { since: number | null }): number {
  const { tab, limit, offset, since } = request
  const { total } = market.page({ ...request, limit: 1 })
  if (since === null) return Math.max(0, Math.min(limit, total - offset))
  return new MarketChannel(market, tab).isLost({ seq: since }) ? total : 0
}

/**
 * A tab of the market list: every row that changes, each at its newest. A row that leaves the tab is sent once more, and for a
 * token that was evicted a message that it left.
 */
export class MarketChannel implements Channel {
  readonly name: string
  readonly key: string
  readonly isPaced = false
  readonly mint = null
  readonly #market: Market
  readonly #tab: Tab
  readonly #fields: RowFields | null
  readonly #chunks = new ChunkCache()

  /** @param fields what its rows have; null: all that rows have by themselves */
  constructor(market: Market, tab: Tab, fields: RowFields | null = null) {
    this.name = `market:${tab}`
    this.key = fields === null ? this.name : `${this.name} ${fields.key}`
    this.#fields = fields
    this.#market = market
    this.#tab = tab
  }

  isLost({ seq }: Pick<StreamPosition, 'seq'>): boolean {
    return seq < this.#market.oldestSince || seq > this.#market.seq
  }

  changes({ seq }: StreamPosition, asOf: number): Chunk | null {
    if (seq >= asOf) return null
    return this.#chunks.get(asOf, seq, () => {
      const { parts, nextSeq } = this.#market.changesSince(seq, this.#tab, FOLLOW_ROWS_MAX, this.#fields)
      const messages = parts.map((part) => this.#changeMessage(part))
      return new Chunk(messages, positionAt(nextSeq))
    })
  }

  #changeMessage(part: ChangePart): Message {
    const { seq } = part
    const next = positionAt(seq)
    if ('left' in part) return { head: leftMessageHead(this.name, part.left, seq), rows: null, next }
    return { head: { event: 'changes', channel: this.name, seq }, rows: part.rows, next }
  }

  /** The rows of a page, which may be the whole list: in the order of now, each as it is when it is sent. */
  open({ tab, sort, order, offset, limit }: MarketRequest): StreamSnapshot {
    const { seq } = this.#market
    if (limit <= FOLLOW_ROWS_MAX) {
      const page = this.#market.page({ tab, sort, order, offset, limit, fields: this.#fields })
      return singleSnapshot(this.#snapshotChunk(page.ndjson, seq, true))
    }
    const list = this.#market.freeze(tab, sort)
    const end = Math.min(list.size, offset + limit)
    let at = offset
    return {
      next: () => {
        const { ndjson } = list.page(
          order,
          at,
          Math.max(0, Math.min(FOLLOW_ROWS_MAX, end - at)),
          this.#fields,
        )
        at += FOLLOW_ROWS_MAX
        return { chunk: this.#snapshotChunk(ndjson, seq, at >= end), isLast: at >= end }
      },
    }
  }

  reopen(): StreamSnapshot {
    const limit = Math.max(1, this.#market.stats().tokens)
    return this.open({ tab: this.#tab, sort: 'hot', order: 'desc', offset: 0, limit })
  }

  /** Only the last chunk has a `seq`: a client cannot resume before it has all rows. */
  #snapshotChunk(rows: Buffer, seq: number, isLast: boolean): Chunk {
    const head = { event: 'snapshot', channel: this.name, ...(isLast && { seq }), last: isLast }
    return new Chunk([{ head, rows, next: positionAt(seq) }], positionAt(seq))
  }
}
