// In: the virtual reserves of a bonding curve. Out: what follows from them, or null for a curve that is not
// pump.fun's. Source of the constants: pump.fun's global account (initial virtual reserves 30 SOL and 1 073 000 000
// tokens, of which 793 100 000 are sold on the curve), as the contract gives them.

const INITIAL_SOL = 30
const INITIAL_TOKENS = 1_073_000_000
const SOLD_ON_CURVE = 793_100_000
const PRODUCT = INITIAL_SOL * INITIAL_TOKENS
/** Fees that stay in the curve and rounded reports move the product a little; another curve is far off. */
const PRODUCT_TOLERANCE = 0.1
export const CURVE_SUPPLY = 1_000_000_000

/** True when the reserves lie on pump.fun's constant-product curve. */
export function obeysCurve(vSol: number, vTokens: number): boolean {
  return (
    vTokens <= INITIAL_TOKENS * (1 + 1e-9) &&
    Math.abs(vSol * vTokens - PRODUCT) <= PRODUCT * PRODUCT_TOLERANCE
  )
}

/** Progress on the curve, 0-100. */
export function bondingProgress(vTokens: number): number {
  return Math.min(100, Math.max(0, (100 * (INITIAL_TOKENS - vTokens)) / SOLD_ON_CURVE))
}

/** SOL raised by the curve: both sides of it are worth twice that. */
export function raisedSol(vSol: number): number {
  return Math.max(0, vSol - INITIAL_SOL)
}
