// What the market offers: its interface, its queries and their answers.

import type { Section } from '../lib/sections/sections.ts'
import type { Bar, BarFill, BarShape, Timeframe } from '../schema/bar.ts'
import type { DataPoint, Enriched, SnapshotValues, SourcedEnriched } from '../schema/datapoint.ts'
import type { EngineSettings, EventRejection, Gap, MarketEvent } from '../schema/event.ts'
import type { EnrichedField } from '../schema/features.ts'
import type { MarketItem, RowField } from '../schema/market-item.ts'
import type { Order, RangeFigure, Sort, Tab } from '../schema/vocabulary.ts'

export interface PageQuery {
  tab: Tab
  sort: Sort
  order: Order
  /** Rows wanted, 1 or more. */
  limit: number
  /** Rows skipped, 0 or more. */
  offset: number
  /** What its rows have; null: all that rows have by themselves. */
  fields?: RowFields | null
}

/** A choice of a row's fields. */
export interface RowFields {
  /** The same for the same fields in the same order. */
  key: string
  /** `mint` among them. */
  fields: readonly RowField[]
}

/** The tokens whose figure is known and within bounds, both inclusive; null: no bound. */
export interface FigureRange {
  figure: RangeFigure
  min: number | null
  max: number | null
}

/** The whole market in a few numbers. Sums are of all tokens that are held. */
export interface MarketTotals {
  tokens: number
  /** Created within the last 24 hours. */
  launches24h: number
  volume24hUsd: number
  buys24h: number
  sells24h: number
}

/** Which tokens of a list a reader wants. */
export interface ListFilter {
  /** A word of the token's name or symbol, or its mint, begins with this, whatever the case; null: any token. */
  search: string | null
  /** Accepted analyses at most; null: any number. */
  analysesMax: number | null
  ranges?: readonly FigureRange[]
  /** One of these; null: any token. */
  mints?: readonly string[] | null
}

/** Rows as of one moment; later changes do not show. Readers share it and must not write to its buffers. */
export interface Page {
  /** One JSON object and a newline for each row, in order. */
  readonly lines: readonly Buffer[]
  /** The lines joined, anew at each call. */
  readonly ndjson: Buffer
  /** Length of `ndjson`. */
  readonly bytes: number
  readonly rowCount: number
  /** Rows of the whole list, before limit and offset. */
  readonly total: number
  /** Position (see `MarketEngine.seq`) as of which the order of the rows is exact. */
  readonly version: number
  /** Changes whenever `ndjson` may have: with the order, a row, or the 24-hour window that rows show. */
  readonly contentVersion: string
  /** Whether it is what would be read now. */
  isNewest(): boolean
  /** Whether its rows are still what they were, in whatever order they are now. */
  isCurrent(): boolean
}

export interface BarsQuery {
  mint: string
  tf: Timeframe
  /** 1 or more. Where more bars qualify, the most recent ones are returned. */
  limit: number
  /** Inclusive bounds on a bar's start, Unix ms. */
  fromMs: number | null
  toMs: number | null
  fill: BarFill
}

/** An answer with the gaps that touch the time that it speaks of: it may lack trades there. */
export type WithGaps<Answer> = Answer & { incomplete: readonly Gap[] }

export interface Bars {
  /** Ascending; the forming bar last. */
  bars: Bar[]
  /** Intervals without a trade between the first and the last bar returned, filled or not. */
  gaps: number
  /** Changes whenever the answer may have changed. */
  version: string
}

/** Bars as columns, as Arrow has them. They are views of memory that the next call may overwrite: copy them at once. */
export interface BarColumns {
  rowCount: number
  t: Float64Array
  o: Float64Array
  h: Float64Array
  l: Float64Array
  c: Float64Array
  v: Float64Array
  n: Int32Array
  /** 1 for closed bars. */
  closed: Uint8Array
  gaps: number
  version: string
}

/** The form of bars as JSON text. The separator follows each bar, the last one too. */
export interface TextForm {
  shape: BarShape
  separator: ',' | '\n'
}

/** Bars as JSON text: `closed`, then `open`. */
export interface BarsText {
  /** Closed bars. A view of memory that the next call may overwrite: copy it at once. */
  closed: Buffer
  /** The bars after them. */
  open: string
  rowCount: number
  /** Start of the first row, Unix ms; 0 without rows. */
  firstMs: number
  gaps: number
  version: string
}

export interface MarketStats {
  tokens: number
  tokensMax: number
  events: number
  trades: number
  lateDropped: number
  evicted: number
  disconnects: number
  /** By enriched field: answers that contradict a fresh one of another source, since the start. */
  enrichmentContradictions: Partial<Record<EnrichedField, number>>
  /** Gaps that have begun so far, and those that go on. */
  gaps: number
  gapsOpen: number
  /** Of those that go on, the ones whose feeds bring what is missing; of those that ended, the ones that were healed. */
  gapsHealing: number
  gapsHealed: number
  /** Seconds of tokens that are held open because a feed heals. */
  heldSeconds: number
  /** Trades of gaps that were healed that were worth what SOL was before the gap. */
  earlierPriced: number
  versionsHeld: number
  versionsDroppedEarly: number
  barsHeld: number
  barsReclaimed: number
}

/** What a token says of itself. */
export interface TokenTexts {
  name: string
  symbol: string
  description: string | null
  imageUri: string | null
  creator: string | null
  website: string | null
  twitter: string | null
  telegram: string | null
}

/** What rarely changes about a token. */
export interface TokenProfile extends TokenTexts {
  totalSupply: number | null
  createdAtMs: number | null
  graduated: boolean
}

/**
 * What follows from the trades that the market took. Each is null where it has not watched all of its window: since its beginning or
 * the token's launch, without a gap, and with every trade's wallet or price.
 */
export interface OwnTradeFigures
  extends Pick<
    Enriched,
    'unique_wallet_24h' | 'unique_wallet_1h' | 'buy_volume_24h_usd' | 'sell_volume_24h_usd'
  > {
  /** Market time, Unix ms. */
  asOfMs: number
}

/** The latest price of SOL. */
export interface SolPriceReport {
  usd: number
  /** Who reported it last. */
  source: string
  /** Of when the report is, by its source's time, Unix ms; at most the market time of then. */
  atMs: number
  /** How old it may be for a trade to be priced with it, ms; null: any age. */
  maxAgeMs: number | null
  /** Whether it is too old by now: trades without a price in USD are refused. */
  isStale: boolean
}

/**
 * The engine: synchronous and deterministic. It reads no clock, file or random number, so the same events with the same times of
 * receipt give the same answers. Times are Unix ms. Reads of a mint that is not held give null.
 */
export interface MarketEngine {
  /** Market time: the highest time of receipt or `advanceTo` so far. */
  readonly timeMs: number
  /** What its answers depend on besides the events. */
  readonly settings: EngineSettings
  /** The most tokens that the market holds. */
  readonly tokensMax: number
  /** Position of the newest change of a row. Each change gets the next position; later runs go on above it. */
  readonly seq: number
  /** The position at which this run began: that of the last event `run`. What a lower one stood for is not known. */
  readonly firstSeq: number
  /** Raised whenever another market takes the place of this one as a whole: lists that were frozen before do not change any more. */
  readonly generation: number
  /** The latest price of SOL; null while none is known. */
  readonly solPrice: SolPriceReport | null
  /** The price of SOL that a trade of this time is priced with; NaN where none is known, or the latest was too old by then. */
  solPriceUsdAt(timeMs: number): number
  /** Applies an event. @returns why it was not taken; then nothing but the time has changed. */
  apply(event: MarketEvent, receivedAtMs: number): EventRejection | null
  /** Trades of these mints, PREFETCHED_MAX at most, are applied next. They take less time then; nothing that can be read changes. */
  prefetch(mints: readonly string[]): void
  /** Moves the market's time forward; an earlier time does nothing. */
  advanceTo(timeMs: number): void
  /** The whole state after the latest event. A section may be a view of the market's memory: all have to be taken before the next
   *  event or `advanceTo`. The same state gives the same sections. */
  save(): Iterable<Section>
  has(mint: string): boolean
  page(query: PageQuery): Page
  /** Renders at most `rowsMax` rows of that page in advance, so that a large page is not rendered in one go.
   *  @returns whether all its rows are rendered now; then `page` is cheap. */
  preparePage(query: PageQuery, rowsMax: number): boolean
  /** Freezes the present order of a list. This copies no rows. With a filter it looks at every token of the tab once, and only
   *  those that pass now are on the list. */
  freeze(tab: Tab, sort: Sort, filter?: ListFilter | null): FrozenList
  /** The lowest position from which `changesSince` still finds every change. */
  readonly oldestSince: number
  /** At most `rowsMax` rows of a tab that changed after `since`, each once and as it is now; rows that left the tab included. */
  changesSince(since: number, tab: Tab, rowsMax: number, fields?: RowFields | null): Changes
  /** Visits the mints whose row changed or that were evicted after `since`, oldest change first, repeats included. */
  changedMints(since: number, visit: (mint: string) => void): void
  /** Position of the last change of a token's row; 0 for a mint that is not held. */
  changedSeq(mint: string): number
  /** Calls `onChanged` at each change of a row or a gap, during the write: it must not read the market. Replaces the watcher before. */
  watch(onChanged: (() => void) | null): void
  item(mint: string): MarketItem | null
  /** At most a second of market time old. */
  totals(): MarketTotals
  profile(mint: string): TokenProfile | null
  /** The DataPoint as of now. */
  datapoint(mint: string): DataPoint | null
  /** The DataPoint as JSON, at most a second old, with a version for ETags. Callers must not write to it. */
  datapointJson(mint: string): { json: Buffer; version: string } | null
  /** The nine values that submissions are compared by, as of now. */
  snapshot(mint: string): SnapshotValues | null
  /** The fields that the server adds to a submission, as of now, and whose they are. */
  enriched(mint: string): SourcedEnriched | null
  /** What the market's own trades say of the token, as of now: a part of `enriched`. */
  ownTradeFigures(mint: string): OwnTradeFigures | null
  /** The nine values of each version that was in effect in the millisecond `timeMs`, newest first: of many the newest
   *  VERSIONS_ANSWERED_MAX. None at a time at which the token was not held, or before the versions that are kept, which reach back five
   *  minutes at least. */
  versionsAt(mint: string, timeMs: number): SnapshotValues[]
  bars(query: BarsQuery): WithGaps<Bars> | null
  barColumns(query: BarsQuery): WithGaps<BarColumns> | null
  barsText(query: BarsQuery, form: TextForm): WithGaps<BarsText> | null
  /** Accepted analyses by mint, of mints that are not held too. */
  analysisCounts(): Iterable<{ key: string; value: number }>
  /** Bars of the mint that start before this time may lack trades, because the token was evicted and came back. 0: none. */
  barsWholeFromMs(mint: string): number
  /** The gaps that go on, and the newest that have ended, the newest first. */
  gaps(endedMax: number): { open: Gap[]; ended: Gap[] }
  /** Gaps that began or ended after an earlier call, each as it was then: `next` is what that call returned; null: none. `watch`
   *  tells when there are any. Of many at once the oldest are left out. */
  gapChanges(next: number | null): { gaps: readonly Gap[]; next: number }
  /** Emits closed bars of the next `tokensMax` tokens that no later trade has made it emit: those of silent tokens. Calls go round
   *  all tokens. */
  emitClosedBars(tokensMax: number): void
  /** Emits, once more or for the first time, every bar that ended after `endedAfterMs` and is closed by now: those that a process
   *  that ended may have taken with it. Of a token and timeframe in order of time. */
  emitBarsEndedSince(endedAfterMs: number): void
  /** All bars that ended by this time were emitted, but for those of trades that arrived late. */
  readonly barsEmittedToMs: number
  stats(): MarketStats
}

/** Rows as NDJSON, each with its position `seq` as last member; or the mint of an evicted token. A reader who has it is at `seq`. */
export type ChangePart = { rows: Buffer; seq: number } | { left: string; seq: number }

/** Changes by ascending position. A reader may go on from any of these positions and misses nothing. */
export interface Changes {
  parts: readonly ChangePart[]
  /** The position to go on from after all parts. */
  nextSeq: number
}

/** The order of a list at one moment. Its pages neither repeat nor skip a token; their rows are as of the read. */
export interface FrozenList {
  tab: Tab
  sort: Sort
  filter: ListFilter | null
  /** Position at which it was frozen. */
  version: number
  size: number
  /** @param fields see `PageQuery.fields` */
  page(order: Order, offset: number, limit: number, fields?: RowFields | null): Page
  /** As the market's `preparePage`. */
  preparePage(
    order: Order,
    offset: number,
    limit: number,
    rowsMax: number,
    fields?: RowFields | null,
  ): boolean
}
