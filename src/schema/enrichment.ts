// The rule of the enriched fields: which sources may say one, and which of their answers counts. The engine, the documents and the
// console read it here. Does not import zod, as features.ts.
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../lib/time.ts'
import type { EnrichedField } from './features.ts'

/** Kinds of sources, in the order in which they are believed: the chain's accounts; a provider; the trades that the server saw. */
export const SOURCE_KINDS = ['chain', 'provider', 'trades'] as const
export type SourceKind = (typeof SOURCE_KINDS)[number]

/** The names that `enriched_source` has. A program that pushes may give its own, which counts as a provider. */
export const ENRICHED_SOURCES = {
  chain: 'chain',
  birdeye: 'birdeye',
  trades: 'trades',
  simulated: 'simulated',
} as const
/** Who pushes enriched fields and does not say whose they are. */
export const UNNAMED_SOURCE = 'push'

export const kindOf = (source: string): SourceKind =>
  source === ENRICHED_SOURCES.chain ? 'chain' : 'provider'

/**
 * Fields beside the enriched ones of which whoever names a source tells whose they are: of these the one that came last counts, as a
 * patch sets what it names, and the source and the time that are shown are always those of the value that is.
 */
export const SOURCED_FIELDS = ['totalSupply', 'topHolders'] as const
export type SourcedField = (typeof SOURCED_FIELDS)[number]
export const isSourcedField = (field: string): field is SourcedField =>
  SOURCED_FIELDS.some((each) => each === field)

export interface EnrichmentRule {
  /** Who may say it, the first to be believed first. */
  kinds: readonly SourceKind[]
  /** Of the answers that are no older, the first counts; where all are older, the first of all. */
  freshMs: number
  /** Further apart, two fresh answers disagree: by so much, or by this share of the larger one. */
  apart: { by: number } | { share: number } | 'different'
}

const accountRule: EnrichmentRule = { kinds: ['chain', 'provider'], freshMs: DAY_MS, apart: 'different' }
const holdersRule: EnrichmentRule = { kinds: ['chain', 'provider'], freshMs: HOUR_MS, apart: { by: 5 } }
const windowRule: EnrichmentRule = {
  kinds: ['provider', 'trades'],
  freshMs: 15 * MINUTE_MS,
  apart: { share: 0.2 },
}

export const ENRICHMENT_RULES: Readonly<Record<EnrichedField, EnrichmentRule>> = {
  has_freeze_authority: accountRule,
  has_mint_authority: accountRule,
  transfer_fee_enabled: accountRule,
  is_mutable_metadata: accountRule,
  top10_holder_pct_onchain: holdersRule,
  unique_wallet_24h: windowRule,
  unique_wallet_1h: windowRule,
  buy_volume_24h_usd: windowRule,
  sell_volume_24h_usd: windowRule,
}

/** The enriched fields that follow from trades. */
export type TradeField =
  | 'unique_wallet_24h'
  | 'unique_wallet_1h'
  | 'buy_volume_24h_usd'
  | 'sell_volume_24h_usd'
/** What the server's own trades say; null where it has not watched long enough. */
export type TradeFigures = Readonly<Record<TradeField, number | null>>

/** Whether two answers about a field contradict each other. */
export function areApart(field: EnrichedField, a: boolean | number, b: boolean | number): boolean {
  const { apart } = ENRICHMENT_RULES[field]
  if (apart === 'different' || typeof a === 'boolean' || typeof b === 'boolean') return a !== b
  const difference = Math.abs(a - b)
  return 'by' in apart ? difference > apart.by : difference > apart.share * Math.max(Math.abs(a), Math.abs(b))
}
