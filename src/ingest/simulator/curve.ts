// Constant-product trading on pump.fun's bonding curve and in pools. The figures are pump.fun's; fees are left out.

export interface Reserves {
  /** SOL, in steps of a lamport. */
  sol: number
  /** UI tokens, in steps of a millionth. */
  tokens: number
}

export const TOTAL_SUPPLY = 1_000_000_000
const CURVE_SOL = 30
const CURVE_TOKENS = 1_073_000_000
const CURVE_TOKENS_SOLD = 793_100_000
/** Virtual tokens left when the last real one is sold. */
export const CURVE_TOKENS_AT_GRADUATION = CURVE_TOKENS - CURVE_TOKENS_SOLD
/** SOL that a curve has raised when it graduates: about 85. */
export const CURVE_SOL_RAISED = (CURVE_SOL * CURVE_TOKENS) / CURVE_TOKENS_AT_GRADUATION - CURVE_SOL
const POOL_TOKENS = TOTAL_SUPPLY - CURVE_TOKENS_SOLD

const LAMPORTS = 1e9
const TOKEN_UNITS = 1e6
export const roundSol = (sol: number): number => Math.round(sol * LAMPORTS) / LAMPORTS
export const roundTokens = (tokens: number): number => Math.round(tokens * TOKEN_UNITS) / TOKEN_UNITS

/** A curve from which nothing was bought yet. */
export const newCurve = (): Reserves => ({ sol: CURVE_SOL, tokens: CURVE_TOKENS })

/** A curve that has raised this much SOL. */
export function curveAfterRaising(raisedSol: number): Reserves {
  const sol = roundSol(CURVE_SOL + raisedSol)
  return { sol, tokens: roundTokens((CURVE_SOL * CURVE_TOKENS) / sol) }
}

/** Tokens that a curve has sold. */
export const tokensSold = (curve: Reserves): number => roundTokens(CURVE_TOKENS - curve.tokens)

/** The pool into which a graduated curve moves: its price is the curve's last one. */
export const graduatedPool = (): Reserves => ({ sol: roundSol(CURVE_SOL_RAISED), tokens: POOL_TOKENS })

/** A pool of a graduated token after trading has moved it: the product stays. */
export function tradedPool(sol: number): Reserves {
  return { sol: roundSol(sol), tokens: roundTokens((CURVE_SOL_RAISED * POOL_TOKENS) / sol) }
}

/** Buys tokens for SOL; at most `tokensMax`, which then cost less. Changes the reserves. */
export function buy(reserves: Reserves, sol: number, tokensMax: number): { sol: number; tokens: number } {
  const product = reserves.sol * reserves.tokens
  const tokens = roundTokens(reserves.tokens - product / (reserves.sol + sol))
  if (tokens <= tokensMax) return applyTrade(reserves, roundSol(sol), tokens)
  const cost = roundSol(product / (reserves.tokens - tokensMax) - reserves.sol)
  return applyTrade(reserves, cost, tokensMax)
}

/** Sells tokens for SOL. Changes the reserves. */
export function sell(reserves: Reserves, tokens: number): { sol: number; tokens: number } {
  const sol = reserves.sol - (reserves.sol * reserves.tokens) / (reserves.tokens + tokens)
  const settled = applyTrade(reserves, -roundSol(sol), -tokens)
  return { sol: -settled.sol, tokens: -settled.tokens }
}

function applyTrade(reserves: Reserves, sol: number, tokens: number): { sol: number; tokens: number } {
  reserves.sol = roundSol(reserves.sol + sol)
  reserves.tokens = roundTokens(reserves.tokens - tokens)
  return { sol, tokens }
}

/** The marginal price of one token in SOL. */
export const spotPriceSol = (reserves: Reserves): number => reserves.sol / reserves.tokens
