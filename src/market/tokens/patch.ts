// In: the fields of a patch. Out: the token's columns and words, set as the patch says, null included. What other
// fields follow from a patched one is decided here, once for each field. Never derives from trades.
import { bounded } from '../../schema/bounds.ts'
import type { DataPoint, PatchFields } from '../../schema/datapoint.ts'
import type { WindowField } from '../bars/windows.ts'
import {
  type FigureName,
  FLAG_COMPLETE,
  FLAG_LIQUIDITY_PATCHED,
  FLAG_LIVE,
  rowOf,
  SPARSE_FIELDS_UNKNOWN,
  type TokenTable,
} from './token-table.ts'

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
  (name: FigureName) =>
  ({ tokens, slot }: PatchTarget, value: number | null): void => {
    tokens.columns[name][rowOf(slot)] = value ?? Number.NaN
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
  const row = rowOf(slot)
  columns.marketCap[row] = value ?? Number.NaN
  // From here on the market cap follows the price by the supply that this patch implies.
  columns.circulating[row] = value === null ? Number.NaN : bounded(value / columns.priceUsd[row])
  columns.marketCapSol[row] = bounded(columns.circulating[row] * columns.priceSol[row])
}

function setPrice({ tokens, slot }: PatchTarget, value: number | null): void {
  const { columns } = tokens
  const row = rowOf(slot)
  columns.priceUsd[row] = value ?? Number.NaN
  if (!Number.isNaN(columns.circulating[row]))
    columns.marketCap[row] = bounded(columns.priceUsd[row] * columns.circulating[row])
}

function setLiquidity(target: PatchTarget, value: number | null): void {
  column('liquidity')(target, value)
  target.tokens.flags[target.slot] |= FLAG_LIQUIDITY_PATCHED
}

function setTotalSupply(target: PatchTarget, value: number | null): void {
  const { columns } = target.tokens
  const row = rowOf(target.slot)
  column('totalSupply')(target, value)
  if (value === null || Number.isNaN(columns.priceUsd[row])) return
  if (Number.isNaN(columns.circulating[row])) {
    columns.circulating[row] = value
    if (Number.isNaN(columns.marketCap[row])) setPrice(target, columns.priceUsd[row])
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
    tokens.columns.tradeCount[rowOf(slot)] = value ?? 0
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
  const sparse = Object.entries(fields).filter(
    ([field, value]) => value !== undefined && field in SPARSE_FIELDS_UNKNOWN,
  )
  if (sparse.length > 0) {
    target.tokens.sparse[target.slot] = {
      ...target.tokens.sparse[target.slot]!,
      ...Object.fromEntries(sparse),
    }
  }
}
