import type { Bar, BarFill, BarShape, Timeframe } from '../schema/bar.ts'
import type { DataPoint, Enriched, SnapshotValues } from '../schema/datapoint.ts'
import type { EventRejection, MarketEvent } from '../schema/event.ts'
import type { MarketItem } from '../schema/market-item.ts'
import type { Order, Sort, Tab } from '../schema/vocabulary.ts'

export interface PageQuery {
  tab: Tab
  sort: Sort
  order: Order
  /** Rows wanted, 1 or more. */
  limit: number
  /** Rows skipped, 0 or more. */
  offset: number
}

/** Rows as of one moment, whatever changes after it. Shared with other readers: never written to. */
export interface Page {
  /** One JSON object and a newline for each row, in order. */
  readonly lines: readonly Buffer[]
  /** The same joined: made for whoever asks, and kept where the page is small. */
  readonly ndjson: Buffer
  /** The same, while it is kept. It may go at any time: a slow reader is not to hold it. */
  readonly joined: Buffer | null
  /** Length of `ndjson`. */
  readonly bytes: number
  readonly rowCount: number
  /** Rows of the whole list, before limit and offset. */
  readonly total: number
  /** Market sequence number as of which the order of the rows is exact. */
  readonly version: number
  /** Changes whenever `ndjson` may have: with the order, with any row, and with the time that rows depend on. */
  readonly contentVersion: string
}

export interface BarsQuery {
  mint: string
  tf: Timeframe
  /** Bars wanted, 1 or more: the most recent ones that qualify. */
  limit: number
  /** Inclusive bounds on a bar's start, Unix ms. */
  fromMs: number | null
  toMs: number | null
  fill: BarFill
}

export interface Bars {
  /** Ascending; the forming bar last. */
  bars: Bar[]
  /** Empty intervals between the first and the last bar returned (before filling). */
  gaps: number
  /** Changes whenever the answer may have changed. */
  version: string
}

/** The same, column by column: the shape of Arrow. Views of memory that the next call may write to: copied at once. */
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

/** How a reader wants the text of bars; the separator stands after each. */
export interface TextForm {
  shape: BarShape
  separator: ',' | '\n'
}

/** The same as JSON objects, with one separator after each, the last one too. */
export interface BarsText {
  /** Bars that never change. A view of memory that the next call may write to: copied at once. */
  closed: Buffer
  /** The bars after them. */
  open: string
  rowCount: number
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
  versionsHeld: number
  versionsDroppedEarly: number
  barsHeld: number
  barsReclaimed: number
}

/** What a token says of itself, and what is settled about it: little of it ever changes. */
export interface TokenProfile {
  name: string
  symbol: string
  description: string | null
  imageUri: string | null
  creator: string | null
  website: string | null
  twitter: string | null
  telegram: string | null
  totalSupply: number | null
  createdAtMs: number | null
  graduated: boolean
}

/** A closed bar of a minute or longer; no later trade changes it. */
export interface ClosedBar {
  mint: string
  tf: Timeframe
  /** Start, Unix ms. */
  t: number
  /** Prices and volume, USD. */
  o: number
  h: number
  l: number
  c: number
  v: number
  /** Trades. */
  n: number
  /** Volume of the buys, USD, and their count. */
  buyV: number
  buys: number
  /** Market time at which it was found to be closed. */
  closedAtMs: number
  /** A bar that starts before this market time may lack trades. */
  watchedSinceMs: number
}

/** The price of SOL in force, who reported it last, and when (market time, Unix ms). */
export interface SolPriceReport {
  usd: number
  source: string
  atMs: number
}

/** The engine. Synchronous, deterministic, single writer; no clock, no I/O. */
export interface MarketEngine {
  /** Market time, Unix ms: the highest time of receipt or `advanceTo` so far. */
  readonly timeMs: number
  /** Tokens that the market can hold. */
  readonly tokensMax: number
  /** Position of the newest change: each gets the next one. Never goes back, nor do runs share one. */
  readonly seq: number
  /** The position at which this run began: positions below it are of earlier runs. */
  readonly firstSeq: number
  apply(event: MarketEvent, receivedAtMs: number): EventRejection | null
  /** Carries the market's time forward; never back. */
  advanceTo(timeMs: number): void
  has(mint: string): boolean
  page(query: PageQuery): Page
  /** Makes rows of that page which are not made yet, at most `rowsMax`, so that a large page needs not be made in one go.
   *  @returns whether all of them are made now: then the page itself costs little. */
  preparePage(query: PageQuery, rowsMax: number): boolean
  /** Freezes the present order of a list, at a cost that does not grow with its rows. */
  freeze(tab: Tab, sort: Sort): FrozenList
  /** The lowest position from which `changesSince` still finds every change. */
  readonly oldestSince: number
  /** What changed in a tab after `since`, each row once at its newest, those that left it included; at most `rowsMax`. */
  changesSince(since: number, tab: Tab, rowsMax: number): Changes
  /** Visits the mints whose row changed or went after `since`, oldest change first, repeats included. */
  changedMints(since: number, visit: (mint: string) => void): void
  /** Number of the last change of a token's row; 0 for an unknown mint. */
  changedSeq(mint: string): number
  /** Calls back at each change of a row, inside the write: it must not look, only remember. One watcher at most. */
  watch(onChanged: (() => void) | null): void
  item(mint: string): MarketItem | null
  profile(mint: string): TokenProfile | null
  /** The DataPoint as of now, or null for an unknown mint. */
  datapoint(mint: string): DataPoint | null
  /** The same as JSON text as of when it was made, less than a second ago; with its version for ETags. Never written to. */
  datapointJson(mint: string): { json: Buffer; version: string } | null
  /** The nine compared values as of now. */
  snapshot(mint: string): SnapshotValues | null
  /** What the server resolves and no client sends. */
  enriched(mint: string): Enriched | null
  /** The nine values of the version in effect at `timeMs`; null for an unknown mint, one younger than that, or a time
   *  before the versions held (five minutes at least). */
  asOf(mint: string, timeMs: number): SnapshotValues | null
  bars(query: BarsQuery): Bars | null
  barColumns(query: BarsQuery): BarColumns | null
  barsText(query: BarsQuery, form: TextForm): BarsText | null
  /** Bars of the mint that start before this, Unix ms, may lack trades: it was held, gave way to another and came back.
   *  0: all are whole. */
  barsWholeFromMs(mint: string): number
  /** Hands out the closed bars of up to `tokensMax` tokens that are silent; the next call goes on with others. */
  emitClosedBars(tokensMax: number): void
  /** All bars that ended by this time have been handed out: those of tokens whose trades arrive in time. */
  readonly barsEmittedToMs: number
  stats(): MarketStats
}

/** Rows as NDJSON whose objects bear `seq`, or a token that was evicted; `seq` is the position that is reached with it. */
export type ChangePart = { rows: Buffer; seq: number } | { left: string; seq: number }

/** What changed, by ascending position: whoever has read up to any of them has missed nothing before it. */
export interface Changes {
  parts: readonly ChangePart[]
  /** Where to go on from. */
  nextSeq: number
}

/** One frozen order of a list: its pages neither repeat nor skip, though their rows are the newest. */
export interface FrozenList {
  tab: Tab
  sort: Sort
  /** Market sequence number at which it was frozen. */
  version: number
  size: number
  page(order: Order, offset: number, limit: number): Page
  /** As the market's `preparePage`. */
  preparePage(order: Order, offset: number, limit: number, rowsMax: number): boolean
}
