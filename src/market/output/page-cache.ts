// Pages of the market list as bytes. A row is turned into bytes once for each change that somebody reads, and a page joins the
// bytes of its rows. Lines are never written to again: a page that is being sent keeps showing its moment.
import { ownBytes } from '../../lib/bytes.ts'
import { dayFromMs } from '../bars/windows.ts'
import type { MarketTime } from '../market-time.ts'
import type { Rankings } from '../rankings/rankings.ts'
import type { TokenTable } from '../tokens/token-table.ts'
import type { Page, PageQuery } from '../types.ts'
import { type RowText, renderOpenItem, rowText } from './json-row.ts'
import type { Projections } from './projections.ts'
import { RowPage, SMALL_ROWS_MAX } from './row-page.ts'

/** Small pages kept at once, and their bytes; at the maximum all are forgotten, which costs one join each. */
const PAGES_MAX = 256
const PAGES_BYTES_MAX = 32 * 1024 * 1024

interface CachedPage {
  page: RowPage
  seq: number
  dayFromMs: number
}

interface LargePage extends CachedPage {
  key: string
}

export class PageCache {
  readonly #tokens: TokenTable
  readonly #rankings: Rankings
  readonly #projections: Projections
  readonly #time: MarketTime
  readonly #pages = new Map<string, CachedPage>()
  #pagesBytes = 0
  /** The newest large page; no other one is kept. */
  #large: LargePage | null = null
  /** By slot: the row as NDJSON, its newline included. */
  readonly #lines: (Buffer | undefined)[] = []
  /** By slot: 1 while the line shows the row as it is. One byte each, so that writers who reset it stay in the CPU's cache. */
  readonly #isCurrent: Uint8Array
  /** The 24-hour window that the current lines show. */
  #linesDayFromMs = 0
  readonly #rowTexts: (RowText | undefined)[] = []

  constructor(tokens: TokenTable, rankings: Rankings, projections: Projections, time: MarketTime) {
    this.#tokens = tokens
    this.#rankings = rankings
    this.#projections = projections
    this.#time = time
    this.#isCurrent = new Uint8Array(tokens.capacity)
  }

  /** @param seq position of the market's newest change. */
  page(query: PageQuery, seq: number): Page {
    const key = `${query.tab} ${query.sort} ${query.order} ${query.offset} ${query.limit}`
    const fromMs = dayFromMs(this.#time.nowMs)
    const isFresh = (cached: CachedPage) => cached.seq === seq && cached.dayFromMs === fromMs
    const small = this.#pages.get(key)
    if (small !== undefined && isFresh(small)) return small.page
    const large = this.#large
    if (large !== null && large.key === key && isFresh(large)) {
      large.page.share()
      return large.page
    }
    const ranking = this.#rankings.of(query.tab, query.sort)
    const slots = ranking.slice(query.offset, query.limit, query.order === 'desc')
    const page = this.join(slots, ranking.size, seq, seq, small?.page)
    if (page.rowCount > SMALL_ROWS_MAX) {
      this.#forgetLarge()
      this.#large = { key, page, seq, dayFromMs: fromMs }
    } else {
      this.#keep(key, { page, seq, dayFromMs: fromMs }, small)
    }
    return page
  }

  #keep(key: string, cached: CachedPage, replaced: CachedPage | undefined): void {
    if (this.#pages.size >= PAGES_MAX || this.#pagesBytes + cached.page.bytes > PAGES_BYTES_MAX) {
      this.#pages.clear()
      this.#pagesBytes = 0
    } else this.#pagesBytes -= replaced?.page.bytes ?? 0
    this.#pages.set(key, cached)
    this.#pagesBytes += cached.page.bytes
  }

  /** Frees the joined bytes of a large page that is out of date. */
  tidy(seq: number): void {
    if (this.#large !== null && this.#large.seq !== seq) this.#forgetLarge()
  }

  #forgetLarge(): void {
    this.#large?.page.unshare()
    this.#large = null
  }

  /** The row's values have changed. */
  changed(slot: number): void {
    this.#isCurrent[slot] = 0
  }

  /** The row's values have changed, its texts among them. */
  metadataChanged(slot: number): void {
    this.#rowTexts[slot] = undefined
    this.changed(slot)
  }

  /** The token was evicted. */
  forget(slot: number): void {
    this.#lines[slot] = undefined
    this.metadataChanged(slot)
  }

  /** Renders at most `rowsMax` of these rows that have no current line. @returns whether all have one now. */
  prepare(slots: Uint32Array, rowsMax: number): boolean {
    this.#expireLines()
    let made = 0
    for (let row = 0; row < slots.length; row++) {
      if (this.#isCurrent[slots[row]] === 1) continue
      if (made === rowsMax) return false
      this.#line(slots[row])
      made++
    }
    return true
  }

  /**
   * A page of these slots in this order.
   * @param version position as of which the order is exact.
   * @param seq position of the newest change, as of which the rows are.
   * @param earlier the last page of these positions, whose bytes serve again where its rows are the same.
   */
  join(slots: Uint32Array, total: number, version: number, seq: number, earlier?: RowPage): RowPage {
    this.#expireLines()
    const lines = new Array<Buffer>(slots.length)
    for (let row = 0; row < slots.length; row++) lines[row] = this.#line(slots[row])
    const contentVersion = [version, seq, this.#linesDayFromMs].map((part) => part.toString(36)).join('-')
    const isCurrent = () => this.#areCurrent(slots, lines)
    return new RowPage({ lines, total, version, contentVersion, isCurrent }, earlier)
  }

  /** Whether these lines are still those of their slots. */
  #areCurrent(slots: Uint32Array, lines: readonly Buffer[]): boolean {
    for (let row = 0; row < slots.length; row++) {
      const slot = slots[row]
      if (this.#isCurrent[slot] === 0 || this.#lines[slot] !== lines[row]) return false
    }
    return true
  }

  /**
   * These rows as NDJSON, each with its position as its last member. Their lines are not kept: a follower gets every change once,
   * and lines that nobody reads again would only burden the garbage collector.
   */
  joinWithSeq(slots: readonly number[], seqs: readonly number[]): Buffer {
    let rows = ''
    for (let row = 0; row < slots.length; row++) rows += `${this.#render(slots[row])},"seq":${seqs[row]}}\n`
    return Buffer.from(rows)
  }

  /** The 24-hour window moves with time, which changes every row without an event. */
  #expireLines(): void {
    const fromMs = dayFromMs(this.#time.nowMs)
    if (fromMs === this.#linesDayFromMs) return
    this.#isCurrent.fill(0)
    this.#linesDayFromMs = fromMs
  }

  #line(slot: number): Buffer {
    const kept = this.#lines[slot]
    if (kept !== undefined && this.#isCurrent[slot] === 1) return kept
    const made = ownBytes(`${this.#render(slot)}}\n`)
    this.#lines[slot] = made
    this.#isCurrent[slot] = 1
    return made
  }

  /** A row as JSON, without its closing brace. */
  #render(slot: number): string {
    this.#rowTexts[slot] ??= rowText(this.#tokens.metadata[slot])
    return renderOpenItem(this.#projections.item(slot, this.#time.nowMs), this.#rowTexts[slot])
  }
}
