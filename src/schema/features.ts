// The fields of the DataPoint that a submission is compared on, and those that the server adds to it. Does not import zod,
// so that threads and processes that do not validate input need not load it.
import { keysOf } from '../lib/record.ts'

/** The nine numeric fields that a submission's snapshot is compared on (specification 2.2). */
export const SNAPSHOT_FIELDS = [
  'priceUsd',
  'marketCap',
  'volume24h',
  'liquidity',
  'holderCount',
  'top10HolderPct',
  'buys24h',
  'sells24h',
  'bondingProgress',
] as const
export type SnapshotField = (typeof SNAPSHOT_FIELDS)[number]

/** The nine compared values of one DataPoint version; null where unknown. */
export type SnapshotValues = Record<SnapshotField, number | null>

export interface Meaning {
  description: string
  unit?: string
}

const OWN_WALLETS = '; by own trades exact up to 64, of more an estimate, within 6 % in 99 of 100'

/** The nine fields that the server adds; clients do not send them (specification 2.5). */
export const ENRICHED = {
  has_freeze_authority: { description: 'The freeze authority is set' },
  has_mint_authority: { description: 'The mint authority is set' },
  transfer_fee_enabled: { description: 'Transfers carry a fee (Token-2022)' },
  is_mutable_metadata: { description: 'The metadata can be changed' },
  top10_holder_pct_onchain: {
    description: 'Share of the ten largest on-chain holders',
    unit: 'percent 0-100',
  },
  unique_wallet_24h: {
    description: `Wallets that traded in the last 24 hours${OWN_WALLETS}`,
    unit: 'count',
  },
  unique_wallet_1h: { description: `Wallets that traded in the last hour${OWN_WALLETS}`, unit: 'count' },
  buy_volume_24h_usd: { description: 'Buy volume of the last 24 hours', unit: 'USD' },
  sell_volume_24h_usd: { description: 'Sell volume of the last 24 hours', unit: 'USD' },
} as const satisfies Record<string, Meaning>
export type EnrichedField = keyof typeof ENRICHED
export const ENRICHED_FIELDS: readonly EnrichedField[] = keysOf(ENRICHED)
