// The engine's façade: events go to events/event-writer.ts, which is its only writer; reads go to the parts that hold the answers.

import type { Section } from '../lib/sections/sections.ts'
import { intervalStart } from '../lib/time.ts'
import { TIMEFRAME_MS, TIMEFRAMES, type Timeframe } from '../schema/bar.ts'
import type { DataPoint, SnapshotValues, SourcedEnriched } from '../schema/datapoint.ts'
import type {
  DisconnectEvent,
  EngineSettings,
  EventRejection,
  Gap,
  MarketEvent,
  RewoundSpan,
} from '../schema/event.ts'
import type { MarketItem } from '../schema/market-item.ts'
import type { Sort, Tab } from '../schema/vocabulary.ts'
import { answeredInterval } from './bars/answered-interval.ts'
import { ColumnBuffer, readBars, readColumns } from './bars/bar-query.ts'
import { BAR_COLUMNS_KEPT } from './bars/limits.ts'
import { watermarkMs } from './bars/watermark.ts'
import { restoreParts, saveMarket } from './checkpoint/checkpoint.ts'
import type { EventWriter } from './events/event-writer.ts'
import { createParts, type MarketOptions, type MarketParts } from './market-parts.ts'
import { frozenList } from './output/frozen-list.ts'
import { filterRanking, timeStateOf } from './output/list-filter.ts'
import { toSnapshot } from './output/projections.ts'
import type {
  BarColumns,
  Bars,
  BarsQuery,
  BarsText,
  Changes,
  DataPointText,
  FrozenList,
  ListFilter,
  MarketStats,
  MarketTotals,
  Page,
  PageQuery,
  RowFields,
  SolPriceReport,
  TextForm,
  TokenProfile,
  WithGaps,
} from './types.ts'

export type { MarketOptions }

/**
 * The engine: synchronous and deterministic. It reads no clock, file or random number, so the same events with the same times of
 * receipt give the same answers. Times are Unix ms. Reads of a mint that is not held give null.
 */
export class Market {
  #parts: MarketParts
  readonly #columnBuffer = new ColumnBuffer(BAR_COLUMNS_KEPT)
  // Used by every event.
  #events: EventWriter
  #onChanged: (() => void) | null = null
  #generation = 0

  constructor(options: MarketOptions = {}) {
    this.#parts = createParts(options)
    this.#events = this.#parts.events
  }

  /**
   * A market as it was saved: from then on it answers as the saved one would have. Only the change log begins anew, at the
   * position of then, or at `firstSeq` if that is higher. `tokensMax` and how long a token is new may differ from those of then.
   * @param read gives a section of `save` by its name; null: there is none. Each is asked for once.
   * @throws CheckpointError if sections are missing, damaged, of another format, or do not fit into the bounds.
   */
  static restore(options: MarketOptions, read: (name: string) => Uint8Array | null): Market {
    const slices = Market.restoring(options, read)
    for (;;) {
      const { done, value } = slices.next()
      if (done) return value
    }
  }

  /** The same in slices, for a process that has other things to do: it yields after each, and returns the market. */
  static *restoring(
    options: MarketOptions,
    read: (name: string) => Uint8Array | null,
  ): Generator<void, Market> {
    const market = new Market(options)
    yield
    yield* restoreParts(market.#parts, read)
    return market
  }

  /**
   * Becomes another market, which must not be used any more. Whoever watches is told; followers find that their positions are not
   * known here, unless the other's change log has them. Lists that were frozen before keep showing the market of then.
   */
  adopt(other: Market): void {
    const parts = other.#parts
    other.watch(null)
    this.#generation++
    this.#parts = parts
    this.#events = parts.events
    parts.changes.watch(this.#onChanged)
    this.#onChanged?.()
  }

  /** What its answers depend on besides the events. */
  get settings(): EngineSettings {
    return this.#parts.settings
  }

  /** Market time: the highest time of receipt or `advanceTo` so far. */
  get timeMs(): number {
    return this.#parts.time.nowMs
  }

  /** Market time that passed twice, the latest such spans: also before a checkpoint from which this market goes on. */
  get rewound(): readonly RewoundSpan[] {
    return this.#parts.time.rewound
  }

  /** Bars that reach beyond this market time stay open, since feeds heal; Infinity: none does. */
  get heldFromMs(): number {
    return this.#parts.time.heldFromMs
  }

  /** What tells that a trade of this time, which was refused as late, is missing from gaps whose feeds heal: to be applied next. */
  refusalsOf(tsMs: number): DisconnectEvent[] {
    return this.#parts.gaps.refusalsOf(tsMs, this.timeMs)
  }

  /** The most tokens that the market holds. */
  get tokensMax(): number {
    return this.#parts.tokens.capacity
  }

  /** Position of the newest change of a row. Each change gets the next position; later runs go on above it. */
  get seq(): number {
    return this.#parts.log.seq
  }

  /** The position at which this run began: that of the last event `run`. What a lower one stood for is not known. */
  get firstSeq(): number {
    return this.#parts.log.firstSeq
  }

  /** Raised whenever another market takes the place of this one as a whole: lists that were frozen before do not change any more. */
  get generation(): number {
    return this.#generation
  }

  /** The lowest position from which `changesSince` still finds every change. */
  get oldestSince(): number {
    return this.#parts.log.oldestSince
  }

  /** The latest price of SOL; null while none is known. */
  get solPrice(): SolPriceReport | null {
    const { solPrice } = this.#parts
    const { usd, source, reportedAtMs, maxAgeMs } = solPrice
    if (Number.isNaN(usd)) return null
    return { usd, source, atMs: reportedAtMs, maxAgeMs, isStale: solPrice.isStaleAt(this.timeMs) }
  }

  /** The price of SOL that a trade of this time is priced with; NaN where none is known, or the latest was too old by then. */
  solPriceUsdAt(timeMs: number): number {
    return this.#parts.solPrice.usdAt(timeMs)
  }

  /** Applies an event. @returns why it was not taken; then nothing but the time has changed. */
  apply(event: MarketEvent, receivedAtMs: number): EventRejection | null {
    this.advanceTo(receivedAtMs)
    return this.#events.apply(event)
  }

  /** Trades of these mints, PREFETCHED_MAX at most, are applied next. They take less time then; nothing that can be read changes. */
  prefetch(mints: readonly string[]): void {
    this.#parts.prefetch.run(mints)
  }

  /** Moves the market's time forward; an earlier time does nothing. */
  advanceTo(timeMs: number): void {
    this.#events.advanceTo(timeMs)
  }

  /** Puts the tokens into their lists, which a restored market otherwise does at the first read: in slices, it yields after each. No
   *  event may come meanwhile. */
  ranking(): Iterable<void> {
    return this.#parts.rankings.ranking()
  }

  /** The whole state after the latest event. A section may be a view of the market's memory: all have to be taken before the next
   *  event or `advanceTo`. The same state gives the same sections. */
  save(): Iterable<Section> {
    return saveMarket(this.#parts)
  }

  has(mint: string): boolean {
    return this.#parts.tokens.slotOf(mint) !== -1
  }

  /** The position at which the token came that is held; null: none is. One that was evicted and came back has another. */
  heldSince(mint: string): number | null {
    const slot = this.#parts.tokens.slotOf(mint)
    return slot === -1 ? null : this.#parts.tokens.heldSince(slot)
  }

  /** The mints of all tokens. */
  *mints(): Iterable<string> {
    const { tokens } = this.#parts
    for (const { mint } of tokens.metadata) yield mint
  }

  /** The mints that are first by a sort, the highest first, at most `count`. */
  first(sort: Sort, count: number): string[] {
    const { rankings, tokens } = this.#parts
    return Array.from(rankings.of('all', sort).slice(0, count, true), (slot) => tokens.metadata[slot].mint)
  }

  page(query: PageQuery): Page {
    return this.#parts.pages.page(query)
  }

  /** Renders at most `rowsMax` rows of that page in advance, so that a large page is not rendered in one go.
   *  @returns whether all its rows are rendered now; then `page` is cheap. */
  preparePage({ tab, sort, order, offset, limit, fields = null }: PageQuery, rowsMax: number): boolean {
    const slots = this.#parts.rankings.of(tab, sort).slice(offset, limit, order === 'desc')
    return this.#parts.pages.prepare(slots, rowsMax, fields)
  }

  /** Freezes the present order of a list. This copies no rows. With a filter it looks at every token of the tab once, and only
   *  those that pass now are on the list. */
  freeze(tab: Tab, sort: Sort, filter: ListFilter | null = null): FrozenList {
    const parts = this.#parts
    const { rankings, changes } = parts
    const { seq } = changes
    // Before the order is taken, which may bring more of what time has moved into it.
    const timeState = timeStateOf(sort, filter, parts)
    return frozenList({
      tab,
      sort,
      filter,
      ranking:
        filter === null ? rankings.of(tab, sort).snapshot() : filterRanking({ tab, sort }, filter, parts),
      tokens: parts.tokens,
      pages: parts.pages,
      version: seq,
      isNewest: () => changes.seq === seq && timeStateOf(sort, filter, parts) === timeState,
    })
  }

  /** At most a second of market time old, but what time alone has moved, which is as far as in the orders by these figures. */
  totals(): MarketTotals {
    return this.#parts.totals.read()
  }

  /** At most `rowsMax` rows of a tab that changed after `since`, each once and as it is now; rows that left the tab included. */
  changesSince(since: number, tab: Tab, rowsMax: number, fields: RowFields | null = null): Changes {
    return this.#parts.changes.changesSince(since, tab, rowsMax, fields)
  }

  /** Visits the mints whose row changed or that were evicted after `since`, oldest change first, repeats included. */
  changedMints(since: number, visit: (mint: string) => void): void {
    this.#parts.changes.changedMints(since, visit)
  }

  /** Position of the last change of a token's row; 0 for a mint that is not held. */
  changedSeq(mint: string): number {
    const slot = this.#parts.tokens.slotOf(mint)
    return slot === -1 ? 0 : this.#parts.changes.changedSeq(slot)
  }

  /** Calls `onChanged` at each change of a row or a gap, during the write: it must not read the market. Replaces the watcher before. */
  watch(onChanged: (() => void) | null): void {
    this.#onChanged = onChanged
    this.#parts.changes.watch(onChanged)
  }

  item(mint: string): MarketItem | null {
    const slot = this.#parts.tokens.slotOf(mint)
    return slot === -1 ? null : this.#parts.projections.item(slot, this.timeMs)
  }

  profile(mint: string): TokenProfile | null {
    const slot = this.#parts.tokens.slotOf(mint)
    return slot === -1 ? null : this.#parts.projections.profile(slot)
  }

  /** The DataPoint as of now. */
  datapoint(mint: string): DataPoint | null {
    const slot = this.#parts.tokens.slotOf(mint)
    return slot === -1 ? null : this.#parts.projections.datapoint(slot, this.timeMs)
  }

  /** The DataPoint as JSON, at most a second old, with a version for ETags. Callers must not write to it. */
  datapointJson(mint: string): DataPointText | null {
    const slot = this.#parts.tokens.slotOf(mint)
    if (slot === -1) return null
    const { datapoints, changes, tokens, solPrice, gaps } = this.#parts
    return datapoints.read(slot, this.timeMs, {
      seq: changes.changedSeq(slot),
      atMs: tokens.versionAtMs(slot),
      marketChangeCount: solPrice.changeCount + gaps.changeCount,
      marketChangedAtMs: Math.max(solPrice.changedAtMs, gaps.changedAtMs),
    })
  }

  /** The nine values that submissions are compared by, as of now. */
  snapshot(mint: string): SnapshotValues | null {
    const slot = this.#parts.tokens.slotOf(mint)
    return slot === -1 ? null : toSnapshot(this.#parts.projections.compare(slot, this.timeMs), 0)
  }

  /** The fields that the server adds to a submission, as of now, and whose they are. */
  enriched(mint: string): SourcedEnriched | null {
    const slot = this.#parts.tokens.slotOf(mint)
    return slot === -1 ? null : this.#parts.projections.enriched(slot, this.timeMs)
  }

  /** The nine values of the version that was in effect at the end of the millisecond `timeMs`, and before them those of versions that
   *  had ended in it and were served as of it, the newest first. None at a time at which the token was not held, or before the versions
   *  that are kept, which reach back five minutes at least. */
  versionsAt(mint: string, timeMs: number): SnapshotValues[] {
    const { tokens, projections, versions, datapoints } = this.#parts
    const slot = tokens.slotOf(mint)
    if (slot === -1) return []
    const atMs = Math.min(timeMs, this.timeMs)
    const served = datapoints.servedBefore(mint, atMs)
    // The present one shows other sums of its windows at other times.
    if (atMs >= tokens.versionAtMs(slot)) return [toSnapshot(projections.compare(slot, atMs), 0), ...served]
    const found = versions.find(slot, atMs)
    return found === null ? [...served] : [toSnapshot(found.values, found.at), ...served]
  }

  bars(query: BarsQuery): WithGaps<Bars> | null {
    const slot = this.#parts.tokens.slotOf(query.mint)
    if (slot === -1) return null
    const found = readBars(this.#parts.bars, slot, query, this.#watermarkMs(slot))
    return this.#withGaps(query, found, found.bars[0]?.t ?? 0, found.bars.length)
  }

  barColumns(query: BarsQuery): WithGaps<BarColumns> | null {
    const slot = this.#parts.tokens.slotOf(query.mint)
    if (slot === -1) return null
    const found = readColumns(this.#parts.bars, slot, query, this.#watermarkMs(slot), this.#columnBuffer)
    return this.#withGaps(query, found, found.t[0], found.rowCount)
  }

  barsText(query: BarsQuery, form: TextForm): WithGaps<BarsText> | null {
    const slot = this.#parts.tokens.slotOf(query.mint)
    if (slot === -1) return null
    const found = this.#parts.barTexts.read(slot, query, this.#watermarkMs(slot), form)
    return this.#withGaps(query, found, found.firstMs, found.rowCount)
  }

  /** Adds the gaps that touch the time of an answer, which then are part of its version. */
  #withGaps<Answer extends { version: string }>(
    query: BarsQuery,
    answer: Answer,
    firstMs: number,
    rowCount: number,
  ): WithGaps<Answer> {
    const { gaps } = this.#parts
    const { fromMs, beforeMs } = answeredInterval(query, firstMs, rowCount, this.timeMs)
    const incomplete = gaps.within(fromMs, beforeMs)
    const version = incomplete.length === 0 ? answer.version : `${answer.version}.g${gaps.changeCount}`
    return { ...answer, version, incomplete }
  }

  /** Accepted analyses by mint, of mints that are not held too. */
  analysisCounts(): Iterable<{ key: string; value: number }> {
    return this.#parts.analysisCounts.entries()
  }

  /** Bars of the mint that start before this time may lack trades, because the token was evicted and came back. 0: none. */
  barsWholeFromMs(mint: string): number {
    const slot = this.#parts.tokens.slotOf(mint)
    return slot === -1 ? 0 : this.#parts.tokens.barsWholeFromMs(slot)
  }

  /** From when on bars are held, where an answer of so many would have others from before that were dropped. 0: it lacks none. */
  barsHeldFromMs({ mint, tf, limit, fromMs }: BarsQuery, rowCount: number): number {
    const slot = this.#parts.tokens.slotOf(mint)
    const lostMs = slot === -1 ? 0 : this.#parts.bars.ring(TIMEFRAMES.indexOf(tf)).lostMs(slot)
    const isLacking = fromMs === null ? rowCount < limit : fromMs <= lostMs
    return lostMs > 0 && isLacking ? lostMs + TIMEFRAME_MS[tf] : 0
  }

  /** The start of the first interval of which a bar may still change or come to be: those before it are closed. 0: the mint is not held,
   *  or without trades. It goes back where a feed tells late that it heals. */
  barsOpenFromMs(mint: string, tf: Timeframe): number {
    const slot = this.#parts.tokens.slotOf(mint)
    return slot === -1 ? 0 : intervalStart(this.#watermarkMs(slot), TIMEFRAME_MS[tf])
  }

  /** The gaps that go on, and the newest that have ended, the newest first. */
  gaps(endedMax: number): { open: Gap[]; ended: Gap[] } {
    const { gaps } = this.#parts
    return { open: gaps.open, ended: gaps.latest(endedMax) }
  }

  /** Gaps that began or ended after an earlier call, each as it was then: `next` is what that call returned; null: none. `watch`
   *  tells when there are any. Of many at once the oldest are left out. @param end leaves out those from this number on */
  gapChanges(next: number | null, end?: number): { gaps: readonly Gap[]; next: number } {
    return this.#parts.gaps.changesAfter(next, end)
  }

  /** The `next` of a call that would have gaps that began or ended at a position of the market or later. */
  gapChangeAt(seq: number): number {
    return this.#parts.gaps.changeAt(seq)
  }

  /** Emits closed bars of the next `tokensMax` tokens that no later trade has made it emit: those of silent tokens. Calls go round
   *  all tokens. */
  emitClosedBars(tokensMax: number): void {
    this.#parts.sweep.run(tokensMax)
  }

  /** Emits, once more or for the first time, every bar that ended after `endedAfterMs` and is closed by now: those that a process
   *  that ended may have taken with it. Of a token and timeframe in order of time. */
  emitBarsEndedSince(endedAfterMs: number): void {
    this.#parts.sweep.emitEndedSince(endedAfterMs)
  }

  /** How many closed bars were given to `onBarClosed`, by index in TIMEFRAMES. */
  get barsEmitted(): readonly number[] {
    return this.#parts.barsEmitted
  }

  /** All bars that ended by this time were emitted, but for those of trades that arrived late. */
  get barsEmittedToMs(): number {
    return this.#parts.sweep.emittedToMs
  }

  stats(): MarketStats {
    const { trades, lifecycle, gaps, bars, tokens, versions } = this.#parts
    const { open } = gaps
    return {
      events: this.#events.eventCount,
      trades: trades.tradeCount,
      lateDropped: trades.lateCount,
      evicted: lifecycle.evictedCount,
      disconnects: this.#events.disconnectCount,
      enrichmentContradictions: { ...this.#events.contradictions },
      gaps: gaps.count,
      gapsOpen: open.length,
      gapsHealed: gaps.healedCount,
      gapsHealing: open.filter(({ healUntilMs }) => healUntilMs !== undefined).length,
      heldSeconds: bars.heldSeconds,
      earlierPriced: trades.earlierPricedCount,
      tokens: tokens.slotsUsed,
      tokensMax: tokens.capacity,
      versionsHeld: versions.held,
      versionsDroppedEarly: versions.droppedEarly,
      barsHeld: bars.held,
      barsReclaimed: bars.reclaimed,
    }
  }

  #watermarkMs(slot: number): number {
    return watermarkMs(this.#parts.tokens.columns, slot, this.#parts.time)
  }
}
