// In: rankings, and which rows changed. Out: pages as bytes. A row is made into bytes once for each change that
// somebody reads; a page is those bytes, joined when asked, kept until anything changes. Never stringifies an unchanged
// row, and never writes to one: a page stands for its moment while it is being sent.
import type { MarketItem } from '../../schema/market-item.ts'
import { dayFrom } from '../bars/windows.ts'
import type { Rankings } from '../rankings/rankings.ts'
import type { TokenMetadata } from '../tokens/token-table.ts'
import type { Page, PageQuery } from '../types.ts'
import { type RowText, renderOpenItem, rowText } from './json-row.ts'

/** Pages kept at once, and their bytes; at the maximum all are forgotten, which costs one join each. */
const PAGES_MAX = 256
const PAGES_BYTES_MAX = 32 * 1024 * 1024
/** Of larger pages the newest alone is kept. */
const SMALL_ROWS_MAX = 1_000

export interface RowSource {
  readonly tokensMax: number
  item(slot: number): MarketItem
  metadata(slot: number): TokenMetadata
}

class RowPage implements Page {
  readonly lines: readonly Buffer[]
  readonly bytes: number
  readonly total: number
  readonly version: number
  readonly contentVersion: string
  #ndjson: Buffer | undefined

  constructor(
    lines: readonly Buffer[],
    bytes: number,
    total: number,
    version: number,
    contentVersion: string,
  ) {
    this.lines = lines
    this.bytes = bytes
    this.total = total
    this.version = version
    this.contentVersion = contentVersion
  }

  get rowCount(): number {
    return this.lines.length
  }

  get ndjson(): Buffer {
    if (this.#ndjson !== undefined) return this.#ndjson
    const joined = concat(this.lines, this.bytes)
    if (this.rowCount <= SMALL_ROWS_MAX) this.#ndjson = joined
    return joined
  }

  get joined(): Buffer | null {
    return this.#ndjson ?? null
  }

  /** Several ask for a large page: from now on they share one copy of it, as long as it is the newest. */
  share(): void {
    this.#ndjson ??= concat(this.lines, this.bytes)
  }

  /** The page is out of date: those who are still reading it go on line by line. */
  unshare(): void {
    this.#ndjson = undefined
  }
}

interface CachedPage {
  page: RowPage
  seq: number
  dayFromMs: number
}

interface LargePage extends CachedPage {
  key: string
}

export class PageCache {
  #rankings: Rankings
  #source: RowSource
  #pages = new Map<string, CachedPage>()
  #pagesBytes = 0
  #large: LargePage | null = null
  #lines: (Buffer | undefined)[] = []
  /** By slot: 1 while its line says what the row is. One byte, so that a writer's note of it stays in the cache. */
  readonly #isCurrent: Uint8Array
  #linesDayFromMs = 0
  #metadata: (RowText | undefined)[] = []

  constructor(rankings: Rankings, source: RowSource) {
    this.#rankings = rankings
    this.#source = source
    this.#isCurrent = new Uint8Array(source.tokensMax)
  }

  page(query: PageQuery, seq: number, timeMs: number): Page {
    const key = `${query.tab} ${query.sort} ${query.order} ${query.offset} ${query.limit}`
    const dayFromMs = dayFrom(timeMs)
    const isKept = (kept: CachedPage) => kept.seq === seq && kept.dayFromMs === dayFromMs
    const small = this.#pages.get(key)
    if (small !== undefined && isKept(small)) return small.page
    const large = this.#large
    if (large !== null && large.key === key && isKept(large)) {
      large.page.share()
      return large.page
    }
    const ranking = this.#rankings.of(query.tab, query.sort)
    const slots = ranking.slice(query.offset, query.limit, query.order === 'desc')
    const page = this.join(slots, ranking.size, seq, seq, timeMs)
    if (page.rowCount > SMALL_ROWS_MAX) {
      this.#forgetLarge()
      this.#large = { key, page, seq, dayFromMs }
    } else {
      this.#keep(key, { page, seq, dayFromMs }, small)
    }
    return page
  }

  #keep(key: string, kept: CachedPage, replaced: CachedPage | undefined): void {
    if (this.#pages.size >= PAGES_MAX || this.#pagesBytes + kept.page.bytes > PAGES_BYTES_MAX) {
      this.#pages.clear()
      this.#pagesBytes = 0
    } else this.#pagesBytes -= replaced?.page.bytes ?? 0
    this.#pages.set(key, kept)
    this.#pagesBytes += kept.page.bytes
  }

  /** Lets go of the memory of what nobody will be given again. */
  tidy(seq: number): void {
    if (this.#large !== null && this.#large.seq !== seq) this.#forgetLarge()
  }

  #forgetLarge(): void {
    this.#large?.page.unshare()
    this.#large = null
  }

  /** The row of a token as NDJSON, its newline included. Shared: never written to. */
  line(slot: number, dayFromMs: number): Buffer {
    if (this.#isMade(slot, dayFromMs)) return this.#lines[slot]!
    const made = ownBytes(`${this.#row(slot)}}\n`)
    this.#lines[slot] = made
    this.#isCurrent[slot] = 1
    return made
  }

  /** Whether the line of a token says what its row is. */
  #isMade(slot: number, dayFromMs: number): boolean {
    // The 24-hour window moves with time, without a change of the row.
    if (dayFromMs !== this.#linesDayFromMs) {
      this.#isCurrent.fill(0)
      this.#linesDayFromMs = dayFromMs
    }
    return this.#isCurrent[slot] === 1
  }

  /** A row is no longer what its line says. */
  changed(slot: number): void {
    this.#isCurrent[slot] = 0
  }

  metadataChanged(slot: number): void {
    this.#metadata[slot] = undefined
    this.changed(slot)
  }

  forget(slot: number): void {
    this.#lines[slot] = undefined
    this.#metadata[slot] = undefined
    this.changed(slot)
  }

  /** Makes the lines of these slots that are not made, at most `rowsMax`. @returns whether all are made now. */
  prepare(slots: Uint32Array, timeMs: number, rowsMax: number): boolean {
    const dayFromMs = dayFrom(timeMs)
    let made = 0
    for (let row = 0; row < slots.length; row++) {
      if (this.#isMade(slots[row], dayFromMs)) continue
      if (made === rowsMax) return false
      this.line(slots[row], dayFromMs)
      made++
    }
    return true
  }

  /** A page of these slots, in this order, which is that of `version`; the rows are those of `seq`. */
  join(slots: Uint32Array, total: number, version: number, seq: number, timeMs: number): RowPage {
    const dayFromMs = dayFrom(timeMs)
    const lines = new Array<Buffer>(slots.length)
    let bytes = 0
    for (let row = 0; row < slots.length; row++) {
      lines[row] = this.line(slots[row], dayFromMs)
      bytes += lines[row].length
    }
    const contentVersion = [version, seq, dayFromMs].map((part) => part.toString(36)).join('-')
    return new RowPage(lines, bytes, total, version, contentVersion)
  }

  /**
   * These rows, each with its position as its last member. Their lines are not kept: who follows gets every change once,
   * and a line that nobody asks for again would only live long enough to be a burden.
   */
  joinWithSeq(slots: readonly number[], seqs: readonly number[]): Buffer {
    let rows = ''
    for (let row = 0; row < slots.length; row++) rows += `${this.#row(slots[row])},"seq":${seqs[row]}}\n`
    return Buffer.from(rows)
  }

  /** A row without its closing brace. */
  #row(slot: number): string {
    this.#metadata[slot] ??= rowText(this.#source.metadata(slot))
    return renderOpenItem(this.#source.item(slot), this.#metadata[slot])
  }
}

/** A text's bytes in memory of their own: a line that is kept for hours must not pin Node's pool of small buffers. */
function ownBytes(text: string): Buffer {
  const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(text))
  bytes.write(text)
  return bytes
}

/** Joined in memory of their own: a kept page must not pin a shared pool. */
function concat(parts: readonly Buffer[], bytes: number): Buffer {
  const joined = Buffer.allocUnsafeSlow(bytes)
  let at = 0
  for (const part of parts) {
    joined.set(part, at)
    at += part.length
  }
  return joined
}
