// In: mints and what is known of them. Out: a small number (the token's slot) for each, its numbers in typed columns,
// its words in one record. Knows who was touched longest ago. Never derives one figure from another.
import { assert } from '../../lib/assert.ts'
import type { DataPoint } from '../../schema/datapoint.ts'

/** What is known of a token in words. */
export interface TokenMetadata {
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
export const SPARSE_FIELDS_UNKNOWN = Object.freeze({
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
} satisfies Partial<DataPoint>) as SparseFields
export type SparseField =
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
export type SparseFields = Pick<DataPoint, SparseField>

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
const COUNTERS = [
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
  /** When an event last concerned it, in touches of all tokens. */
  'touched',
  /** Market time of the first sight, and the change that created it. */
  'firstSeenAt',
  'firstSeenSeq',
  /** Bars that start before this market time are not whole: the token was held then, gave way, and came back. */
  'barsWholeFrom',
] as const
const RARELY_CHANGED = ['totalSupply', 'createdAt', 'virtualSolReserves', 'virtualTokenReserves'] as const
/** NaN stands for unknown in these; the others begin at zero. */
const UNKNOWN_AT_FIRST = [...FIGURES, ...RARELY_CHANGED] as const
const COLUMNS = [...FIGURES, ...COUNTERS, ...RARELY_CHANGED] as const
export type FigureName = (typeof UNKNOWN_AT_FIRST)[number]

/** By name; a token's value stands at `rowOf(slot)`. */
export type Columns = Readonly<Record<(typeof COLUMNS)[number], Float64Array>>

/** Of so many tokens the touches are looked at to tell which are cold, and this share of all is taken to be. */
const COLD_SAMPLE = 1_024
const COLD_SHARE = 1 / 64

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

interface Cold {
  slot: number
  touched: number
}

export class TokenTable {
  readonly columns: Columns
  readonly flags: Uint8Array
  readonly texts: (TokenMetadata | undefined)[]
  readonly sparse: (SparseFields | undefined)[]
  readonly capacity: number
  #slots = new Map<string, number>()
  #free: number[] = []
  #untouched = 0
  #touches = 0
  /** Slots that were the coldest when they were last looked for, the coldest at the end, and their touches then. */
  #cold: Cold[] = []

  constructor(capacity: number) {
    this.capacity = capacity
    this.columns = interleaved(capacity)
    this.flags = new Uint8Array(capacity)
    this.texts = []
    this.sparse = []
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

  /** The token that was touched longest ago; -1 where there is none. */
  coldest(): number {
    if (this.size === 0) return -1
    for (;;) {
      const coldest = this.#cold.at(-1)
      if (coldest === undefined) this.#cold = this.#findCold()
      else if (this.#isAsCold(coldest)) return coldest.slot
      else this.#cold.pop()
    }
  }

  /** A slot for a new mint, every number unknown. The caller has made room. */
  add(text: TokenMetadata): number {
    const slot = this.#free.pop() ?? this.#untouched++
    this.#slots.set(text.mint, slot)
    const row = rowOf(slot)
    for (const name of UNKNOWN_AT_FIRST) this.columns[name][row] = Number.NaN
    for (const name of COUNTERS) this.columns[name][row] = 0
    this.flags[slot] = 0
    this.texts[slot] = text
    this.sparse[slot] = SPARSE_FIELDS_UNKNOWN
    this.touch(slot)
    return slot
  }

  remove(slot: number): void {
    this.#slots.delete(this.texts[slot]!.mint)
    this.texts[slot] = undefined
    this.sparse[slot] = undefined
    this.#free.push(slot)
  }

  /** An event concerned this token. */
  touch(slot: number): void {
    this.columns.touched[rowOf(slot)] = ++this.#touches
  }

  #touchedOf(slot: number): number {
    return this.columns.touched[rowOf(slot)]
  }

  /** True while no event has concerned it since, and no other token has its slot. */
  #isAsCold({ slot, touched }: Cold): boolean {
    return this.texts[slot] !== undefined && this.#touchedOf(slot) === touched
  }

  /**
   * Some of the tokens, those that all others were touched after, the coldest last. Evictions are rare and touches are
   * not: so who was touched when is put in order here, for many evictions at once.
   */
  #findCold(): Cold[] {
    const step = Math.ceil(this.texts.length / COLD_SAMPLE)
    const sample: number[] = []
    const held = (slot: number) => this.texts[slot] !== undefined
    for (let slot = 0; slot < this.texts.length; slot += step)
      if (held(slot)) sample.push(this.#touchedOf(slot))
    const until = sample.sort((a, b) => a - b)[Math.floor(sample.length * COLD_SHARE)] ?? this.#touches
    const cold: Cold[] = []
    for (let slot = 0; slot < this.texts.length; slot++) {
      const touched = this.#touchedOf(slot)
      if (touched <= until && held(slot)) cold.push({ slot, touched })
    }
    return cold.sort((a, b) => b.touched - a.touched)
  }
}
