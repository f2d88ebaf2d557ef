// In: mints and what is known of them. Out: a small number (the token's slot) for each, its numbers in typed columns,
// its words in one record. Knows who was touched longest ago. Never derives one figure from another.
import { assert } from '../lib/assert.ts'
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

/** Numbers of a token. A token's lie side by side, those that a trade touches first: each line of memory that has to be
 *  fetched for a trade costs as much as a hundred additions. */
const FIGURES = [
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
  'lastTradeAt',
] as const
const BOOKS = [
  'tradeCount',
  /** No trade older than this is taken; never goes back. */
  'watermark',
  /** Market time of the latest trade, of the version in effect, and the number of the row's last change. */
  'tradedAt',
  'versionAt',
  'changedSeq',
  /** Where the 24-hour window stands and what it holds, and all that ever was (windows.ts). */
  'dayFrom',
  'dayVolume',
  'dayCounts',
  'lifetimeVolume',
  'lifetimeCounts',
  /** Market time of the first sight, and the change that created it. */
  'bornAt',
  'bornSeq',
] as const
const RARELY_CHANGED = ['totalSupply', 'createdAt', 'virtualSolReserves', 'virtualTokenReserves'] as const
/** NaN stands for unknown in these; the others begin at zero. */
const UNKNOWN_AT_FIRST = [...FIGURES, ...RARELY_CHANGED] as const
const COLUMNS = [...FIGURES, ...BOOKS, ...RARELY_CHANGED] as const
export type FigureName = (typeof UNKNOWN_AT_FIRST)[number]

/** By name; a token's value stands at `rowOf(slot)`. */
export type Columns = Readonly<Record<(typeof COLUMNS)[number], Float64Array>>

/** Numbers from one token to the next: a power of two. */
const ROW_LENGTH = 32
assert(COLUMNS.length <= ROW_LENGTH, 'a token’s numbers fit its row')

/** Where a token's numbers stand in every column. */
export const rowOf = (slot: number): number => slot * ROW_LENGTH

/** Columns that share one memory: each begins at its own place in the first row. */
function interleaved(capacity: number): Columns {
  const numbers = new Float64Array(capacity * ROW_LENGTH)
  return Object.fromEntries(COLUMNS.map((name, at) => [name, numbers.subarray(at)])) as unknown as Columns
}

export const FLAG_LIVE = 1
export const FLAG_COMPLETE = 2
/** A patch has set the liquidity: it no longer follows from the curve. */
export const FLAG_LIQUIDITY_PATCHED = 4

export class TokenTable {
  readonly columns: Columns
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
    this.columns = interleaved(capacity)
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
    const row = rowOf(slot)
    for (const name of UNKNOWN_AT_FIRST) this.columns[name][row] = Number.NaN
    for (const name of BOOKS) this.columns[name][row] = 0
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
