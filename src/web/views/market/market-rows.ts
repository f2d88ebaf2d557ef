// The rows of one tab as the stream keeps them, and their order as it is shown. Values change in place at once; the order is
// renewed only when `reorder` is called, so that nothing jumps under the pointer.
import type { StreamRow } from '../../../schema/api/stream.ts'
import { LOW_COVERAGE_COUNT } from '../../../schema/xp.ts'

/** A column that the list can be sorted by. */
export const SORT_KEYS = {
  hot: (row: StreamRow) => row.hot_score,
  price: (row: StreamRow) => row.priceUsd,
  marketCap: (row: StreamRow) => row.usd_market_cap,
  volume: (row: StreamRow) => row.volume_24h_usd,
  liquidity: (row: StreamRow) => row.liquidity_usd,
  holders: (row: StreamRow) => row.holder_count,
  bonding: (row: StreamRow) => row.bonding_progress,
  created: (row: StreamRow) => row.created_timestamp,
  analyses: (row: StreamRow) => row.analysis_count,
} as const
export type SortKey = keyof typeof SORT_KEYS
export const isSortKey = (text: string): text is SortKey => text in SORT_KEYS

export interface ListFilter {
  search: string
  /** Tokens with fewer analyses than earn the bonus. */
  isLowCoverage: boolean
  isLive: boolean
}

/** Which way the last change of a price went, and when. */
export interface Move {
  direction: 1 | -1
  atMs: number
}

export class MarketRows {
  /** The rows in the order shown. */
  shown: StreamRow[] = []
  readonly moves = new Map<string, Move>()
  readonly #rowByMint = new Map<string, StreamRow>()
  #isInTab: (row: StreamRow) => boolean
  /** Rows of a snapshot that is not complete yet; null outside of one. */
  #incoming: Set<string> | null = null
  #changed = new Set<string>()

  /** @param isInTab a row that leaves its tab is sent once more; it is then dropped here. */
  constructor(isInTab: (row: StreamRow) => boolean) {
    this.#isInTab = isInTab
  }

  get size(): number {
    return this.#rowByMint.size
  }

  /** Rows that changed since the last `reorder`. */
  get changedCount(): number {
    return this.#changed.size
  }

  get(mint: string): StreamRow | undefined {
    return this.#rowByMint.get(mint)
  }

  applySnapshot(rows: readonly StreamRow[], isLast: boolean): void {
    this.#incoming ??= new Set()
    for (const row of rows) {
      this.#incoming.add(row.mint)
      this.#set(row)
    }
    if (!isLast) return
    for (const mint of this.#rowByMint.keys()) if (!this.#incoming.has(mint)) this.remove(mint)
    this.#incoming = null
  }

  applyChanges(rows: readonly StreamRow[], nowMs: number): void {
    for (const row of rows) {
      const before = this.#rowByMint.get(row.mint)
      if (before?.priceUsd != null && row.priceUsd != null && before.priceUsd !== row.priceUsd)
        this.moves.set(row.mint, { direction: row.priceUsd > before.priceUsd ? 1 : -1, atMs: nowMs })
      this.#set(row)
    }
  }

  remove(mint: string): void {
    this.#rowByMint.delete(mint)
    this.moves.delete(mint)
    this.#changed.add(mint)
  }

  /** Renews the order shown. */
  reorder(sort: SortKey, isDescending: boolean, filter: ListFilter): void {
    const key = SORT_KEYS[sort]
    const sign = isDescending ? -1 : 1
    const rows: { row: StreamRow; key: number }[] = []
    for (const row of this.#rowByMint.values()) {
      if (!matches(row, filter)) continue
      // Unknown values come last in both directions.
      rows.push({ row, key: key(row) ?? sign * Number.POSITIVE_INFINITY })
    }
    rows.sort((a, b) => sign * (a.key - b.key) || (a.row.mint < b.row.mint ? -1 : 1))
    this.shown = rows.map(({ row }) => row)
    this.#changed.clear()
  }

  /** Shows the newest values of the rows from index `first` to before `end`, in the order that is shown. */
  renew(first: number, end: number): void {
    for (const [at, row] of this.shown.slice(first, end).entries())
      this.shown[first + at] = this.#rowByMint.get(row.mint) ?? row
  }

  #set(row: StreamRow): void {
    this.#changed.add(row.mint)
    if (this.#isInTab(row)) this.#rowByMint.set(row.mint, row)
    else this.remove(row.mint)
  }
}

function matches(row: StreamRow, { search, isLowCoverage, isLive }: ListFilter): boolean {
  if (isLowCoverage && row.analysis_count >= LOW_COVERAGE_COUNT) return false
  if (isLive && !row.is_currently_live) return false
  if (search === '') return true
  const wanted = search.toLowerCase()
  return (
    row.mint.toLowerCase().startsWith(wanted) ||
    startsAtWord(row.name.toLowerCase(), wanted) ||
    startsAtWord(row.symbol.toLowerCase(), wanted)
  )
}

/** Whether one of the words of `text` begins so, as the server's own search has it. */
const startsAtWord = (text: string, wanted: string): boolean =>
  text.startsWith(wanted) || text.includes(` ${wanted}`)
