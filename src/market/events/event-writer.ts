import type { PatchFields } from '../../schema/datapoint.ts'
import type {
  DisconnectEvent,
  EventRejection,
  GapEvent,
  GraduatedEvent,
  LiveEvent,
  MarketEvent,
  PatchEvent,
  ReconnectEvent,
  RunEvent,
  SolPriceEvent,
  TokenEvent,
} from '../../schema/event.ts'
import type { EnrichedField } from '../../schema/features.ts'
import { WINDOW_FIELDS, type Windows } from '../bars/windows.ts'
import type { ChangeLog } from '../output/change-log.ts'
import type { OwnTrades } from '../output/own-trades.ts'
import type { RowChanges } from '../output/row-changes.ts'
import type { Rankings } from '../rankings/rankings.ts'
import type { Gaps } from '../time/gaps.ts'
import type { MarketTime } from '../time/market-time.ts'
import type { AnalysisCounts } from '../tokens/analysis-counts.ts'
import { addReport, contradictedFields, isEnrichment } from '../tokens/enrichment.ts'
import { applyPatch, changesProfile } from '../tokens/patch.ts'
import type { SearchIndex } from '../tokens/search-index.ts'
import type { SolPrice } from '../tokens/sol-price.ts'
import { rowIndex, type TokenTable } from '../tokens/token-table.ts'
import type { Healing } from './healing.ts'
import type { TokenFigures } from './token-figures.ts'
import type { TokenLifecycle } from './token-lifecycle.ts'
import { patchedPrices } from './trade-price.ts'
import type { TradeWriter } from './trade-writer.ts'

export interface EventWriterParts {
  time: MarketTime
  log: ChangeLog
  gaps: Gaps
  tokens: TokenTable
  searchIndex: SearchIndex
  analysisCounts: AnalysisCounts
  solPrice: SolPrice
  windows: Windows
  rankings: Rankings
  ownTrades: OwnTrades
  changes: RowChanges
  figures: TokenFigures
  lifecycle: TokenLifecycle
  trades: TradeWriter
  healing: Healing
  onProfileChanged: (mint: string) => void
  /** Market time goes back to this. */
  rewind: (timeMs: number) => void
}

/** Applies market events, one after another: the only writer of the engine. */
export class EventWriter {
  eventCount = 0
  disconnectCount = 0
  /** By enriched field: patches that another source's fresh answer contradicts. Not part of the market's state. */
  readonly contradictions: Partial<Record<EnrichedField, number>> = {}
  readonly #parts: EventWriterParts
  // Used by every event.
  readonly #time: MarketTime
  readonly #trades: TradeWriter

  constructor(parts: EventWriterParts) {
    this.#parts = parts
    this.#time = parts.time
    this.#trades = parts.trades
  }

  /** Moves market time forward, and does what is due by then; an earlier time does nothing. */
  advanceTo(timeMs: number): void {
    if (!this.#time.advanceTo(timeMs)) return
    const { healing, rankings, figures } = this.#parts
    healing.passTime()
    rankings.figureOrders.advance()
    figures.removeAged()
  }

  apply(event: MarketEvent): EventRejection | null {
    this.eventCount++
    const time = this.#time
    time.beginEvent(event.ts)
    const rejection = this.#apply(event)
    if (rejection === null && time.firstEventAtMs === 0) time.firstEventAtMs = time.nowMs
    return rejection
  }

  #apply(event: MarketEvent): EventRejection | null {
    switch (event.type) {
      case 'trade':
        return this.#trades.apply(event)
      case 'token':
        this.#applyToken(event)
        return null
      case 'patch':
        this.#applyPatch(event)
        return null
      case 'graduated':
        this.#applyGraduated(event)
        return null
      case 'live':
        this.#applyLive(event)
        return null
      case 'solPrice':
        this.#applySolPrice(event)
        return null
      case 'analysisCount':
        this.#setAnalysisCount(event.mint, event.count)
        return null
      case 'rewind':
        // Where events are applied again, nothing else may have told the time that passed before.
        this.advanceTo(event.fromMs ?? event.ts)
        this.#parts.rewind(event.ts)
        return null
      default:
        this.#applyToSources(event)
        return null
    }
  }

  /** What feeds and the server say of themselves. */
  #applyToSources(event: DisconnectEvent | ReconnectEvent | GapEvent | RunEvent): void {
    const { gaps, log, changes, time, healing } = this.#parts
    switch (event.type) {
      case 'disconnect':
        // A feed that is away may say more of it.
        if (gaps.disconnect(event, time.nowMs)) this.disconnectCount++
        break
      case 'reconnect':
        gaps.reconnect(event, time.nowMs)
        break
      case 'gap':
        gaps.add(event)
        break
      case 'run':
        gaps.endAll(event.ts)
        log.beginAnew(event.firstSeq)
        break
    }
    healing.update()
    changes.notify()
  }

  #applyToken(event: TokenEvent): void {
    const { tokens, lifecycle, figures, searchIndex, onProfileChanged } = this.#parts
    const slot = lifecycle.beginChange(event.mint)
    const metadata = tokens.metadata[slot]
    metadata.name = event.name
    metadata.symbol = event.symbol
    metadata.description = event.description ?? metadata.description
    metadata.imageUri = event.image_uri ?? metadata.imageUri
    metadata.creator = event.creator ?? metadata.creator
    metadata.website = event.website ?? metadata.website
    metadata.twitter = event.twitter ?? metadata.twitter
    metadata.telegram = event.telegram ?? metadata.telegram
    metadata.quoteMint = event.quoteMint ?? metadata.quoteMint
    searchIndex.changed(slot)
    if (Number.isNaN(tokens.columns.createdAtMs[rowIndex(slot)])) figures.setCreatedAt(slot, event.ts)
    if (event.totalSupply != null) {
      const isNew = event.totalSupply !== tokens.columns.totalSupply[rowIndex(slot)]
      figures.setTotalSupply(slot, event.totalSupply)
      // Nobody has said whose this one is.
      if (isNew) this.#addEnrichment(slot, { totalSupply: event.totalSupply })
    }
    if (event.isMayhem != null) figures.setMayhem(slot, event.isMayhem)
    if (event.curveTokens != null) tokens.columns.curveTokens[rowIndex(slot)] = event.curveTokens
    onProfileChanged(event.mint)
    lifecycle.endChange(slot)
  }

  #applyPatch({ mint, ts, fields }: PatchEvent): void {
    const { tokens, time, windows, lifecycle, figures, searchIndex, solPrice, onProfileChanged } = this.#parts
    const { solPriceUsd, bondingComplete, isMayhem, isLive, isCurrentlyLive, createdAt } = fields
    const slot = lifecycle.beginChange(mint)
    // First, since prices in the same patch are converted by it.
    if (solPriceUsd !== undefined) this.#setSolPrice(solPriceUsd ?? Number.NaN, 'patch', ts)
    if (fields.priceUsd !== undefined || fields.priceSol !== undefined) {
      const usdBefore = tokens.columns.priceUsd[rowIndex(slot)]
      const { priceUsd, priceSol } = patchedPrices(fields, solPrice.usdAt(time.eventMs), usdBefore)
      figures.setPrice(slot, priceUsd, priceSol)
    }
    applyPatch(tokens, slot, fields)
    if (isEnrichment(fields)) this.#addEnrichment(slot, fields)
    for (const field of WINDOW_FIELDS) {
      const value = fields[field]
      if (value !== undefined) windows.patch(slot, field, value, time.eventMs)
    }
    if (bondingComplete !== undefined) figures.setGraduated(slot, bondingComplete)
    if (isMayhem !== undefined) figures.setMayhem(slot, isMayhem)
    if (isLive !== undefined) figures.setLive(slot, isLive)
    if (isCurrentlyLive !== undefined) figures.setLive(slot, isCurrentlyLive)
    if (createdAt !== undefined) figures.setCreatedAt(slot, createdAt ?? Number.NaN)
    if (fields.name !== undefined || fields.symbol !== undefined) searchIndex.changed(slot)
    figures.rankMarketCap(slot)
    if (changesProfile(fields)) onProfileChanged(mint)
    lifecycle.endChange(slot)
  }

  #addEnrichment(slot: number, fields: PatchFields): void {
    const { tokens, time, ownTrades } = this.#parts
    const sparse = tokens.sparse.get(slot)
    const trades = () => ownTrades.figures(slot, time.nowMs)
    for (const field of contradictedFields(fields, sparse.reports, trades, time.nowMs))
      this.contradictions[field] = (this.contradictions[field] ?? 0) + 1
    const reports = addReport(sparse.reports, fields, time.nowMs)
    // A token of which nothing was said has no fields of its own.
    if (reports.length > 0 || sparse.reports.length > 0) tokens.sparse.set(slot, { ...sparse, reports })
  }

  #applyGraduated({ mint, pool }: GraduatedEvent): void {
    const { tokens, lifecycle, figures, onProfileChanged } = this.#parts
    const slot = lifecycle.beginChange(mint)
    figures.setGraduated(slot, true)
    tokens.columns.bondingProgress[rowIndex(slot)] = 100
    onProfileChanged(mint)
    if (pool != null) tokens.sparse.set(slot, { ...tokens.sparse.get(slot), primaryDex: pool })
    lifecycle.endChange(slot)
  }

  #applyLive({ mint, isLive, viewerCount }: LiveEvent): void {
    const { tokens, lifecycle, figures } = this.#parts
    const slot = lifecycle.beginChange(mint)
    const sparse = tokens.sparse.get(slot)
    figures.setLive(slot, isLive)
    const streamSource = sparse.streamSource === 'none' ? 'pumpfun' : sparse.streamSource
    tokens.sparse.set(
      slot,
      isLive
        ? { ...sparse, streamSource, viewerCount: viewerCount ?? sparse.viewerCount }
        : { ...sparse, streamSource: 'none', viewerCount: viewerCount ?? null },
    )
    lifecycle.endChange(slot)
  }

  /** One that is older than the price in force changes nothing: of several sources each may lag behind another. */
  #applySolPrice({ usd, ts, source }: SolPriceEvent): void {
    const { solPrice, time } = this.#parts
    const from = source ?? 'push'
    if (!solPrice.isLate(from, ts, time.eventMs)) this.#setSolPrice(usd, from, ts)
  }

  #setSolPrice(usd: number, source: string, reportedAtMs: number): void {
    const { solPrice, time } = this.#parts
    solPrice.set(usd, source, reportedAtMs, time.nowMs, time.eventMs)
  }

  /** Counts are known of mints that are not held, too: a token that comes back shows its analyses. */
  #setAnalysisCount(mint: string, count: number): void {
    const { tokens, analysisCounts, changes } = this.#parts
    const forgotten = analysisCounts.set(mint, count)
    for (const changed of [mint, forgotten]) {
      const slot = changed === null ? -1 : tokens.slotOf(changed)
      if (slot === -1) continue
      tokens.analysisCounts[slot] = changed === mint ? count : 0
      changes.record(slot)
    }
  }
}
