// In: rankings, and which rows changed. Out: pages as bytes. A row is made into bytes once for each change that
// somebody reads; a page is those bytes joined, kept until anything changes. Never stringifies an unchanged row.
import type { MarketItem } from '../schema/market-item.ts'
import type { Rankings } from './rankings.ts'
import { type RowText, renderItem, rowText } from './render.ts'
import type { TokenText } from './tokens.ts'
import type { Page, PageQuery } from './types.ts'
import { dayFrom } from './windows.ts'

/** Pages kept at once; at the maximum all are forgotten, which costs one join each. */
const PAGES_MAX = 256
/** Larger pages are made anew each time rather than kept. */
const KEPT_ROWS_MAX = 1_000

export interface RowSource {
  item(slot: number): MarketItem
  words(slot: number): TokenText
  /** By slot: the sequence number of the row's last change. */
  changedSeq: Float64Array
}

interface KeptPage {
  page: Page
  seq: number
  dayFromMs: number
}

export class PageCache {
  #rankings: Rankings
  #source: RowSource
  #pages = new Map<string, KeptPage>()
  #lines: (Buffer | undefined)[] = []
  #lineSeq: number[] = []
  #lineDay: number[] = []
  #words: (RowText | undefined)[] = []

  constructor(rankings: Rankings, source: RowSource) {
    this.#rankings = rankings
    this.#source = source
  }

  page(query: PageQuery, seq: number, timeMs: number): Page {
    const key = `${query.tab} ${query.sort} ${query.order} ${query.offset} ${query.limit}`
    const kept = this.#pages.get(key)
    const dayFromMs = dayFrom(timeMs)
    if (kept !== undefined && kept.seq === seq && kept.dayFromMs === dayFromMs) return kept.page
    const ranking = this.#rankings.of(query.tab, query.sort)
    const slots = ranking.slice(query.offset, query.limit, query.order === 'desc')
    const page = this.join(slots, ranking.size, seq, timeMs)
    if (page.rowCount <= KEPT_ROWS_MAX) {
      if (this.#pages.size >= PAGES_MAX) this.#pages.clear()
      this.#pages.set(key, { page, seq, dayFromMs })
    }
    return page
  }

  /** The row of a token as NDJSON, its newline included. Shared: never written to. */
  line(slot: number, dayFromMs: number): Buffer {
    const line = this.#lines[slot]
    // The 24-hour window moves with time, without a change of the row.
    if (
      line !== undefined &&
      this.#lineSeq[slot] === this.#source.changedSeq[slot] &&
      this.#lineDay[slot] === dayFromMs
    )
      return line
    this.#words[slot] ??= rowText(this.#source.words(slot))
    const made = Buffer.from(`${renderItem(this.#source.item(slot), this.#words[slot])}\n`)
    this.#lines[slot] = made
    this.#lineSeq[slot] = this.#source.changedSeq[slot]
    this.#lineDay[slot] = dayFromMs
    return made
  }

  wordsChanged(slot: number): void {
    this.#words[slot] = undefined
  }

  forget(slot: number): void {
    this.#lines[slot] = undefined
    this.#words[slot] = undefined
  }

  /** A page of these slots, in this order. */
  join(slots: Iterable<number>, total: number, version: number, timeMs: number): Page {
    const dayFromMs = dayFrom(timeMs)
    const lines = Array.from(slots, (slot) => this.line(slot, dayFromMs))
    return { ndjson: concat(lines), rowCount: lines.length, total, version }
  }

  /** These rows, each with the number of its last change as its last member. */
  joinWithSeq(slots: Iterable<number>, timeMs: number): Buffer {
    const dayFromMs = dayFrom(timeMs)
    const parts: Buffer[] = []
    for (const slot of slots) {
      const line = this.line(slot, dayFromMs)
      parts.push(
        line.subarray(0, line.length - ROW_END_BYTES),
        Buffer.from(`,"seq":${this.#source.changedSeq[slot]}}\n`),
      )
    }
    return concat(parts)
  }
}

/** A row ends in a brace and a newline. */
const ROW_END_BYTES = 2

/** Joined in memory of their own: a kept page must not pin a shared pool. */
function concat(parts: readonly Buffer[]): Buffer {
  let bytes = 0
  for (const part of parts) bytes += part.length
  const joined = Buffer.allocUnsafeSlow(bytes)
  let at = 0
  for (const part of parts) {
    joined.set(part, at)
    at += part.length
  }
  return joined
}
