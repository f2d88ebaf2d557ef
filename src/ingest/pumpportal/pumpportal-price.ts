// Whether a frame's figures agree with one another. A frame does not say what its amounts are paid in, nor how many tokens there are:
// one of another quote or supply would give a price or a market cap that is wrong by a hundred or by two.
import { newCurve, TOTAL_SUPPLY } from '../simulator/curve.ts'

/** `price_contradicted`: its market cap is not its price times the supply; `curve_unknown`: its reserves lie on no known curve. */
export type FrameFault = 'price_contradicted' | 'curve_unknown'

export interface FrameFigures {
  pool?: string | null | undefined
  vSolInBondingCurve?: number | null | undefined
  vTokensInBondingCurve?: number | null | undefined
  tokensInPool?: number | null | undefined
  solInPool?: number | null | undefined
  marketCapSol?: number | null | undefined
}

export const PUMP_POOL = 'pump'
const PUMP_AMM_POOL = 'pump-amm'
/** Of every token that began on pump.fun's curve, but for those in mayhem mode. */
export const PUMP_SUPPLY = TOTAL_SUPPLY
const { sol, tokens } = newCurve()
const CURVE_PRODUCT = sol * tokens
const CURVE_TOLERANCE = 0.1
const MARKET_CAP_TOLERANCE = 0.02

export const isPumpCurve = ({ pool }: FrameFigures): boolean => pool == null || pool === PUMP_POOL

/** Why no price follows from a frame; null: none contradicts it. */
export function frameFault(frame: FrameFigures): FrameFault | null {
  const { vSolInBondingCurve: vSol, vTokensInBondingCurve: vTokens, marketCapSol } = frame
  const { pool, tokensInPool, solInPool } = frame
  let spot: number | null = null
  if (isPumpCurve(frame) && vSol != null && vTokens != null) {
    if (Math.abs(vSol * vTokens - CURVE_PRODUCT) > CURVE_PRODUCT * CURVE_TOLERANCE) return 'curve_unknown'
    spot = vSol / vTokens
  } else if (pool === PUMP_AMM_POOL && solInPool != null && tokensInPool != null)
    spot = solInPool / tokensInPool
  if (spot === null || marketCapSol == null) return null
  const expected = spot * PUMP_SUPPLY
  return Math.abs(marketCapSol - expected) > expected * MARKET_CAP_TOLERANCE ? 'price_contradicted' : null
}
