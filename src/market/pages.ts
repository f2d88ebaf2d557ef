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
    const page = this.#join(query, seq, dayFromMs)
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

  #join(query: PageQuery, seq: number, dayFromMs: number): Page {
    const ranking = this.#rankings.of(query.tab, query.sort)
    const slots = ranking.slice(query.offset, query.limit, query.order === 'desc')
    const lines: Buffer[] = new Array(slots.length)
    let bytes = 0
    for (let row = 0; row < slots.length; row++) {
      lines[row] = this.line(slots[row], dayFromMs)
      bytes += lines[row].length
    }
    const ndjson = Buffer.allocUnsafeSlow(bytes)
    let at = 0
    for (const line of lines) {
      ndjson.set(line, at)
      at += line.length
    }
    return { ndjson, rowCount: slots.length, total: ranking.size, version: seq }
  }
}
