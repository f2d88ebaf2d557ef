// In: market events, one after another, and the passing of time. Out: pages, DataPoints, versions and bars.
// The one interface of the engine: synchronous, deterministic, single writer. The same events give the same bytes.
// Never reads a clock, a file, the environment or a random number.
import { TIMEFRAMES } from '../schema/bar.ts'
import { AMOUNT_MAX, bounded, PRICE_MIN } from '../schema/bounds.ts'
import type { DataPoint, Enriched, SnapshotValues } from '../schema/datapoint.ts'
import type {
  EventRejection,
  GraduatedEvent,
  LiveEvent,
  MarketEvent,
  PatchEvent,
  TokenEvent,
  TradeEvent,
} from '../schema/event.ts'
import type { MarketItem } from '../schema/market-item.ts'
import { type Sort, TABS, type Tab } from '../schema/vocabulary.ts'
import { BarCascade } from './bars/bar-cascade.ts'
import { ColumnBuffer, readBars, readColumns } from './bars/bar-query.ts'
import { BarTextCache } from './bars/bar-text.ts'
import { Windows } from './bars/windows.ts'
import {
  BAR_COLUMNS_KEPT,
  CHANGE_LOG_ENTRIES_MAX,
  DEPARTURES_MAX,
  LATE_GRACE_MS,
  MINTS_KNOWN_MIN,
  MINTS_KNOWN_PER_TOKEN,
  NEW_WINDOW_MS_DEFAULT,
  SILENCE_MS,
  TOKENS_MAX_DEFAULT,
  VERSION_RETENTION_MS,
  VERSIONS_MAX_DEFAULT,
} from './limits.ts'
import { ChangeLog } from './output/change-log.ts'
import { changesSince, type TabRows } from './output/changes.ts'
import { DataPointCache } from './output/datapoint-cache.ts'
import { PageCache } from './output/page-cache.ts'
import { Projections, toSnapshot } from './output/projections.ts'
import { frozenList } from './rankings/frozen-list.ts'
import { addToHotScore, HOT_SCORE_NONE } from './rankings/hot-score.ts'
import { KEY_UNKNOWN, Rankings } from './rankings/rankings.ts'
import { AnalysisCounts } from './tokens/analysis-counts.ts'
import { bondingProgress, CURVE_SUPPLY, obeysCurve, raisedSol } from './tokens/bonding-curve.ts'
import { EvictedMints } from './tokens/evicted-mints.ts'
import { applyPatch, changesProfile } from './tokens/patch.ts'
import { RecentTrades } from './tokens/recent-trades.ts'
import {
  type Columns,
  FLAG_COMPLETE,
  FLAG_LIQUIDITY_PATCHED,
  FLAG_LIVE,
  rowOf,
  type TokenMetadata,
  TokenTable,
} from './tokens/token-table.ts'
import { VersionHistory } from './tokens/version-history.ts'
import type {
  BarColumns,
  BarListener,
  Bars,
  BarsQuery,
  BarsText,
  Changes,
  FrozenList,
  MarketEngine,
  MarketStats,
  Page,
  PageQuery,
  TextForm,
  TokenProfile,
} from './types.ts'

export interface MarketOptions {
  tokensMax?: number
  /** How long a token counts as new. */
  newWindowMs?: number
  barsPerTokenMax?: number
  versionsMax?: number
  changeLogEntriesMax?: number
  departuresMax?: number
  /** The position before the first change: above every one that an earlier run has handed out. */
  firstSeq?: number
  /** Called once with every closed bar of a minute or longer, inside the write: it must not look, only take. */
  onBarClosed?: BarListener
  /** Called when something of a token's profile may have changed, inside the write: it must not look, only remember. */
  onProfile?: (mint: string) => void
}

const MINUTE_INDEX = TIMEFRAMES.indexOf('1m')

export class Market implements MarketEngine {
  timeMs = 0
  /** Market time at which this market began to watch. */
  sinceMs = 0
  readonly #tokens: TokenTable
  readonly #columns: Columns
  readonly #bars: BarCascade
  readonly #barTextCache: BarTextCache
  readonly #columnBuffer = new ColumnBuffer(BAR_COLUMNS_KEPT)
  readonly #windows: Windows
  readonly #versions: VersionHistory
  readonly #rankings: Rankings
  /** By token: its mint's first characters as a number of the same order, so that ties rarely compare text. */
  readonly #mintOrder: Float64Array
  readonly #recentTrades: RecentTrades
  readonly #pages: PageCache
  readonly #changeLog: ChangeLog
  #onChanged: (() => void) | null = null
  readonly #onProfile: NonNullable<MarketOptions['onProfile']>
  /** Where the next call of `emitClosedBars` goes on, when this round of all tokens began, and what the last one reached. */
  #emitSlot = 0
  #emitFromMs = 0
  #barsEmittedToMs = 0
  readonly #newWindowMs: number
  readonly #analysisCounts: AnalysisCounts
  readonly #evicted: EvictedMints
  #solPriceUsd = Number.NaN
  /** How often the price of SOL has changed, and when it last did: every DataPoint shows it. */
  #solPriceChanges = 0
  #solPriceAtMs = 0
  /** Who told it last, and when: the same price told again is a fresh one. */
  #solPriceSource = 'none'
  #solPriceToldAtMs = 0
  /** By token: the change that last moved it out of each tab; 0: none. */
  readonly #leftSeq: Record<Tab, Float64Array>
  readonly #datapointCache: DataPointCache
  readonly #projections: Projections
  readonly #counters = { events: 0, trades: 0, lateDropped: 0, evicted: 0, disconnects: 0 }

  constructor(options: MarketOptions = {}) {
    const { tokensMax = TOKENS_MAX_DEFAULT, newWindowMs = NEW_WINDOW_MS_DEFAULT, onBarClosed } = options
    const mintsKnown = Math.max(MINTS_KNOWN_MIN, MINTS_KNOWN_PER_TOKEN * tokensMax)
    this.#analysisCounts = new AnalysisCounts(mintsKnown)
    this.#evicted = new EvictedMints(mintsKnown)
    this.#tokens = new TokenTable(tokensMax)
    this.#columns = this.#tokens.columns
    this.#onProfile = options.onProfile ?? (() => {})
    this.#bars = new BarCascade({
      tokensMax,
      barsPerTokenMax: options.barsPerTokenMax,
      onClosed:
        onBarClosed &&
        ((slot, timeframe, values, address) =>
          onBarClosed(
            this.#tokens.texts[slot]!.mint,
            timeframe,
            values,
            address,
            Math.max(this.sinceMs, this.#columns.barsWholeFrom[rowOf(slot)]),
          )),
      closedFrom: MINUTE_INDEX,
    })
    this.#barTextCache = new BarTextCache(this.#bars)
    this.#windows = new Windows(this.#bars, this.#columns)
    this.#versions = new VersionHistory({
      tokensMax,
      retentionMs: VERSION_RETENTION_MS,
      versionsMax: options.versionsMax ?? VERSIONS_MAX_DEFAULT,
    })
    const texts = this.#tokens.texts
    const order = new Float64Array(tokensMax)
    this.#mintOrder = order
    this.#rankings = new Rankings(tokensMax, (a, b) =>
      order[a] === order[b] ? texts[a]!.mint < texts[b]!.mint : order[a] < order[b],
    )
    this.#recentTrades = new RecentTrades()
    this.#newWindowMs = newWindowMs
    this.#leftSeq = Object.fromEntries(TABS.map((tab) => [tab, new Float64Array(tokensMax)])) as Record<
      Tab,
      Float64Array
    >
    this.#changeLog = new ChangeLog({
      entriesMax: options.changeLogEntriesMax ?? CHANGE_LOG_ENTRIES_MAX,
      departuresMax: options.departuresMax ?? DEPARTURES_MAX,
      firstSeq: options.firstSeq ?? 0,
    })
    this.#projections = new Projections({
      tokens: this.#tokens,
      bars: this.#bars,
      windows: this.#windows,
      rankings: this.#rankings,
      recentTrades: this.#recentTrades,
      analysisCounts: this.#analysisCounts,
      solPriceUsd: () => this.#solPriceUsd,
    })
    this.#datapointCache = new DataPointCache((slot, asOfMs) => this.#projections.datapoint(slot, asOfMs))
    this.#pages = new PageCache(this.#rankings, {
      tokensMax,
      item: (slot) => this.#projections.item(slot, this.timeMs),
      metadata: (slot) => texts[slot]!,
    })
  }

  get tokensMax(): number {
    return this.#tokens.capacity
  }

  get seq(): number {
    return this.#changeLog.seq
  }

  get firstSeq(): number {
    return this.#changeLog.firstSeq
  }

  get oldestSince(): number {
    return this.#changeLog.oldestSince
  }

  apply(event: MarketEvent, receivedAtMs: number): EventRejection | null {
    this.advanceTo(receivedAtMs)
    this.#counters.events++
    switch (event.type) {
      case 'trade':
        return this.#trade(event)
      case 'token':
        this.#token(event)
        return null
      case 'patch':
        this.#patch(event)
        return null
      case 'graduated':
        this.#graduated(event)
        return null
      case 'live':
        this.#live(event)
        return null
      case 'solPrice':
        this.#setSolPrice(event.usd, event.source ?? 'push')
        return null
      case 'disconnect':
        this.#counters.disconnects++
        return null
      case 'analysisCount':
        this.#analysisCount(event.mint, event.count)
        return null
    }
  }

  /** The price of SOL that is in force, who told it and when (market time, Unix ms); null while there is none. */
  get solPrice(): { usd: number; source: string; atMs: number } | null {
    return Number.isNaN(this.#solPriceUsd)
      ? null
      : { usd: this.#solPriceUsd, source: this.#solPriceSource, atMs: this.#solPriceToldAtMs }
  }

  advanceTo(timeMs: number): void {
    if (timeMs <= this.timeMs) return
    if (this.timeMs === 0) this.sinceMs = timeMs
    this.timeMs = timeMs
    this.#pages.tidy(this.seq)
    const newest = this.#rankings.of('new', 'created_timestamp')
    for (let slot = newest.last(); slot !== -1 && !this.#isNew(slot); slot = newest.last()) {
      this.#setTab(slot, 'new', false)
      this.#changed(slot)
    }
  }

  has(mint: string): boolean {
    return this.#tokens.slotOf(mint) !== -1
  }

  page(query: PageQuery): Page {
    return this.#pages.page(query, this.seq, this.timeMs)
  }

  preparePage({ tab, sort, order, offset, limit }: PageQuery, rowsMax: number): boolean {
    const slots = this.#rankings.of(tab, sort).slice(offset, limit, order === 'desc')
    return this.#pages.prepare(slots, this.timeMs, rowsMax)
  }

  freeze(tab: Tab, sort: Sort): FrozenList {
    const version = this.seq
    // A slot that another token has taken since was not on this list.
    const isThere = (slot: number) =>
      this.#tokens.texts[slot] !== undefined && this.#columns.firstSeenSeq[rowOf(slot)] <= version
    const ranking = this.#rankings.of(tab, sort).snapshot()
    const now = () => ({ seq: this.seq, timeMs: this.timeMs })
    return frozenList(this.#pages, { tab, sort, version, ranking, isThere, now })
  }

  changesSince(since: number, tab: Tab, rowsMax: number): Changes {
    const lastIn = (slot: number) =>
      this.#rankings.has(slot, tab) ? this.#columns.changedSeq[rowOf(slot)] : this.#leftSeq[tab][slot]
    const rows: TabRows['rows'] = (slots, seqs) => this.#pages.joinWithSeq(slots, seqs)
    return changesSince(this.#changeLog, since, { tabIndex: TABS.indexOf(tab), lastIn, rows }, rowsMax)
  }

  changedMints(since: number, visit: (mint: string) => void): void {
    this.#changeLog.since(since, (slot, _, departed) => {
      const mint = departed === null ? this.#tokens.texts[slot]?.mint : departed.mint
      if (mint !== undefined) visit(mint)
      return true
    })
  }

  changedSeq(mint: string): number {
    const slot = this.#tokens.slotOf(mint)
    return slot === -1 ? 0 : this.#columns.changedSeq[rowOf(slot)]
  }

  watch(onChanged: (() => void) | null): void {
    this.#onChanged = onChanged
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
    const row = rowOf(slot)
    return this.#datapointCache.at(slot, this.timeMs, {
      seq: this.#columns.changedSeq[row],
      atMs: this.#columns.versionAt[row],
      solPriceChanges: this.#solPriceChanges,
      solPriceAtMs: this.#solPriceAtMs,
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
    if (slot === -1 || timeMs < this.#columns.firstSeenAt[rowOf(slot)]) return null
    const atMs = Math.min(timeMs, this.timeMs)
    if (atMs >= this.#columns.versionAt[rowOf(slot)]) {
      const windowFromMs = this.#windows.windowFromMs(slot, this.timeMs)
      return this.#projections.asOfWindow(
        slot,
        this.#projections.compare(slot, this.timeMs),
        0,
        windowFromMs,
        atMs,
      )
    }
    const version = this.#versions.find(slot, atMs)
    return (
      version && this.#projections.asOfWindow(slot, version.values, version.at, version.windowFromMs, atMs)
    )
  }

  bars(query: BarsQuery): Bars | null {
    const slot = this.#tokens.slotOf(query.mint)
    return slot === -1 ? null : readBars(this.#bars, slot, query, this.#watermarkOf(slot))
  }

  barColumns(query: BarsQuery): BarColumns | null {
    const slot = this.#tokens.slotOf(query.mint)
    if (slot === -1) return null
    return readColumns(this.#bars, slot, query, this.#watermarkOf(slot), this.#columnBuffer)
  }

  barsText(query: BarsQuery, form: TextForm): BarsText | null {
    const slot = this.#tokens.slotOf(query.mint)
    return slot === -1 ? null : this.#barTextCache.read(slot, query, this.#watermarkOf(slot), form)
  }

  barsWholeFromMs(mint: string): number {
    const slot = this.#tokens.slotOf(mint)
    return slot === -1 ? 0 : this.#columns.barsWholeFrom[rowOf(slot)]
  }

  emitClosedBars(tokensMax: number): void {
    const { texts } = this.#tokens
    if (this.#emitSlot === 0) this.#emitFromMs = this.timeMs
    const end = Math.min(texts.length, this.#emitSlot + tokensMax)
    for (let slot = this.#emitSlot; slot < end; slot++) {
      if (texts[slot] !== undefined) this.#bars.emitEnded(slot, this.#watermarkOf(slot))
    }
    this.#emitSlot = end === texts.length ? 0 : end
    if (this.#emitSlot === 0) this.#barsEmittedToMs = this.#emitFromMs - SILENCE_MS - LATE_GRACE_MS
  }

  get barsEmittedToMs(): number {
    return this.#barsEmittedToMs
  }

  stats(): MarketStats {
    return {
      ...this.#counters,
      tokens: this.#tokens.size,
      tokensMax: this.#tokens.capacity,
      versionsHeld: this.#versions.held,
      versionsDroppedEarly: this.#versions.droppedEarly,
      barsHeld: this.#bars.held,
      barsReclaimed: this.#bars.reclaimed,
    }
  }

  // ---- events

  #trade(trade: TradeEvent): EventRejection | null {
    const { vSol, vTokens, ts } = trade
    const onCurve = vSol != null && vTokens != null && obeysCurve(vSol, vTokens)
    const priceSol = onCurve
      ? vSol / vTokens
      : trade.solAmount != null
        ? trade.solAmount / trade.tokenAmount
        : Number.NaN
    if (trade.priceUsd == null && Number.isNaN(this.#solPriceUsd)) return 'sol_price_unknown'
    const priceUsd = trade.priceUsd ?? priceSol * this.#solPriceUsd
    const volumeUsd = priceUsd * trade.tokenAmount
    if (!(priceUsd >= PRICE_MIN && priceUsd <= AMOUNT_MAX)) return 'price_unknown'
    if (!(volumeUsd <= AMOUNT_MAX)) return 'volume_too_large'
    let slot = this.#tokens.slotOf(trade.mint)
    if (slot !== -1 && ts < this.#watermarkOf(slot)) {
      this.#counters.lateDropped++
      return 'late'
    }
    if (slot === -1) slot = this.#create(trade.mint)
    this.#recordVersion(slot)
    this.#counters.trades++
    const watermark = Math.max(this.#watermarkOf(slot), ts - LATE_GRACE_MS)
    const isBuy = trade.side === 'buy'
    this.#bars.add(slot, ts, priceUsd, volumeUsd, isBuy, watermark)
    const columns = this.#columns
    const row = rowOf(slot)
    columns.watermark[row] = watermark
    columns.tradedAt[row] = this.timeMs
    this.#windows.add(slot, ts, volumeUsd, isBuy, this.timeMs)
    columns.tradeCount[row]++
    if (!(ts < columns.lastTradeAt[row])) {
      columns.lastTradeAt[row] = ts
      const sol = priceSol > 0 && priceSol <= AMOUNT_MAX ? priceSol : bounded(priceUsd / this.#solPriceUsd)
      if (onCurve) this.#setCurve(slot, vSol, vTokens)
      else if (vSol != null && vTokens != null) this.#setReserves(slot, vSol, vTokens)
      this.#setPrice(slot, priceUsd, sol)
    }
    this.#recentTrades.add(slot, trade)
    const hot = this.#rankings.key(slot, 'hot')
    this.#rankings.setKey(slot, 'hot', addToHotScore(hot, volumeUsd, ts))
    this.#touched(slot)
    return null
  }

  #token(event: TokenEvent): void {
    const slot = this.#obtain(event.mint)
    const metadata = this.#tokens.texts[slot]!
    const columns = this.#columns
    const row = rowOf(slot)
    metadata.name = event.name
    metadata.symbol = event.symbol
    metadata.description = event.description ?? metadata.description
    metadata.imageUri = event.image_uri ?? metadata.imageUri
    metadata.creator = event.creator ?? metadata.creator
    metadata.website = event.website ?? metadata.website
    metadata.twitter = event.twitter ?? metadata.twitter
    metadata.telegram = event.telegram ?? metadata.telegram
    this.#pages.metadataChanged(slot)
    if (Number.isNaN(columns.createdAt[row])) this.#setCreatedAt(slot, event.ts)
    if (event.totalSupply != null && event.totalSupply !== columns.totalSupply[row]) {
      columns.totalSupply[row] = event.totalSupply
      columns.circulating[row] = event.totalSupply
      if (!Number.isNaN(columns.priceUsd[row]))
        this.#setPrice(slot, columns.priceUsd[row], columns.priceSol[row])
    }
    this.#onProfile(event.mint)
    this.#touched(slot)
  }

  #patch(event: PatchEvent): void {
    const slot = this.#obtain(event.mint)
    applyPatch(event.fields, {
      slot,
      tokens: this.#tokens,
      setWindow: (field, value) => this.#windows.patch(slot, field, value, this.timeMs),
      setSolPrice: (usd) => this.#setSolPrice(usd ?? Number.NaN, 'patch'),
      setFlag: (flag, on) => this.#setFlag(slot, flag, on),
      setCreatedAt: (createdAtMs) => this.#setCreatedAt(slot, createdAtMs),
    })
    this.#pages.metadataChanged(slot)
    this.#rankings.setKey(slot, 'market_cap', this.#columns.marketCap[rowOf(slot)])
    if (changesProfile(event.fields)) this.#onProfile(event.mint)
    this.#touched(slot)
  }

  #graduated(event: GraduatedEvent): void {
    const slot = this.#obtain(event.mint)
    this.#setFlag(slot, FLAG_COMPLETE, true)
    this.#columns.bondingProgress[rowOf(slot)] = 100
    this.#onProfile(event.mint)
    if (event.pool != null)
      this.#tokens.sparse[slot] = { ...this.#tokens.sparse[slot]!, primaryDex: event.pool }
    this.#touched(slot)
  }

  #live(event: LiveEvent): void {
    const slot = this.#obtain(event.mint)
    const sparse = this.#tokens.sparse[slot]!
    const source = event.isLive ? (sparse.streamSource === 'none' ? 'pumpfun' : sparse.streamSource) : 'none'
    const viewerCount = event.isLive ? (event.viewerCount ?? sparse.viewerCount) : (event.viewerCount ?? null)
    this.#setFlag(slot, FLAG_LIVE, event.isLive)
    this.#tokens.sparse[slot] = { ...sparse, streamSource: source, viewerCount }
    this.#touched(slot)
  }

  /** Counts outlive tokens: one that comes back, or comes late, still knows its analyses. */
  #analysisCount(mint: string, count: number): void {
    const forgotten = this.#analysisCounts.set(mint, count)
    for (const changed of [mint, forgotten]) {
      const slot = changed === null ? -1 : this.#tokens.slotOf(changed)
      if (slot !== -1) this.#changed(slot)
    }
  }

  // ---- changes of one token

  /** The slot of a mint that an event concerns, its present version put on record before it changes. */
  #obtain(mint: string): number {
    const slot = this.#tokens.slotOf(mint)
    if (slot === -1) return this.#create(mint)
    this.#recordVersion(slot)
    return slot
  }

  #create(mint: string): number {
    if (this.#tokens.isFull) this.#evict(this.#tokens.coldest())
    const metadata: TokenMetadata = {
      mint,
      name: mint,
      symbol: mint,
      description: null,
      imageUri: null,
      creator: null,
      website: null,
      twitter: null,
      telegram: null,
    }
    const slot = this.#tokens.add(metadata)
    this.#mintOrder[slot] = orderOf(mint)
    const row = rowOf(slot)
    this.#columns.firstSeenAt[row] = this.timeMs
    this.#columns.versionAt[row] = this.timeMs
    this.#columns.firstSeenSeq[row] = this.seq + 1
    // A trade that came after it had gone would have brought it back: only what it was held for is missing.
    const heldToMs = this.#evicted.take(mint)
    this.#columns.barsWholeFrom[row] = heldToMs === 0 ? 0 : heldToMs + 1
    for (const tab of TABS) this.#leftSeq[tab][slot] = 0
    this.#rankings.add(slot, { hot: HOT_SCORE_NONE, market_cap: KEY_UNKNOWN, created_timestamp: KEY_UNKNOWN })
    return slot
  }

  #evict(slot: number): void {
    const seq = this.seq + 1
    const lastIn = TABS.map((tab) => (this.#rankings.has(slot, tab) ? seq : this.#leftSeq[tab][slot]))
    this.#changeLog.depart({ mint: this.#tokens.texts[slot]!.mint, lastIn })
    this.#rankings.remove(slot)
    this.#bars.emitEnded(slot, this.#watermarkOf(slot))
    this.#bars.clear(slot)
    this.#windows.clear(slot)
    this.#versions.clear(slot)
    this.#recentTrades.clear(slot)
    this.#pages.forget(slot)
    this.#datapointCache.forget(slot)
    this.#evicted.note(this.#tokens.texts[slot]!.mint, this.timeMs)
    this.#tokens.remove(slot)
    this.#counters.evicted++
  }

  #touched(slot: number): void {
    this.#tokens.touch(slot)
    this.#changed(slot)
  }

  #changed(slot: number): void {
    this.#columns.changedSeq[rowOf(slot)] = this.#changeLog.append(slot)
    this.#pages.changed(slot)
    this.#onChanged?.()
  }

  /** Puts the present version on record, once for each millisecond: it ends now. */
  #recordVersion(slot: number): void {
    if (this.#columns.versionAt[rowOf(slot)] === this.timeMs) return
    this.#windows.moveTo(slot, this.timeMs)
    this.#versions.push(
      slot,
      this.#projections.compare(slot, this.timeMs),
      this.timeMs,
      this.#windows.windowFromMs(slot, this.timeMs),
    )
    this.#columns.versionAt[rowOf(slot)] = this.timeMs
  }

  #setPrice(slot: number, priceUsd: number, priceSol: number): void {
    const columns = this.#columns
    const row = rowOf(slot)
    columns.priceUsd[row] = priceUsd
    columns.priceSol[row] = priceSol
    let circulating = columns.circulating[row]
    if (Number.isNaN(circulating)) {
      // A market cap that was patched before any price tells how many tokens it counted.
      circulating = Number.isNaN(columns.marketCap[row])
        ? columns.totalSupply[row]
        : bounded(columns.marketCap[row] / priceUsd)
      columns.circulating[row] = circulating
    }
    columns.marketCap[row] = bounded(priceUsd * circulating)
    columns.marketCapSol[row] = bounded(priceSol * circulating)
    this.#rankings.setKey(slot, 'market_cap', columns.marketCap[row])
  }

  #setSolPrice(usd: number, source: string): void {
    this.#solPriceSource = source
    this.#solPriceToldAtMs = this.timeMs
    if (Object.is(usd, this.#solPriceUsd)) return
    this.#solPriceUsd = usd
    this.#solPriceAtMs = this.timeMs
    this.#solPriceChanges++
  }

  #setReserves(slot: number, vSol: number, vTokens: number): void {
    this.#columns.virtualSolReserves[rowOf(slot)] = vSol
    this.#columns.virtualTokenReserves[rowOf(slot)] = vTokens
  }

  #setCurve(slot: number, vSol: number, vTokens: number): void {
    const columns = this.#columns
    const row = rowOf(slot)
    this.#setReserves(slot, vSol, vTokens)
    if ((this.#tokens.flags[slot] & FLAG_COMPLETE) === 0)
      columns.bondingProgress[row] = bondingProgress(vTokens)
    if (Number.isNaN(columns.totalSupply[row])) {
      columns.totalSupply[row] = CURVE_SUPPLY
      this.#onProfile(this.#tokens.texts[slot]!.mint)
    }
    if ((this.#tokens.flags[slot] & FLAG_LIQUIDITY_PATCHED) === 0) {
      columns.liquidity[row] = bounded(2 * raisedSol(vSol) * this.#solPriceUsd)
    }
  }

  #setFlag(slot: number, flag: number, on: boolean): void {
    if (on) this.#tokens.flags[slot] |= flag
    else this.#tokens.flags[slot] &= ~flag
    if (flag === FLAG_LIVE) this.#setTab(slot, 'live', on)
    if (flag === FLAG_COMPLETE) this.#setTab(slot, 'graduated', on)
  }

  #setCreatedAt(slot: number, createdAtMs: number): void {
    this.#columns.createdAt[rowOf(slot)] = createdAtMs
    this.#rankings.setKey(slot, 'created_timestamp', createdAtMs)
    this.#setTab(slot, 'new', this.#isNew(slot))
  }

  /** The change that follows is the last one that followers of a tab it left are sent. */
  #setTab(slot: number, tab: Tab, belongs: boolean): void {
    if (this.#rankings.has(slot, tab) === belongs) return
    this.#rankings.setTab(slot, tab, belongs)
    if (!belongs) this.#leftSeq[tab][slot] = this.seq + 1
  }

  #isNew(slot: number): boolean {
    return this.timeMs - this.#columns.createdAt[rowOf(slot)] < this.#newWindowMs
  }

  /** Before this time a token's bars are closed. Its own trades carry it; once it is silent, the market's time does. */
  #watermarkOf(slot: number): number {
    const row = rowOf(slot)
    const own = this.#columns.watermark[row]
    if (own === 0 || this.timeMs - this.#columns.tradedAt[row] < SILENCE_MS) return own
    return Math.max(own, this.timeMs - LATE_GRACE_MS)
  }
}

/** Characters whose codes fill a double's 53 bits without loss: seven of seven bits. */
const ORDER_CHARACTERS = 7

/** A number for each mint such that a smaller one comes first; equal ones are settled by the text. */
function orderOf(mint: string): number {
  let order = 0
  for (let at = 0; at < ORDER_CHARACTERS; at++) order = order * 128 + (mint.charCodeAt(at) & 127)
  return order
}
