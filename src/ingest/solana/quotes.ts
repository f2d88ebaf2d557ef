// What trades are paid in, and how many decimals an amount has.
import { MARKET_QUOTES, toQuoteMint } from '../../schema/quote.ts'

/** Decimals of tokens that begin on a curve. */
export const CURVE_TOKEN_DECIMALS = 6
const DECIMALS_MAX = 24

const DECIMALS: ReadonlyMap<string, number> = new Map([
  [MARKET_QUOTES.sol, 9],
  [MARKET_QUOTES.usdc, 6],
])

/** The mint of a quote as an event says it: none is SOL. */
export const quoteMintOf = (told: string | null): string =>
  told === null ? MARKET_QUOTES.sol : toQuoteMint(told)

/** Decimals of a quote that we know; undefined of any other, which its mint's account says. */
export const quoteDecimals = (mint: string): number | undefined => DECIMALS.get(mint)

/** An amount in the smallest unit as a number of whole units. */
export const toUnits = (amount: bigint, decimals: number): number =>
  Number(amount) / 10 ** Math.min(decimals, DECIMALS_MAX)
