// What a trade or a patch says a token is worth: pure functions of what its source sent and of the price of SOL, so that the lake
// shows the prices that the engine used. Null, undefined and NaN stand for numbers that were not sent.
import { obeysCurve } from '../../schema/bonding-curve.ts'
import { AMOUNT_MAX, bounded } from '../../schema/bounds.ts'
import type { PatchFields } from '../../schema/datapoint.ts'
import { MARKET_QUOTES, quotePriceUsd } from '../../schema/quote.ts'

type Sent = number | null | undefined

/** SOL for one token: on pump.fun's curve its spot price, else what was paid; NaN where neither is known. */
function tradePriceSol(tokenAmount: number, solAmount: Sent, vSol: Sent, vTokens: Sent): number {
  if (vSol != null && vTokens != null && obeysCurve(vSol, vTokens)) return vSol / vTokens
  return solAmount != null ? solAmount / tokenAmount : Number.NaN
}

/** What a trade says of its quote; NaN and null where it was not sent. */
export interface SentQuote {
  quoteMint: string
  quoteAmount: Sent
  vQuote: Sent
}

/** The quote for one token: on a curve its spot price, else what was paid; NaN where neither is known. */
const priceInQuote = (tokenAmount: number, { quoteAmount, vQuote }: SentQuote, vTokens: Sent): number => {
  const spot = (vQuote ?? Number.NaN) / (vTokens ?? Number.NaN)
  return Number.isNaN(spot) ? (quoteAmount ?? Number.NaN) / tokenAmount : spot
}

/** The prices of a trade, and what it was worth in USD; NaN: not known. */
export interface TradeWorth {
  priceUsd: number
  priceSol: number
  volumeUsd: number
}

/** What a trade with a quote is worth. Its volume is what was paid, which is exact, not the price times the tokens. */
export function quotedWorth(
  tokenAmount: number,
  quote: SentQuote,
  vTokens: Sent,
  sentUsd: Sent,
  solPriceUsd: number,
): TradeWorth {
  const quoteUsd = quotePriceUsd(quote.quoteMint, solPriceUsd)
  const inQuote = priceInQuote(tokenAmount, quote, vTokens)
  const priceUsd = sentUsd == null || Number.isNaN(sentUsd) ? inQuote * quoteUsd : sentUsd
  const paidUsd = (quote.quoteAmount ?? Number.NaN) * quoteUsd
  return {
    priceUsd,
    priceSol: shownPriceSol(
      quote.quoteMint === MARKET_QUOTES.sol ? inQuote : Number.NaN,
      priceUsd,
      solPriceUsd,
    ),
    volumeUsd: Number.isNaN(paidUsd) ? priceUsd * tokenAmount : paidUsd,
  }
}

/** What a trade without a quote is worth: it was paid in SOL, or its source says the price. */
export function soldWorth(
  tokenAmount: number,
  solAmount: Sent,
  vSol: Sent,
  vTokens: Sent,
  sentUsd: Sent,
  solPriceUsd: number,
): TradeWorth {
  const inSol = tradePriceSol(tokenAmount, solAmount, vSol, vTokens)
  const priceUsd = tradePriceUsd(sentUsd, inSol, solPriceUsd)
  return {
    priceUsd,
    priceSol: shownPriceSol(inSol, priceUsd, solPriceUsd),
    volumeUsd: priceUsd * tokenAmount,
  }
}

/** USD for one token: as the source sent it, else by the price of SOL; NaN where that is not known. */
const tradePriceUsd = (sentUsd: Sent, priceSol: number, solPriceUsd: number): number =>
  sentUsd == null || Number.isNaN(sentUsd) ? priceSol * solPriceUsd : sentUsd

/** The price in SOL that is shown: that of the trade where it has one within bounds, else the USD price by that of SOL; or NaN. */
const shownPriceSol = (priceSol: number, priceUsd: number, solPriceUsd: number): number =>
  priceSol > 0 && priceSol <= AMOUNT_MAX ? priceSol : bounded(priceUsd / solPriceUsd)

/**
 * The prices that a patch sets: one that it does not name follows from the other.
 * @param usdBefore stays where nothing is said but that the price in SOL is unknown
 */
export function patchedPrices(
  { priceUsd, priceSol }: Pick<PatchFields, 'priceUsd' | 'priceSol'>,
  solPriceUsd: number,
  usdBefore: number,
): Pick<TradeWorth, 'priceUsd' | 'priceSol'> {
  const named = (price: number | null): number => price ?? Number.NaN
  if (priceUsd !== undefined)
    return {
      priceUsd: named(priceUsd),
      priceSol:
        priceSol === undefined ? shownPriceSol(Number.NaN, named(priceUsd), solPriceUsd) : named(priceSol),
    }
  return {
    priceUsd: priceSol == null ? usdBefore : bounded(priceSol * solPriceUsd),
    priceSol: named(priceSol ?? null),
  }
}
