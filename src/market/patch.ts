// In: the fields of a patch. Out: the token's columns and words, set as the patch says, null included. What other
// fields follow from a patched one is decided here, once for each field. Never derives from trades.
import type { DataPoint, PatchFields } from '../schema/datapoint.ts'
import {
  type ColumnName,
  FLAG_COMPLETE,
  FLAG_LIQUIDITY_PATCHED,
  FLAG_LIVE,
  RARE_FIELDS_UNKNOWN,
  type TokenTable,
} from './tokens.ts'
import type { WindowField } from './windows.ts'

/** Where a patch lands. */
export interface PatchTarget {
  slot: number
  tokens: TokenTable
  setWindow(field: WindowField, value: number | null): void
  setSolPrice(usd: number | null): void
  setFlag(flag: number, on: boolean): void
  /** NaN for unknown. */
  setCreatedAt(createdAtMs: number): void
}

type Setter = (target: PatchTarget, value: never) => void
type Setters = {
  [Field in keyof PatchFields]-?: (target: PatchTarget, value: NonNullable<PatchFields[Field]> | null) => void
}

const column =
  (name: ColumnName) =>
  ({ tokens, slot }: PatchTarget, value: number | null): void => {
    tokens.columns[name][slot] = value ?? Number.NaN
  }
const windowed =
  (field: WindowField) =>
  (target: PatchTarget, value: number | null): void =>
    target.setWindow(field, value)
const word =
  (field: 'description' | 'imageUri' | 'creator' | 'website' | 'twitter' | 'telegram') =>
  ({ tokens, slot }: PatchTarget, value: string | null): void => {
    tokens.texts[slot]![field] = value
  }
const flag =
  (bit: number) =>
  (target: PatchTarget, value: boolean | null): void =>
    target.setFlag(bit, value === true)

function setMarketCap({ tokens, slot }: PatchTarget, value: number | null): void {
  const { columns } = tokens
  columns.marketCap[slot] = value ?? Number.NaN
  // From here on the market cap follows the price by the supply that this patch implies.
  columns.circulating[slot] = value === null ? Number.NaN : value / columns.priceUsd[slot]
  columns.marketCapSol[slot] = columns.circulating[slot] * columns.priceSol[slot]
}

function setPrice({ tokens, slot }: PatchTarget, value: number | null): void {
  const { columns } = tokens
  columns.priceUsd[slot] = value ?? Number.NaN
  if (!Number.isNaN(columns.circulating[slot]))
    columns.marketCap[slot] = columns.priceUsd[slot] * columns.circulating[slot]
}

function setLiquidity(target: PatchTarget, value: number | null): void {
  column('liquidity')(target, value)
  target.tokens.flags[target.slot] |= FLAG_LIQUIDITY_PATCHED
}

function setTotalSupply(target: PatchTarget, value: number | null): void {
  const { columns } = target.tokens
  column('totalSupply')(target, value)
  if (value === null || Number.isNaN(columns.priceUsd[target.slot])) return
  if (Number.isNaN(columns.circulating[target.slot])) {
    columns.circulating[target.slot] = value
    if (Number.isNaN(columns.marketCap[target.slot])) setPrice(target, columns.priceUsd[target.slot])
  }
}

const SETTERS: Partial<Setters> = {
  name: ({ tokens, slot }, value) => {
    tokens.texts[slot]!.name = value ?? tokens.texts[slot]!.mint
  },
  symbol: ({ tokens, slot }, value) => {
    tokens.texts[slot]!.symbol = value ?? tokens.texts[slot]!.mint
  },
  description: word('description'),
  imageUrl: word('imageUri'),
  imageUri: word('imageUri'),
  creator: word('creator'),
  website: word('website'),
  twitter: word('twitter'),
  telegram: word('telegram'),
  priceUsd: setPrice,
  priceSol: column('priceSol'),
  solPriceUsd: (target, value) => target.setSolPrice(value),
  totalSupply: setTotalSupply,
  marketCap: setMarketCap,
  liquidity: setLiquidity,
  tradeCount: ({ tokens, slot }, value) => {
    tokens.columns.tradeCount[slot] = value ?? 0
  },
  holderCount: column('holderCount'),
  top10Holding: column('top10HolderPct'),
  top10HolderPct: column('top10HolderPct'),
  bondingProgress: column('bondingProgress'),
  bondingComplete: flag(FLAG_COMPLETE),
  isLive: flag(FLAG_LIVE),
  isCurrentlyLive: flag(FLAG_LIVE),
  createdAt: (target, value) => target.setCreatedAt(value ?? Number.NaN),
  virtualSolReserves: column('virtualSolReserves'),
  virtualTokenReserves: column('virtualTokenReserves'),
  volume1m: windowed('volume1m'),
  volume1h: windowed('volume1h'),
  volume6h: windowed('volume6h'),
  volume24h: windowed('volume24h'),
  buys24h: windowed('buys24h'),
  sells24h: windowed('sells24h'),
  tradeRate1m: windowed('tradeRate1m'),
  buySellImbalance1m: windowed('buySellImbalance1m'),
  priceChange1h: windowed('priceChange1h'),
  priceChange6h: windowed('priceChange6h'),
  priceChange24h: windowed('priceChange24h'),
}

const PROFILE_FIELDS = [
  ...(['name', 'symbol', 'description', 'imageUrl', 'imageUri', 'creator', 'website', 'twitter'] as const),
  ...(['telegram', 'totalSupply', 'createdAt', 'bondingComplete'] as const),
] satisfies readonly (keyof PatchFields)[]

/** Whether a patch names something that a token says of itself. */
export const changesProfile = (fields: PatchFields): boolean =>
  PROFILE_FIELDS.some((field) => fields[field] !== undefined)

/** A patch is applied in this order, whatever order it was written in: a market cap refers to the price beside it. */
const FIELD_ORDER = Object.keys(SETTERS) as (keyof DataPoint)[]

/** Sets what the patch names. Fields without a setter of their own are kept as they are in the rare record. */
export function applyPatch(fields: PatchFields, target: PatchTarget): void {
  for (const field of FIELD_ORDER) {
    const value = (fields as Record<string, unknown>)[field]
    if (value !== undefined) (SETTERS as Record<string, Setter>)[field](target, value as never)
  }
  const rare = Object.entries(fields).filter(
    ([field, value]) => value !== undefined && field in RARE_FIELDS_UNKNOWN,
  )
  if (rare.length > 0) {
    target.tokens.rare[target.slot] = { ...target.tokens.rare[target.slot]!, ...Object.fromEntries(rare) }
  }
}
