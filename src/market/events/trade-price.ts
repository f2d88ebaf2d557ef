// What a trade is worth: pure functions of what its source sent and of the price of SOL, so that the lake shows the prices that
// the engine used. Null, undefined and NaN stand for numbers that were not sent.
import { AMOUNT_MAX, bounded } from '../../schema/bounds.ts'
import { obeysCurve } from '../tokens/bonding-curve.ts'

type Sent = number | null | undefined

/** SOL for one token: on pump.fun's curve its spot price, else what was paid; NaN where neither is known. */
export function tradePriceSol(tokenAmount: number, solAmount: Sent, vSol: Sent, vTokens: Sent): number {
  if (vSol != null && vTokens != null && obeysCurve(vSol, vTokens)) return vSol / vTokens
  return solAmount != null ? solAmount / tokenAmount : Number.NaN
}

/** USD for one token: as the source sent it, else by the price of SOL; NaN where that is not known. */
export const tradePriceUsd = (sentUsd: Sent, priceSol: number, solPriceUsd: number): number =>
  sentUsd == null || Number.isNaN(sentUsd) ? priceSol * solPriceUsd : sentUsd

/** The price in SOL that is shown: that of the trade where it has one within bounds, else the USD price by that of SOL; or NaN. */
export const shownPriceSol = (priceSol: number, priceUsd: number, solPriceUsd: number): number =>
  priceSol > 0 && priceSol <= AMOUNT_MAX ? priceSol : bounded(priceUsd / solPriceUsd)
