// The engine's façade: events go to events/event-writer.ts, which is its only writer; reads go to the parts that hold the answers.

import { type ClosedBar, TIMEFRAMES } from '../schema/bar.ts'
import type { DataPoint, Enriched, SnapshotValues } from '../schema/datapoint.ts'
import type { EventRejection, MarketEvent } from '../schema/event.ts'
import type { MarketItem } from '../schema/market-item.ts'
import type { Sort, Tab } from '../schema/vocabulary.ts'
import { BarCascade, type BarCascadeOptions } from './bars/bar-cascade.ts'
import { ColumnBuffer, readBars, readColumns } from './bars/bar-query.ts'
import { BarTextCache } from './bars/bar-text.ts'
import { ClosedBarSweep, copyClosedBar } from './bars/closed-bar.ts'
import { watermarkMs } from './bars/watermark.ts'
import { Windows } from './bars/windows.ts'
import { EventWriter } from './events/event-writer.ts'
import { TradeWriter } from './events/trade-writer.ts'
import {
  BAR_COLUMNS_KEPT,
  CHANGE_LOG_ENTRIES_MAX,
  EVICTIONS_MAX,
  MINTS_KNOWN_MIN,
  MINTS_KNOWN_PER_TOKEN,
  NEW_WINDOW_MS_DEFAULT,
  SOL_PRICE_MAX_AGE_MS_DEFAULT,
  TOKENS_MAX_DEFAULT,
  VERSION_RETENTION_MS,
  VERSIONS_MAX_DEFAULT,
} from './limits.ts'
import { MarketTime } from './market-time.ts'
import { ChangeLog } from './output/change-log.ts'
import { DataPointCache } from './output/datapoint-cache.ts'
import { FrozenRanking } from './output/frozen-ranking.ts'
import { filterRanking } from './output/list-filter.ts'
import { PageCache } from './output/page-cache.ts'
import { Projections, toSnapshot } from './output/projections.ts'
import { RowChanges } from './output/row-changes.ts'
import { MintOrder } from './rankings/mint-order.ts'
import { Rankings } from './rankings/rankings.ts'
import { AnalysisCounts } from './tokens/analysis-counts.ts'
import { EvictedMints } from './tokens/evicted-mints.ts'
import { RecentTrades } from './tokens/recent-trades.ts'
import { SearchIndex } from './tokens/search-index.ts'
import { SolPrice } from './tokens/sol-price.ts'
import { TokenFigures } from './tokens/token-figures.ts'
import { TokenLifecycle } from './tokens/token-lifecycle.ts'
import { rowIndex, TokenTable } from './tokens/token-table.ts'
import { VersionHistory } from './tokens/version-history.ts'
import type {
  BarColumns,
  Bars,
  BarsQuery,
  BarsText,
  Changes,
  FrozenList,
  ListFilter,
  MarketEngine,
  MarketStats,
  Page,
  PageQuery,
  SolPriceReport,
  TextForm,
  TokenProfile,
} from './types.ts'

export interface MarketOptions {
  tokensMax?: number
  /** How long a token counts as new. */
  newWindowMs?: number
  /** How old a price of SOL may be for a trade to be priced with it, ms; 0: any age. */
  solPriceMaxAgeMs?: number
  barsPerTokenMax?: number
  versionsMax?: number
  changeLogEntriesMax?: number
  evictionsMax?: number
  /** The position before the first change; it must be above every position of an earlier run. */
  firstSeq?: number
  /** Called once with each closed bar of a minute or longer, during a write: it must not read the market. */
  onBarClosed?: (bar: ClosedBar) => void
  /** Called when a token's profile may have changed, during a write: it must not read the market. */
  onProfileChanged?: (mint: string) => void
}

const MINUTE_INDEX = TIMEFRAMES.indexOf('1m')

export class Market implements MarketEngine {
  readonly #time = new MarketTime()
  readonly #tokens: TokenTable
  readonly #bars: BarCascade
  readonly #barTexts: BarTextCache
  readonly #columnBuffer = new ColumnBuffer(BAR_COLUMNS_KEPT)
  readonly #sweep: ClosedBarSweep
  readonly #windows: Windows
  readonly #versions: VersionHistory
  readonly #rankings: Rankings
  readonly #searchIndex: SearchIndex
  readonly #solPrice: SolPrice
  readonly #projections: Projections
  readonly #pages: PageCache
  readonly #datapoints: DataPointCache
  readonly #changes: RowChanges
  readonly #figures: TokenFigures
  readonly #lifecycle: TokenLifecycle
  readonly #trades: TradeWriter
  readonly #events: EventWriter

  constructor(options: MarketOptions = {}) {
    const { tokensMax = TOKENS_MAX_DEFAULT, onBarClosed, onProfileChanged = () => {} } = options
    const mintsKnownMax = Math.max(MINTS_KNOWN_MIN, MINTS_KNOWN_PER_TOKEN * tokensMax)
    const time = this.#time
    const solPrice = new SolPrice(options.solPriceMaxAgeMs ?? SOL_PRICE_MAX_AGE_MS_DEFAULT)
    const tokens = new TokenTable(tokensMax)
    const bars = new BarCascade({
      tokensMax,
      barsPerTokenMax: options.barsPerTokenMax,
      onClosed: onBarClosed && this.#emitterOf(onBarClosed),
      closedFrom: MINUTE_INDEX,
    })
    const windows = new Windows(bars, tokens.columns)
    const versions = new VersionHistory({
      tokensMax,
      retentionMs: VERSION_RETENTION_MS,
      versionsMax: options.versionsMax ?? VERSIONS_MAX_DEFAULT,
    })
    const mintOrder = new MintOrder(tokens)
    const rankings = new Rankings(tokensMax, mintOrder)
    const searchIndex = new SearchIndex(tokens)
    const recentTrades = new RecentTrades()
    const analysisCounts = new AnalysisCounts(mintsKnownMax)
    const sources = { tokens, bars, windows, rankings, recentTrades, solPrice }
    const projections = new Projections(sources)
    const pages = new PageCache(tokens, rankings, projections, time)
    const log = new ChangeLog({
      entriesMax: options.changeLogEntriesMax ?? CHANGE_LOG_ENTRIES_MAX,
      evictionsMax: options.evictionsMax ?? EVICTIONS_MAX,
      firstSeq: options.firstSeq ?? 0,
    })
    const changes = new RowChanges(tokens, rankings, pages, log)
    const datapoints = new DataPointCache(projections)
    const newWindowMs = options.newWindowMs ?? NEW_WINDOW_MS_DEFAULT
    const indexes = { mintOrder, searchIndex, analysisCounts }
    const parts = { ...sources, ...indexes, time, versions, projections, pages, changes, datapoints }
    const figures = new TokenFigures({ ...parts, newWindowMs, onProfileChanged })
    const lifecycle = new TokenLifecycle({ ...parts, evictedMints: new EvictedMints(mintsKnownMax) })
    const trades = new TradeWriter({ ...parts, figures, lifecycle })
    this.#tokens = tokens
    this.#solPrice = solPrice
    this.#bars = bars
    this.#barTexts = new BarTextCache(bars)
    this.#sweep = new ClosedBarSweep(tokens, bars, time)
    this.#windows = windows
    this.#versions = versions
    this.#rankings = rankings
    this.#searchIndex = searchIndex
    this.#projections = projections
    this.#pages = pages
    this.#datapoints = datapoints
    this.#changes = changes
    this.#figures = figures
    this.#lifecycle = lifecycle
    this.#trades = trades
    this.#events = new EventWriter({ ...parts, figures, lifecycle, trades, onProfileChanged })
  }

  /** What the cascade calls with each closed bar, which it holds as numbers at an address. */
  #emitterOf(onBarClosed: (bar: ClosedBar) => void): NonNullable<BarCascadeOptions['onClosed']> {
    return (slot, timeframe, values, address) => {
      const { nowMs, sinceMs } = this.#time
      const watchedSinceMs = Math.max(sinceMs, this.#tokens.columns.barsWholeFromMs[rowIndex(slot)])
      const { mint } = this.#tokens.metadata[slot]
      onBarClosed(copyClosedBar(values, address, mint, timeframe, nowMs, watchedSinceMs))
    }
  }

  get timeMs(): number {
    return this.#time.nowMs
  }

  get tokensMax(): number {
    return this.#tokens.capacity
  }

  get seq(): number {
    return this.#changes.seq
  }

  get firstSeq(): number {
    return this.#changes.firstSeq
  }

  get oldestSince(): number {
    return this.#changes.oldestSince
  }

  get solPrice(): SolPriceReport | null {
    const { usd, source, reportedAtMs, maxAgeMs } = this.#solPrice
    if (Number.isNaN(usd)) return null
    return { usd, source, atMs: reportedAtMs, maxAgeMs, isStale: this.#solPrice.isStaleAt(this.timeMs) }
  }

  solPriceUsdAt(timeMs: number): number {
    return this.#solPrice.usdAt(timeMs)
  }

  apply(event: MarketEvent, receivedAtMs: number): EventRejection | null {
    this.advanceTo(receivedAtMs)
    return this.#events.apply(event)
  }

  advanceTo(timeMs: number): void {
    if (!this.#time.advanceTo(timeMs)) return
    this.#pages.tidy(this.seq)
    this.#figures.removeAged()
  }

  has(mint: string): boolean {
    return this.#tokens.slotOf(mint) !== -1
  }

  page(query: PageQuery): Page {
    return this.#pages.page(query, this.seq)
  }

  preparePage({ tab, sort, order, offset, limit }: PageQuery, rowsMax: number): boolean {
    const slots = this.#rankings.of(tab, sort).slice(offset, limit, order === 'desc')
    return this.#pages.prepare(slots, rowsMax)
  }

  freeze(tab: Tab, sort: Sort, filter: ListFilter | null = null): FrozenList {
    const ranking = this.#rankings.of(tab, sort)
    return new FrozenRanking({
      tab,
      sort,
      filter,
      ranking:
        filter === null
          ? ranking.snapshot()
          : filterRanking(ranking, filter, this.#tokens, this.#searchIndex),
      tokens: this.#tokens,
      pages: this.#pages,
      changes: this.#changes,
    })
  }

  changesSince(since: number, tab: Tab, rowsMax: number): Changes {
    return this.#changes.changesSince(since, tab, rowsMax)
  }

  changedMints(since: number, visit: (mint: string) => void): void {
    this.#changes.changedMints(since, visit)
  }

  changedSeq(mint: string): number {
    const slot = this.#tokens.slotOf(mint)
    return slot === -1 ? 0 : this.#changes.changedSeq(slot)
  }

  watch(onChanged: (() => void) | null): void {
    this.#changes.watch(onChanged)
  }

  item(mint: string): MarketItem | null {
    const slot = this.#tokens.slotOf(mint)
    return slot === -1 ? null : this.#projections.item(slot, this.timeMs)
  }

  profile(mint: string): TokenProfile | null {
    const slot = this.#tokens.slotOf(mint)
    return slot === -1 ? null : this.#projections.profile(slot)
  }

  datapoint(mint: string): DataPoint | null {
    const slot = this.#tokens.slotOf(mint)
    return slot === -1 ? null : this.#projections.datapoint(slot, this.timeMs)
  }

  datapointJson(mint: string): { json: Buffer; version: string } | null {
    const slot = this.#tokens.slotOf(mint)
    if (slot === -1) return null
    return this.#datapoints.read(slot, this.timeMs, {
      seq: this.#changes.changedSeq(slot),
      atMs: this.#tokens.columns.versionAtMs[rowIndex(slot)],
      solPriceChangeCount: this.#solPrice.changeCount,
      solPriceChangedAtMs: this.#solPrice.changedAtMs,
    })
  }

  snapshot(mint: string): SnapshotValues | null {
    const slot = this.#tokens.slotOf(mint)
    return slot === -1 ? null : toSnapshot(this.#projections.compare(slot, this.timeMs), 0)
  }

  enriched(mint: string): Enriched | null {
    const slot = this.#tokens.slotOf(mint)
    return slot === -1 ? null : this.#projections.enriched(slot)
  }

  asOf(mint: string, timeMs: number): SnapshotValues | null {
    const slot = this.#tokens.slotOf(mint)
    if (slot === -1) return null
    const { firstSeenAtMs, versionAtMs } = this.#tokens.columns
    if (timeMs < firstSeenAtMs[rowIndex(slot)]) return null
    const nowMs = this.timeMs
    const atMs = Math.min(timeMs, nowMs)
    if (atMs >= versionAtMs[rowIndex(slot)]) {
      const windowFromMs = this.#windows.windowFromMs(slot, nowMs)
      return this.#projections.asOfWindow(slot, this.#projections.compare(slot, nowMs), 0, windowFromMs, atMs)
    }
    const version = this.#versions.find(slot, atMs)
    if (version === null) return null
    return this.#projections.asOfWindow(slot, version.values, version.at, version.windowFromMs, atMs)
  }

  bars(query: BarsQuery): Bars | null {
    const slot = this.#tokens.slotOf(query.mint)
    return slot === -1 ? null : readBars(this.#bars, slot, query, this.#watermarkMs(slot))
  }

  barColumns(query: BarsQuery): BarColumns | null {
    const slot = this.#tokens.slotOf(query.mint)
    if (slot === -1) return null
    return readColumns(this.#bars, slot, query, this.#watermarkMs(slot), this.#columnBuffer)
  }

  barsText(query: BarsQuery, form: TextForm): BarsText | null {
    const slot = this.#tokens.slotOf(query.mint)
    return slot === -1 ? null : this.#barTexts.read(slot, query, this.#watermarkMs(slot), form)
  }

  barsWholeFromMs(mint: string): number {
    const slot = this.#tokens.slotOf(mint)
    return slot === -1 ? 0 : this.#tokens.columns.barsWholeFromMs[rowIndex(slot)]
  }

  emitClosedBars(tokensMax: number): void {
    this.#sweep.run(tokensMax)
  }

  get barsEmittedToMs(): number {
    return this.#sweep.emittedToMs
  }

  stats(): MarketStats {
    return {
      events: this.#events.eventCount,
      trades: this.#trades.tradeCount,
      lateDropped: this.#trades.lateCount,
      evicted: this.#lifecycle.evictedCount,
      disconnects: this.#events.disconnectCount,
      tokens: this.#tokens.size,
      tokensMax: this.#tokens.capacity,
      versionsHeld: this.#versions.held,
      versionsDroppedEarly: this.#versions.droppedEarly,
      barsHeld: this.#bars.held,
      barsReclaimed: this.#bars.reclaimed,
    }
  }

  #watermarkMs(slot: number): number {
    return watermarkMs(this.#tokens.columns, slot, this.timeMs)
  }
}
