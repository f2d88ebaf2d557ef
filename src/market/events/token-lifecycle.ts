// How a token's slot is taken, changed and given to another token. Before a token changes, its values are recorded as the
// version that ends now.
import type { BarCascade } from '../bars/bar-cascade.ts'
import type { ListWindowName } from '../bars/limits.ts'
import type { WalletWindows } from '../bars/wallet-windows.ts'
import { watermarkMs } from '../bars/watermark.ts'
import { dayMovedAtMs, type Windows, windowFromMs } from '../bars/windows.ts'
import type { DataPointCache } from '../output/datapoint-cache.ts'
import { type Projections, toSnapshot } from '../output/projections.ts'
import type { RowChanges } from '../output/row-changes.ts'
import { KEY_UNKNOWN } from '../rankings/chunk.ts'
import { HOT_SCORE_NONE } from '../rankings/hot-score.ts'
import type { MintOrder } from '../rankings/mint-order.ts'
import type { Rankings } from '../rankings/rankings.ts'
import type { MarketTime } from '../time/market-time.ts'
import type { AnalysisCounts } from '../tokens/analysis-counts.ts'
import type { EvictedMints } from '../tokens/evicted-mints.ts'
import { VERSION_RETENTION_MS } from '../tokens/limits.ts'
import type { RecentTrades } from '../tokens/recent-trades.ts'
import type { SearchIndex } from '../tokens/search-index.ts'
import { rowIndex, type TokenTable } from '../tokens/token-table.ts'
import type { VersionHistory } from '../tokens/version-history.ts'

/** Everything that holds something of a token, by its slot or its mint. */
export interface TokenLifecycleParts {
  tokens: TokenTable
  time: MarketTime
  bars: BarCascade
  windows: Windows
  wallets: WalletWindows
  recentTrades: RecentTrades
  versions: VersionHistory
  evictedMints: EvictedMints
  analysisCounts: AnalysisCounts
  searchIndex: SearchIndex
  mintOrder: MintOrder
  rankings: Rankings
  projections: Projections
  datapoints: DataPointCache
  changes: RowChanges
}

export class TokenLifecycle {
  /** Tokens that gave way to others so far. */
  evictedCount = 0
  readonly #parts: TokenLifecycleParts
  // Used by every trade.
  readonly #tokens: TokenTable
  readonly #time: MarketTime
  readonly #windows: Windows
  readonly #versions: VersionHistory
  readonly #changes: RowChanges
  readonly #projections: Projections

  constructor(parts: TokenLifecycleParts) {
    this.#parts = parts
    this.#tokens = parts.tokens
    this.#time = parts.time
    this.#windows = parts.windows
    this.#versions = parts.versions
    this.#changes = parts.changes
    this.#projections = parts.projections
  }

  /** The slot of a mint that an event is about to change; a mint that is not held takes one. */
  beginChange(mint: string): number {
    const slot = this.#tokens.slotOf(mint)
    if (slot === -1) return this.create(mint)
    this.recordVersion(slot)
    return slot
  }

  /** An event has changed the token: its row is new, and the token is the last to be evicted. */
  endChange(slot: number): void {
    this.#tokens.touch(slot)
    this.#changes.record(slot)
  }

  /** Gives a mint that is not held a slot; where all are taken, the token that was touched longest ago is evicted. */
  create(mint: string): number {
    const { rankings, mintOrder, searchIndex, analysisCounts, evictedMints } = this.#parts
    const tokens = this.#tokens
    const slot = tokens.isFull ? this.#evict(tokens.coldest()) : tokens.slotsUsed
    tokens.add(mint, slot)
    mintOrder.set(slot, mint)
    searchIndex.changed(slot)
    tokens.analysisCounts[slot] = analysisCounts.get(mint)
    const { columns } = tokens
    const row = rowIndex(slot)
    const { eventMs, nowMs } = this.#time
    columns.firstSeenAtMs[row] = eventMs
    columns.versionAtMs[row] = nowMs
    columns.firstSeenSeq[row] = this.#changes.seq + 1
    // A trade after its eviction would have brought it back, so only bars of the time when it was held may lack trades.
    this.#versions.admit(slot, mint)
    const heldToMs = evictedMints.take(mint)
    columns.barsWholeFromMs[row] = heldToMs === 0 ? 0 : heldToMs + 1
    this.#changes.clear(slot)
    rankings.add(slot, { hot: HOT_SCORE_NONE, market_cap: KEY_UNKNOWN, created_timestamp: KEY_UNKNOWN })
    return slot
  }

  /** The token of the slot gives way. @returns the slot, which is to be given to another at once */
  #evict(slot: number): number {
    const { bars, wallets, recentTrades, evictedMints } = this.#parts
    const tokens = this.#tokens
    const { mint } = tokens.metadata[slot]
    this.recordVersion(slot)
    this.#changes.recordEviction(slot)
    bars.emitEnded(slot, watermarkMs(tokens.columns, slot, this.#time))
    bars.clear(slot)
    this.#windows.clear(slot)
    wallets.clear(slot)
    this.#versions.evict(slot, mint)
    recentTrades.clear(slot)
    evictedMints.add(mint, this.#time.nowMs)
    this.evictedCount++
    return slot
  }

  /** Records the token's present values as the version that ends now. */
  recordVersion(slot: number): void {
    this.settleWindow(slot)
    const { datapoints } = this.#parts
    const { nowMs } = this.#time
    if (datapoints.isServed(slot, nowMs, this.#changes.changedSeq(slot)))
      datapoints.keepServed(
        this.#tokens.metadata[slot].mint,
        nowMs,
        toSnapshot(this.#projections.compare(slot, nowMs), 0),
      )
    this.#endVersion(slot, nowMs, nowMs)
  }

  /**
   * Moves the token's 24-hour sums to the window of the event. What was shown before the window of now moved is a version of its own,
   * which is recorded here: at the next change, or before bars are lost from which its sums could be made again.
   */
  settleWindow(slot: number): void {
    const { nowMs, eventMs } = this.#time
    if (this.#windows.isDayOf(slot, nowMs)) return
    const movedAtMs = dayMovedAtMs(nowMs)
    if (this.#tokens.columns.versionAtMs[rowIndex(slot)] < movedAtMs)
      this.#endVersion(slot, movedAtMs - 1, movedAtMs)
    if (!this.#windows.isDayOf(slot, eventMs)) this.#windows.moveTo(slot, eventMs)
  }

  /** Another token takes bars of a window from this one, which keeps those from `keptFromMs` on: its row may show another figure then. */
  loseBars(slot: number, window: ListWindowName, keptFromMs: number): void {
    if (window === '24h') this.settleWindow(slot)
    // A figure follows from the bars of its window, and a change of price from the last one before it, too.
    if (keptFromMs >= windowFromMs(window, this.#time.nowMs)) this.#changes.record(slot)
  }

  /** Records the values as of `atMs` as the version that ends at `endMs`. */
  #endVersion(slot: number, atMs: number, endMs: number): void {
    const { versionAtMs } = this.#tokens.columns
    const row = rowIndex(slot)
    const isKept = endMs > this.#time.nowMs - VERSION_RETENTION_MS
    if (isKept) this.#versions.push(slot, this.#projections.compare(slot, atMs), versionAtMs[row], endMs)
    versionAtMs[row] = endMs
  }
}
