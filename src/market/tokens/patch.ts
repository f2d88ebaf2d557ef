import { bounded } from '../../schema/bounds.ts'
import type { PatchFields } from '../../schema/datapoint.ts'
import { isSparseField } from './sparse-fields.ts'
import {
  type FigureName,
  FLAG_LIQUIDITY_PATCHED,
  rowIndex,
  type TokenMetadata,
  type TokenTable,
} from './token-table.ts'

/** Fields of a patch that set one column, and nothing follows from them. */
const FIGURE_FIELDS = [
  ['holderCount', 'holderCount'],
  ['top10Holding', 'top10HolderPct'],
  ['top10HolderPct', 'top10HolderPct'],
  ['bondingProgress', 'bondingProgress'],
  ['virtualSolReserves', 'virtualSolReserves'],
  ['virtualTokenReserves', 'virtualTokenReserves'],
] as const satisfies readonly (readonly [keyof PatchFields, FigureName])[]

const TEXT_FIELDS = [
  ['description', 'description'],
  ['imageUrl', 'imageUri'],
  ['imageUri', 'imageUri'],
  ['creator', 'creator'],
  ['website', 'website'],
  ['twitter', 'twitter'],
  ['telegram', 'telegram'],
  ['quoteMint', 'quoteMint'],
] as const satisfies readonly (readonly [keyof PatchFields, keyof TokenMetadata])[]

/** Fields that a token's profile shows. */
const PROFILE_FIELDS = [
  ...(['name', 'symbol', 'description', 'imageUrl', 'imageUri', 'creator', 'website', 'twitter'] as const),
  ...(['telegram', 'totalSupply', 'createdAt', 'bondingComplete'] as const),
] satisfies readonly (keyof PatchFields)[]

/** Whether a patch names a field of the token's profile. */
export const changesProfile = (fields: PatchFields): boolean =>
  PROFILE_FIELDS.some((field) => fields[field] !== undefined)

/**
 * Sets a token's texts, columns and sparse fields to what a patch names; null means unknown. Figures are set in a fixed order,
 * whatever order the patch was written in: a market cap refers to the price beside it. Prices, which the caller has set already,
 * windowed figures, the price of SOL, flags and the time of creation are the caller's.
 */
export function applyPatch(tokens: TokenTable, slot: number, fields: PatchFields): void {
  setTexts(tokens.metadata[slot], fields)
  for (const [field, column] of FIGURE_FIELDS) {
    const value = fields[field]
    if (value !== undefined) tokens.columns[column][rowIndex(slot)] = value ?? Number.NaN
  }
  // Trades do not make it known again: who knows how many there were before.
  if (fields.tradeCount !== undefined)
    tokens.columns.tradeCount[rowIndex(slot)] = fields.tradeCount ?? Number.NaN
  if (fields.totalSupply !== undefined) setTotalSupply(tokens, slot, fields.totalSupply)
  if (fields.marketCap !== undefined) setMarketCap(tokens, slot, fields.marketCap)
  if (fields.liquidity !== undefined) setLiquidity(tokens, slot, fields.liquidity)
  const sparse = Object.entries(fields).filter(
    ([field, value]) => value !== undefined && isSparseField(field),
  )
  if (sparse.length > 0)
    tokens.sparse.set(slot, { ...tokens.sparse.get(slot), ...Object.fromEntries(sparse) })
}

function setTexts(metadata: TokenMetadata, fields: PatchFields): void {
  if (fields.name !== undefined) metadata.name = fields.name
  if (fields.symbol !== undefined) metadata.symbol = fields.symbol
  for (const [field, name] of TEXT_FIELDS) {
    const value = fields[field]
    if (value !== undefined) metadata[name] = value
  }
}

/**
 * A supply fills in a circulating supply and market caps that are unknown. A circulating supply that was the whole of the one before
 * goes with it, as where half of a token is burnt; one that a market cap has said, or will where a price is known, stays.
 */
function setTotalSupply({ columns }: TokenTable, slot: number, totalSupply: number | null): void {
  const row = rowIndex(slot)
  const wasWhole = columns.circulating[row] === columns.totalSupply[row]
  columns.totalSupply[row] = totalSupply ?? Number.NaN
  const isUnknown = Number.isNaN(columns.circulating[row]) && Number.isNaN(columns.marketCap[row])
  if (totalSupply === null || !(wasWhole || isUnknown)) return
  columns.circulating[row] = totalSupply
  columns.marketCap[row] = bounded(totalSupply * columns.priceUsd[row])
  columns.marketCapSol[row] = bounded(totalSupply * columns.priceSol[row])
}

/** From here on the market cap follows the price by the circulating supply that the patched market cap implies. */
function setMarketCap({ columns }: TokenTable, slot: number, marketCap: number | null): void {
  const row = rowIndex(slot)
  columns.marketCap[row] = marketCap ?? Number.NaN
  columns.circulating[row] = marketCap === null ? Number.NaN : bounded(marketCap / columns.priceUsd[row])
  columns.marketCapSol[row] = bounded(columns.circulating[row] * columns.priceSol[row])
}

/** From here on the liquidity no longer follows from the bonding curve. */
function setLiquidity({ columns, flags }: TokenTable, slot: number, liquidity: number | null): void {
  columns.liquidity[rowIndex(slot)] = liquidity ?? Number.NaN
  flags[slot] |= FLAG_LIQUIDITY_PATCHED
}
