// What a trade is paid in. A quote that is not among these has no price in USD here.

/** Mints of the quotes whose amounts have a price in USD. */
export const MARKET_QUOTES = {
  /** Wrapped SOL, which stands for SOL itself. */
  sol: 'So11111111111111111111111111111111111111112',
  /** Counts as one dollar. */
  usdc: 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v',
} as const

/** The address of 32 zero bytes, by which the chain's programs say SOL. */
const NO_QUOTE = '11111111111111111111111111111111'

/** The mint of a quote, in the one spelling that SOL has here. */
export const toQuoteMint = (told: string): string => (told === NO_QUOTE ? MARKET_QUOTES.sol : told)

/** USD for one unit of a quote; NaN where it is not known. @param solPriceUsd NaN: not known */
export const quotePriceUsd = (quoteMint: string, solPriceUsd: number): number =>
  quoteMint === MARKET_QUOTES.sol ? solPriceUsd : quoteMint === MARKET_QUOTES.usdc ? 1 : Number.NaN
