// In: one record from a feed, of unknown shape. Out: a typed market event, or the reason it is none.
// The wire's record and the engine's event are the same thing, so that push, replay and simulation share one type.
import { z } from 'zod'
import { truncateText } from '../lib/truncate-text.ts'
import { amount, count, description, positive, price, time as ts, uri, word } from './bounds.ts'
import { patchFieldsSchema } from './datapoint.ts'
import { isMint, MINT_SHAPE } from './mint.ts'

const mint = z
  .string()
  .refine(isMint, { error: 'not a base58 address of 32 bytes', params: { code: 'invalid_mint' } })
  .transform((value) => truncateText(value, MINT_SHAPE.maxLength))

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
  })
  .refine((trade) => trade.priceUsd != null || trade.solAmount != null, {
    error: 'priceUsd or solAmount must be there',
    params: { code: 'price_missing' },
  })

export const patchEventSchema = z.object({ type: z.literal('patch'), mint, ts, fields: patchFieldsSchema })
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

/** What a feed may push (contract 9). */
export const ingestRecordSchema = z.discriminatedUnion('type', [
  tokenEventSchema,
  tradeEventSchema,
  patchEventSchema,
  graduatedEventSchema,
  liveEventSchema,
  solPriceEventSchema,
])

export type TokenEvent = z.infer<typeof tokenEventSchema>
export type TradeEvent = z.infer<typeof tradeEventSchema>
export type PatchEvent = z.infer<typeof patchEventSchema>
export type GraduatedEvent = z.infer<typeof graduatedEventSchema>
export type LiveEvent = z.infer<typeof liveEventSchema>
/** Where a price of SOL comes from; one without a source was pushed. */
export type SolPriceEvent = z.infer<typeof solPriceEventSchema> & {
  source?: 'setting' | 'birdeye' | 'simulator'
}
/** A feed lost its source: data may be missing from here until it is back. */
export interface DisconnectEvent {
  type: 'disconnect'
  ts: number
  feed: string
}
/** The server itself counted another accepted analysis of a token. */
export interface AnalysisCountEvent {
  type: 'analysisCount'
  mint: string
  ts: number
  count: number
}

export type IngestRecord = Exclude<z.infer<typeof ingestRecordSchema>, { type: 'solPrice' }> | SolPriceEvent
export type MarketEvent = IngestRecord | DisconnectEvent | AnalysisCountEvent

/** Why the engine did not take an event. Counted by code; nothing of the market changed. */
export type EventRejection = 'late' | 'sol_price_unknown' | 'price_unknown' | 'volume_too_large'

/** Where feeds deliver. `receivedAtMs` is the time of receipt, Unix ms; it carries the market's time forward. */
export interface EventSink {
  apply(event: MarketEvent, receivedAtMs: number): EventRejection | null
}
