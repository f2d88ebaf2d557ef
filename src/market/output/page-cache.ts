// Pages of the market list as bytes. A row is turned into bytes once for each change that somebody reads, and a page joins the
// bytes of its rows. Lines are never written to again: a page that is being sent keeps showing its moment.
import { ownBytes } from '../../lib/bytes.ts'
import { dayFromMs } from '../bars/windows.ts'
import type { Rankings } from '../rankings/rankings.ts'
import type { MarketTime } from '../time/market-time.ts'
import type { TokenTable } from '../tokens/token-table.ts'
import type { Page, PageQuery, RowFields } from '../types.ts'
import type { FieldRows } from './field-rows.ts'
import { type RowText, renderOpenItem, rowText } from './json-row.ts'
import type { Projections } from './projections.ts'
import { RowPage, SMALL_ROWS_MAX } from './row-page.ts'

/** Small pages kept at once, and their bytes; at the maximum all are forgotten, which costs one join each. */
const PAGES_MAX = 256
const PAGES_BYTES_MAX = 32 * 1024 * 1024

interface CachedPage {
  page: RowPage
  seq: number
  /** What its rows and their order depend on besides `seq`. */
  state: string
}

interface LargePage extends CachedPage {
  key: string
}

/** What a page of given slots shows. */
export interface PageParts {
  total: number
  /** Position as of which the order is exact. */
  version: number
  /** Changes when time alone has changed the order. */
  orderVersion: number
  /** Position of the newest change, as of which the rows are. */
  seq: number
  fields: RowFields | null
  /** The last page of these positions, whose bytes serve again where its rows are the same. */
  earlier?: RowPage | undefined
}

export interface PageCacheSources {
  tokens: TokenTable
  rankings: Rankings
  projections: Projections
  fieldRows: FieldRows
  time: MarketTime
}

export class PageCache {
  readonly #tokens: TokenTable
  readonly #rankings: Rankings
  readonly #projections: Projections
  readonly #fieldRows: FieldRows
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

  constructor({ tokens, rankings, projections, fieldRows, time }: PageCacheSources) {
    this.#fieldRows = fieldRows
    this.#tokens = tokens
    this.#rankings = rankings
    this.#projections = projections
    this.#time = time
    this.#isCurrent = new Uint8Array(tokens.capacity)
  }

  /** @param seq position of the market's newest change. */
  page(query: PageQuery, seq: number): Page {
    const { tab, sort, order, offset, limit, fields = null } = query
    const key = `${tab} ${sort} ${order} ${offset} ${limit} ${fields?.key ?? ''}`
    const orderVersion = this.#rankings.versionOf(sort)
    const state = `${orderVersion} ${this.#rowState(fields)}`
    const isFresh = (cached: CachedPage) => cached.seq === seq && cached.state === state
    const small = this.#pages.get(key)
    if (small !== undefined && isFresh(small)) return small.page
    const large = this.#large
    if (large !== null && large.key === key && isFresh(large)) {
      large.page.share()
      return large.page
    }
    const ranking = this.#rankings.of(tab, sort)
    const slots = ranking.slice(offset, limit, order === 'desc')
    const parts = { total: ranking.size, version: seq, orderVersion, seq, fields, earlier: small?.page }
    const page = this.join(slots, parts)
    if (page.rowCount > SMALL_ROWS_MAX) {
      this.#forgetLarge()
      this.#large = { key, page, seq, state }
    } else {
      this.#keep(key, { page, seq, state }, small)
    }
    return page
  }

  /** What rows depend on besides their changes: where the windows are that they show. */
  #rowState(fields: RowFields | null): string {
    const { nowMs } = this.#time
    return fields === null
      ? dayFromMs(nowMs).toString(36)
      : `${fields.key} ${this.#fieldRows.windowState(fields, nowMs)}`
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
  prepare(slots: Uint32Array, rowsMax: number, fields: RowFields | null): boolean {
    this.#expireLines()
    let made = 0
    for (let row = 0; row < slots.length; row++) {
      if (this.#keptLine(slots[row], fields) !== null) continue
      if (made === rowsMax) return false
      this.#line(slots[row], fields)
      made++
    }
    return true
  }

  /** A page of these slots in this order. */
  join(slots: Uint32Array, { total, version, orderVersion, seq, fields, earlier }: PageParts): RowPage {
    this.#expireLines()
    const lines = new Array<Buffer>(slots.length)
    for (let row = 0; row < slots.length; row++) lines[row] = this.#line(slots[row], fields)
    const numbers = [version, seq, orderVersion].map((part) => part.toString(36))
    const contentVersion = [...numbers, this.#rowState(fields).replaceAll(/[^\w.]/g, '-')].join('-')
    const isCurrent = () => this.#areCurrent(slots, lines, fields)
    return new RowPage({ lines, total, version, contentVersion, isCurrent }, earlier)
  }

  /** Whether these lines are still those of their slots. */
  #areCurrent(slots: Uint32Array, lines: readonly Buffer[], fields: RowFields | null): boolean {
    for (let row = 0; row < slots.length; row++)
      if (this.#keptLine(slots[row], fields) !== lines[row]) return false
    return true
  }

  /**
   * These rows as NDJSON, each with its position as its last member. Their lines are not kept: a follower gets every change once,
   * and lines that nobody reads again would only burden the garbage collector.
   */
  joinWithSeq(slots: readonly number[], seqs: readonly number[], fields: RowFields | null): Buffer {
    let rows = ''
    for (let row = 0; row < slots.length; row++)
      rows += `${this.#render(slots[row], fields)},"seq":${seqs[row]}}\n`
    return Buffer.from(rows)
  }

  /** The 24-hour window moves with time, which changes every row without an event. */
  #expireLines(): void {
    const fromMs = dayFromMs(this.#time.nowMs)
    if (fromMs === this.#linesDayFromMs) return
    this.#isCurrent.fill(0)
    this.#linesDayFromMs = fromMs
  }

  /** The line of a row, where it is kept and shows the row as it is; else null. */
  #keptLine(slot: number, fields: RowFields | null): Buffer | null {
    if (fields !== null) return this.#fieldRows.kept(fields, slot, this.#time.nowMs)
    return this.#isCurrent[slot] === 1 ? (this.#lines[slot] ?? null) : null
  }

  #line(slot: number, fields: RowFields | null): Buffer {
    if (fields !== null) return this.#fieldRows.line(fields, slot, this.#time.nowMs)
    const kept = this.#keptLine(slot, null)
    if (kept !== null) return kept
    const made = ownBytes(`${this.#render(slot, null)}}\n`)
    this.#lines[slot] = made
    this.#isCurrent[slot] = 1
    return made
  }

  /** A row as JSON, without its closing brace. */
  #render(slot: number, fields: RowFields | null): string {
    if (fields !== null) return this.#fieldRows.open(fields, slot, this.#time.nowMs)
    this.#rowTexts[slot] ??= rowText(this.#tokens.metadata[slot])
    return renderOpenItem(this.#projections.item(slot, this.#time.nowMs), this.#rowTexts[slot])
  }
}
