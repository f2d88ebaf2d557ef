// Market events and their schemas. Records on the wire and events in the engine are the same, so that push, replay and simulation
// share one type.
import { z } from 'zod'
import { truncateText } from '../lib/text/truncate-text.ts'
import { amount, count, description, positive, price, time as ts, uri, word } from './bounds.ts'
import { patchFieldsSchema } from './datapoint.ts'
import { isMint, MINT_SHAPE } from './mint.ts'
import { toQuoteMint } from './quote.ts'

const mint = z
  .string()
  .refine(isMint, { error: 'not a base58 address of 32 bytes', params: { code: 'invalid_mint' } })
  .transform((value) => truncateText(value, MINT_SHAPE.maxLength))
const quoteMint = mint.transform(toQuoteMint)

export const tokenEventSchema = z.object({
  type: z.literal('token'),
  mint,
  ts,
  name: word,
  symbol: word,
  uri: uri.nullish(),
  description: description.nullish(),
  image_uri: uri.nullish(),
  creator: word.nullish(),
  website: uri.nullish(),
  twitter: uri.nullish(),
  telegram: uri.nullish(),
  totalSupply: positive.nullish(),
  quoteMint: quoteMint.nullish().meta({ description: 'What its curve is paid in' }),
  isMayhem: z.boolean().nullish().meta({ description: 'Whether it trades in mayhem mode' }),
  curveTokens: positive.nullish().meta({ description: 'Tokens that its curve had to sell at first' }),
})

export const tradeEventSchema = z
  .object({
    type: z.literal('trade'),
    mint,
    ts,
    side: z.enum(['buy', 'sell']),
    tokenAmount: amount,
    priceUsd: price.nullish(),
    solAmount: amount.nullish(),
    vSol: positive.nullish(),
    vTokens: positive.nullish(),
    wallet: word.nullish(),
    tx: word.nullish(),
    quoteMint: quoteMint
      .nullish()
      .meta({ description: 'What the trade was paid in; without it, or of 32 zero bytes: SOL' }),
    quoteAmount: amount.nullish().meta({ description: 'How much of it was paid' }),
    vQuote: positive
      .nullish()
      .meta({ description: 'Virtual reserve of the quote on the curve or in the pool, after the trade' }),
    quoteReserve: amount
      .nullish()
      .meta({ description: 'What the curve or the pool holds of the quote, after the trade' }),
    curveTokens: amount
      .nullish()
      .meta({ description: 'Tokens that the curve has left to sell, after the trade' }),
    slot: count.nullish().meta({ description: 'Number of the block' }),
    eventIndex: count.nullish().meta({ description: 'Place of the trade in its transaction' }),
  })
  .refine((trade) => trade.priceUsd != null || trade.solAmount != null || trade.quoteMint != null, {
    error: 'priceUsd, solAmount or quoteMint must be there',
    params: { code: 'price_missing' },
  })

/** Fields of a trade that says what it was paid in, or where it stands on the chain. */
export const QUOTE_FIELDS = [
  'quoteMint',
  'quoteAmount',
  'vQuote',
  'quoteReserve',
  'curveTokens',
  'slot',
  'eventIndex',
] as const

/** Whether a trade has one of these. Every trade is asked, so each is named: in a loop it takes 80 ns instead of one. */
export const hasQuoteFields = (trade: { [Field in (typeof QUOTE_FIELDS)[number]]?: unknown }): boolean =>
  trade.quoteMint != null ||
  trade.slot != null ||
  trade.quoteAmount != null ||
  trade.vQuote != null ||
  trade.quoteReserve != null ||
  trade.curveTokens != null ||
  trade.eventIndex != null

export const patchEventSchema = z.object({
  type: z.literal('patch'),
  mint,
  ts,
  fields: patchFieldsSchema.meta({
    description:
      'What to set; null: unknown. Of `priceUsd` and `priceSol` one that is not named follows from the other by the price of SOL, as in a trade, or is unknown; `priceSol` null alone says nothing of the price in USD',
  }),
})
export const graduatedEventSchema = z.object({
  type: z.literal('graduated'),
  mint,
  ts,
  pool: word.nullish(),
})
export const liveEventSchema = z.object({
  type: z.literal('live'),
  mint,
  ts,
  isLive: z.boolean(),
  viewerCount: count.nullish(),
})
export const solPriceEventSchema = z.object({ type: z.literal('solPrice'), ts, usd: price })
/**
 * Why a part of a gap was not healed: more requests would have been needed than the feed may make; it was longer ago than the feed
 * goes back; its source does not keep it any more; its source refuses it, or the market did, as too late.
 */
export const MISSING_REASONS = ['budget', 'too_long', 'pruned', 'refused'] as const
/** Parts of one gap that an event tells, and that the market keeps: more are one that covers them. */
export const MISSING_PARTS_MAX = 256

const missingPartSchema = z
  .object({
    fromMs: ts.meta({ description: 'Its first moment, Unix ms' }),
    toMs: ts.meta({ description: 'Its last moment, Unix ms' }),
    reason: z.enum(MISSING_REASONS).meta({ description: 'Why it was not brought' }),
  })
  .refine(({ fromMs, toMs }) => fromMs <= toMs, {
    path: ['fromMs'],
    error: 'later than toMs',
    params: { code: 'from_after_to' },
  })
/** A part of a gap that stays missing. */
export type MissingPart = z.infer<typeof missingPartSchema>

/** A feed that pushes tells that it has lost its own source, or that it has it again. */
export const disconnectRecordSchema = z
  .object({
    type: z.literal('disconnect'),
    ts,
    sinceMs: ts.nullish().meta({ description: 'When it last had data, Unix ms; without it: `ts`' }),
    healUntilMs: ts.nullish().meta({
      description:
        'It will send what it has missed and then `reconnect` with `healed`, by this time, Unix ms: until then bars that the gap touches stay open',
    }),
    missing: z.array(missingPartSchema).max(MISSING_PARTS_MAX).nullish().meta({
      description:
        'Parts of the gap that are known by now to stay missing: they do however it ends, also where the program that sends is another one by then. Counts with `healUntilMs` only',
    }),
  })
  .refine(({ ts, sinceMs }) => sinceMs == null || sinceMs <= ts, {
    path: ['sinceMs'],
    error: 'later than ts',
    params: { code: 'since_after_ts' },
  })
export const reconnectRecordSchema = z.object({
  type: z.literal('reconnect'),
  ts,
  healed: z
    .boolean()
    .nullish()
    .meta({ description: 'What was missed has been sent since, but for `missing`; without it: nothing' }),
  missing: z
    .array(missingPartSchema)
    .max(MISSING_PARTS_MAX)
    .nullish()
    .meta({ description: 'Parts of the gap that stay missing. Counts with `healed` only' }),
})

/** The records that a feed may push. */
export const ingestRecordSchema = z.discriminatedUnion('type', [
  tokenEventSchema,
  tradeEventSchema,
  patchEventSchema,
  graduatedEventSchema,
  liveEventSchema,
  solPriceEventSchema,
  disconnectRecordSchema,
  reconnectRecordSchema,
])

export type TokenEvent = z.infer<typeof tokenEventSchema>
export type TradeEvent = z.infer<typeof tradeEventSchema>
export type PatchEvent = z.infer<typeof patchEventSchema>
export type GraduatedEvent = z.infer<typeof graduatedEventSchema>
export type LiveEvent = z.infer<typeof liveEventSchema>
/** A price of SOL. One without a source was pushed. */
export type SolPriceEvent = z.infer<typeof solPriceEventSchema> & {
  source?: 'setting' | 'birdeye' | 'simulator' | 'pyth'
}
/** A feed lost its source: data may be missing until it is connected again. */
export interface DisconnectEvent {
  type: 'disconnect'
  ts: number
  feed: string
  /** When the feed last had data, Unix ms; data may be missing from then on. Without it: from `ts`. */
  sinceMs?: number
  /**
   * The feed heals: it will deliver what is missing, with the times of then and in their order, and tell so by a `reconnect`. Until
   * this market time no bar closes that the gap touches. Without it: what is missing stays missing.
   */
  healUntilMs?: number
  /** Parts of what is missing that the feed knows by now it will not deliver: its `reconnect` need not tell them again. */
  missing?: MissingPart[]
  /** The server did not run since: no bar that ended after `sinceMs` has closed. */
  isDowntime?: true
  /** Bars that reach beyond this market time were still open when it was told, since feeds heal. Set where it is recorded. */
  heldFromMs?: number
}
/** A feed has its source again. */
export interface ReconnectEvent {
  type: 'reconnect'
  ts: number
  feed: string
  /** What was missing has been delivered since the `disconnect`, but for `missing`. Without it nothing has. */
  healed?: boolean
  /** Parts of the gap that stay missing. */
  missing?: MissingPart[]
}
/**
 * Nothing was received (`downtime`), the clock passed over it (`leap`), or what was received could not be recorded (`lost`), between two
 * market times, Unix ms.
 */
export interface GapEvent {
  type: 'gap'
  ts: number
  fromMs: number
  toMs: number
  reason: 'downtime' | 'leap' | 'lost'
}
/** What the engine's answers depend on besides the events. */
export const engineSettingsSchema = z.object({
  tokensMax: z.number(),
  /** How long a token counts as new. */
  newWindowMs: z.number(),
  /** How old a price of SOL may be for a trade to be priced with it; 0: any age. */
  solPriceMaxAgeMs: z.number(),
  barsPerTokenMax: z.number(),
  versionsMax: z.number(),
})
export type EngineSettings = z.infer<typeof engineSettingsSchema>
/** Says by what a run's events were applied, so that they can be applied again with the same result. */
export interface RunHeader {
  runId: string
  /** Of Mintlake. */
  version: string
  /** Of recorded events and of checkpoints. */
  formatVersion: number
  /** Version of Node. */
  node: string
  settings: EngineSettings
  feeds: string[]
  simulated: boolean
  /** Number of the last event in the checkpoint that the run began with; null where it began with an empty market. */
  checkpointEventNo: number | null
  startedAtMs: number
}
/** A server begins to deliver events: the change log begins anew at `firstSeq`, and open disconnects end, but those that heal. */
export interface RunEvent {
  type: 'run'
  ts: number
  firstSeq: number
  header: RunHeader
}
/** Market time goes back to `ts`: it was that of a wrong clock. Made by the server itself, on the operator's word. */
export interface RewindEvent {
  type: 'rewind'
  ts: number
  /** Market time before, which time alone may have carried: what was due by then has happened. Events of earlier versions lack it. */
  fromMs?: number
}
/** Market time that passed twice, Unix ms: by a clock that was ahead, and again once it was set right. */
export interface RewoundSpan {
  fromMs: number
  toMs: number
}
/** The number of accepted analyses of a token has changed. Made by the server itself. */
export interface AnalysisCountEvent {
  type: 'analysisCount'
  mint: string
  ts: number
  count: number
}

/** A record that a feed may push. */
export type IngestRecord = z.infer<typeof ingestRecordSchema>
export type MarketEvent =
  | TokenEvent
  | TradeEvent
  | PatchEvent
  | GraduatedEvent
  | LiveEvent
  | SolPriceEvent
  | DisconnectEvent
  | ReconnectEvent
  | GapEvent
  | RunEvent
  | RewindEvent
  | AnalysisCountEvent

/** Why the engine rejected an event, which then changed nothing; `not_recorded`: it was not even asked. */
export type EventRejection =
  | 'not_recorded'
  | 'late'
  | 'sol_price_unknown'
  | 'sol_price_stale'
  | 'price_unknown'
  | 'volume_too_large'

/** Where feeds deliver events. `receivedAtMs` is the time of receipt, Unix ms; it advances the market's time. */
export interface EventSink {
  apply(event: MarketEvent, receivedAtMs: number): EventRejection | null
  /** Says that trades of these mints, PREFETCHED_MAX at most, are applied next: the sink may make them quicker. */
  prefetch?(mints: readonly string[]): void
}

/** Trades of which a sink is told ahead. Of 64 the first ones' memory begins to be forgotten before they are applied. */
export const PREFETCHED_MAX = 16

/**
 * Why events may be missing: a feed had lost its source; the server did not run; its clock leapt; events were received that could not be
 * recorded; several gaps are told as one, which covers all of them and what lies between. Of a gap that was healed in part: MISSING_REASONS.
 */
export const GAP_REASONS = ['disconnect', 'downtime', 'leap', 'lost', 'several', ...MISSING_REASONS] as const
export type GapReason = (typeof GAP_REASONS)[number]

/** An interval of market time in which events may be missing. */
export interface Gap {
  /** Unix ms, both included. */
  fromMs: number
  /** null: it goes on. */
  toMs: number | null
  reason: GapReason
  /** The feed whose events may be missing; null: any. */
  feed: string | null
  /** The feed brings what is missing, and says so by this market time, Unix ms. Only of one that goes on. */
  healUntilMs?: number
  /** Parts of it that are known to stay missing. Only of one whose feed heals. */
  missing?: readonly MissingPart[]
  /** Nothing is missing any more. Only where the end of a gap is told: then it is none. */
  isHealed?: true
}

/** A gap as answers and streams tell it. */
export const gapSchema = z.object({
  from: z.number().int().meta({ description: 'Its first moment', unit: 'Unix ms' }),
  to: z.number().int().nullable().meta({ description: 'Its last moment; null: it goes on', unit: 'Unix ms' }),
  reason: z.enum(GAP_REASONS).meta({
    description:
      '`disconnect`: a feed had lost its source; `downtime`: the server did not run; `leap`: its clock leapt over it; ' +
      '`lost`: events could not be recorded; ' +
      '`several`: more than one gap, told as one that covers them all. Of a gap that its feed could not heal: `budget`: it would have ' +
      'taken too many requests; `too_long`: longer ago than the feed goes back; `pruned`: its source does not keep it; `refused`: refused',
  }),
  feed: z.string().nullable().meta({ description: 'The feed whose events may be missing; null: any' }),
  healUntil: z
    .number()
    .int()
    .optional()
    .meta({ description: 'The feed brings what is missing, and says so by then', unit: 'Unix ms' }),
})
export type ToldGap = z.infer<typeof gapSchema>

export const tellGap = ({ fromMs, toMs, reason, feed, healUntilMs }: Gap): ToldGap => ({
  from: fromMs,
  to: toMs,
  reason,
  feed,
  ...(healUntilMs !== undefined && { healUntil: healUntilMs }),
})
