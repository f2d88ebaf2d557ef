// Constant-product trading on pump.fun's bonding curve and in pools. Fees are left out.
import { CURVE_SUPPLY, INITIAL_SOL, INITIAL_TOKENS, SOLD_ON_CURVE } from '../../schema/bonding-curve.ts'

export interface Reserves {
  /** SOL, in steps of a lamport. */
  sol: number
  /** UI tokens, in steps of a millionth. */
  tokens: number
}

/** Virtual tokens left when the last real one is sold. */
export const CURVE_TOKENS_AT_GRADUATION = INITIAL_TOKENS - SOLD_ON_CURVE
/** SOL that a curve has raised when it graduates: about 85. */
export const CURVE_SOL_RAISED = (INITIAL_SOL * INITIAL_TOKENS) / CURVE_TOKENS_AT_GRADUATION - INITIAL_SOL
const POOL_TOKENS = CURVE_SUPPLY - SOLD_ON_CURVE

const LAMPORTS = 1e9
const TOKEN_UNITS = 1e6
const roundSol = (sol: number): number => Math.round(sol * LAMPORTS) / LAMPORTS
export const roundTokens = (tokens: number): number => Math.round(tokens * TOKEN_UNITS) / TOKEN_UNITS

/** A curve from which nothing was bought yet. */
export const newCurve = (): Reserves => ({ sol: INITIAL_SOL, tokens: INITIAL_TOKENS })

/** A curve that has raised this much SOL. */
export function curveAfterRaising(raisedSol: number): Reserves {
  const sol = roundSol(INITIAL_SOL + raisedSol)
  return { sol, tokens: roundTokens((INITIAL_SOL * INITIAL_TOKENS) / sol) }
}

/** Tokens that a curve has sold. */
export const tokensSold = (curve: Reserves): number => roundTokens(INITIAL_TOKENS - curve.tokens)

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
