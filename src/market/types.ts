// What the market offers: its queries and their answers.

import type { z } from 'zod'
import type { solPriceSchema } from '../schema/api/status.ts'
import type { Bar, BarFill, BarShape, Timeframe } from '../schema/bar.ts'
import type { TokenTexts } from '../schema/datapoint.ts'
import type { Gap } from '../schema/event.ts'
import type { EnrichedField } from '../schema/features.ts'
import type { RowField } from '../schema/market-item.ts'
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

/** A DataPoint as JSON. */
export interface DataPointText {
  readonly json: Buffer
  /** The answer that has it alone, of which `json` is a part: an answer that is kept needs no copy. */
  readonly answer: Buffer
  readonly version: string
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
  /** Position (see `Market.seq`) as of which the order of the rows is exact. */
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

/** What rarely changes about a token. */
export interface TokenProfile extends TokenTexts {
  totalSupply: number | null
  createdAtMs: number | null
  graduated: boolean
}

/** The latest price of SOL, whatever the market time is. */
export type SolPriceReport = Omit<z.infer<typeof solPriceSchema>, 'ageMs'>

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
  /** Whether it is what would be frozen now. */
  isNewest(): boolean
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
