// In: mints and what is known of them. Out: a small number (the token's slot) for each, its numbers in typed columns,
// its words in one record. Knows who was touched longest ago. Never derives one figure from another.
import type { DataPoint } from '../schema/datapoint.ts'

const NONE = 0xffffffff

/** What is known of a token in words. */
export interface TokenText {
  mint: string
  name: string
  symbol: string
  description: string | null
  imageUri: string | null
  creator: string | null
  website: string | null
  twitter: string | null
  telegram: string | null
}

/** DataPoint fields that only patches set, with what they are until then. Most tokens share this one record. */
export const RARE_FIELDS_UNKNOWN = Object.freeze({
  streamSource: 'none',
  viewerCount: null,
  dexPaid: false,
  dexBoosted: false,
  primaryDex: null,
  topHolders: [],
  snipersHolding: null,
  insidersHolding: null,
  bundleHolding: null,
  freshWalletsHolding: null,
  creatorHolding: null,
  pairAddress: null,
  fdv: null,
  has_freeze_authority: null,
  has_mint_authority: null,
  transfer_fee_enabled: null,
  is_mutable_metadata: null,
  top10_holder_pct_onchain: null,
  unique_wallet_24h: null,
  unique_wallet_1h: null,
  buy_volume_24h_usd: null,
  sell_volume_24h_usd: null,
  enriched_at: null,
  enriched_source: null,
} satisfies Partial<DataPoint>) as RareFields
export type RareField =
  | 'streamSource'
  | 'viewerCount'
  | 'dexPaid'
  | 'dexBoosted'
  | 'primaryDex'
  | 'topHolders'
  | 'snipersHolding'
  | 'insidersHolding'
  | 'bundleHolding'
  | 'freshWalletsHolding'
  | 'creatorHolding'
  | 'pairAddress'
  | 'fdv'
  | 'has_freeze_authority'
  | 'has_mint_authority'
  | 'transfer_fee_enabled'
  | 'is_mutable_metadata'
  | 'top10_holder_pct_onchain'
  | 'unique_wallet_24h'
  | 'unique_wallet_1h'
  | 'buy_volume_24h_usd'
  | 'sell_volume_24h_usd'
  | 'enriched_at'
  | 'enriched_source'
export type RareFields = Pick<DataPoint, RareField>

/** Numeric columns; NaN stands for unknown. */
export const COLUMNS = [
  'priceUsd',
  'priceSol',
  'marketCap',
  'marketCapSol',
  /** Tokens that make the market cap: follows from a patch of it, else the total supply. */
  'circulating',
  'liquidity',
  'holderCount',
  'top10HolderPct',
  'bondingProgress',
  'totalSupply',
  'createdAt',
  'virtualSolReserves',
  'virtualTokenReserves',
  'tradeCount',
  'lastTradeAt',
] as const
export type ColumnName = (typeof COLUMNS)[number]

export const FLAG_LIVE = 1
export const FLAG_COMPLETE = 2
/** A patch has set the liquidity: it no longer follows from the curve. */
export const FLAG_LIQUIDITY_PATCHED = 4

export class TokenTable {
  readonly columns: Record<ColumnName, Float64Array>
  readonly flags: Uint8Array
  readonly texts: (TokenText | undefined)[]
  readonly rare: (RareFields | undefined)[]
  readonly capacity: number
  #slots = new Map<string, number>()
  #free: number[] = []
  #untouched = 0
  /** All tokens from the coldest to the hottest, both ways. */
  #colder: Uint32Array
  #warmer: Uint32Array
  #coldest = NONE
  #warmest = NONE

  constructor(capacity: number) {
    this.capacity = capacity
    this.columns = Object.fromEntries(COLUMNS.map((name) => [name, new Float64Array(capacity)])) as Record<
      ColumnName,
      Float64Array
    >
    this.flags = new Uint8Array(capacity)
    this.texts = []
    this.rare = []
    this.#colder = new Uint32Array(capacity)
    this.#warmer = new Uint32Array(capacity)
  }

  get size(): number {
    return this.#slots.size
  }

  /** The slot of a mint, or -1. */
  slotOf(mint: string): number {
    return this.#slots.get(mint) ?? -1
  }

  get isFull(): boolean {
    return this.#slots.size === this.capacity
  }

  /** The token that was touched longest ago. */
  get coldest(): number {
    return this.#coldest === NONE ? -1 : this.#coldest
  }

  /** A slot for a new mint, every number unknown. The caller has made room. */
  add(text: TokenText): number {
    const slot = this.#free.pop() ?? this.#untouched++
    this.#slots.set(text.mint, slot)
    for (const name of COLUMNS) this.columns[name][slot] = Number.NaN
    this.columns.tradeCount[slot] = 0
    this.flags[slot] = 0
    this.texts[slot] = text
    this.rare[slot] = RARE_FIELDS_UNKNOWN
    this.#linkWarmest(slot)
    return slot
  }

  remove(slot: number): void {
    this.#slots.delete(this.texts[slot]!.mint)
    this.#unlink(slot)
    this.texts[slot] = undefined
    this.rare[slot] = undefined
    this.#free.push(slot)
  }

  /** An event concerned this token. */
  touch(slot: number): void {
    if (this.#warmest === slot) return
    this.#unlink(slot)
    this.#linkWarmest(slot)
  }

  #linkWarmest(slot: number): void {
    this.#colder[slot] = this.#warmest
    this.#warmer[slot] = NONE
    if (this.#warmest === NONE) this.#coldest = slot
    else this.#warmer[this.#warmest] = slot
    this.#warmest = slot
  }

  #unlink(slot: number): void {
    const colder = this.#colder[slot]
    const warmer = this.#warmer[slot]
    if (colder === NONE) this.#coldest = warmer
    else this.#warmer[colder] = warmer
    if (warmer === NONE) this.#warmest = colder
    else this.#colder[warmer] = colder
  }
}
