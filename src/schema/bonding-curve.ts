// pump.fun's bonding curve: vSol · vTokens is constant. The constants are those of pump.fun's global account, as the contract gives
// them: initial virtual reserves of 30 SOL and 1 073 000 000 tokens, of which 793 100 000 are sold on the curve.

/** Virtual reserves of a curve from which nothing was bought yet: SOL and UI tokens. */
export const INITIAL_SOL = 30
export const INITIAL_TOKENS = 1_073_000_000
/** Tokens that a curve has to sell at first, unless its launch says another number. */
export const SOLD_ON_CURVE = 793_100_000
const PRODUCT = INITIAL_SOL * INITIAL_TOKENS
/** How far the product may be off: fees and rounding change it a little, and other curves are much farther off. */
const PRODUCT_TOLERANCE = 0.1
/** Of every token that begins on the curve, but for those in mayhem mode. */
export const CURVE_SUPPLY = 1_000_000_000

/** Whether virtual reserves lie on pump.fun's curve. */
export function obeysCurve(vSol: number, vTokens: number): boolean {
  return (
    vTokens <= INITIAL_TOKENS * (1 + 1e-9) &&
    Math.abs(vSol * vTokens - PRODUCT) <= PRODUCT * PRODUCT_TOLERANCE
  )
}

/** Progress on the curve in percent, 0 to 100. */
export function bondingProgress(vTokens: number): number {
  return Math.min(100, Math.max(0, (100 * (INITIAL_TOKENS - vTokens)) / SOLD_ON_CURVE))
}

/** The same from the tokens that the curve has left to sell, whatever it is paid in. */
export const progressOf = (curveTokens: number, curveTokensAtFirst: number): number =>
  Math.min(100, Math.max(0, 100 * (1 - curveTokens / curveTokensAtFirst)))

/** SOL raised by the curve. The liquidity, which is both sides of it, is worth twice as much. */
export function raisedSol(vSol: number): number {
  return Math.max(0, vSol - INITIAL_SOL)
}
