// What somebody would have who had bought each time that an agent was bullish.
import { DAY_MS } from '../../lib/time.ts'
import { HORIZONS } from '../../schema/tables.ts'
import type { Horizon } from '../../schema/vocabulary.ts'
import { PORTFOLIO_USD, STAKE_USD, TRADE_COST } from '../limits.ts'
import type { Call } from './calls.ts'

export interface Portfolio {
  /** How long a purchase is held. */
  horizon: Horizon
  purchases: number
  endUsd: number
  /** The largest fall from an earlier high, a share of it, 0 to 1. */
  drawdown: number
  /** Bought and sold for each dollar of the beginning, a day. */
  turnoverPerDay: number
  /** Value after each sale. */
  curve: readonly { atMs: number; usd: number }[]
}

/**
 * Puts STAKE_USD on each bullish call whose outcome is known, and sells after the horizon. A bearish or a neutral call buys nothing:
 * nobody lends these tokens to be sold. Each purchase and each sale costs TRADE_COST, fees and slippage together.
 */
export function playPortfolio(calls: readonly Call[], horizon: Horizon, spanMs: number): Portfolio {
  const sales = calls
    .flatMap(({ atMs, sentiment, returns }) => {
      const ret = returns[horizon]
      if (sentiment !== 'bullish' || ret === null) return []
      const soldUsd = STAKE_USD * (1 - TRADE_COST) * (1 + ret) * (1 - TRADE_COST)
      return [{ atMs: atMs + HORIZONS[horizon], gainUsd: soldUsd - STAKE_USD, soldUsd }]
    })
    .sort((a, b) => a.atMs - b.atMs)
  let [usd, peakUsd, drawdown, tradedUsd] = [PORTFOLIO_USD, PORTFOLIO_USD, 0, 0]
  const curve = sales.map(({ atMs, gainUsd, soldUsd }) => {
    usd += gainUsd
    tradedUsd += STAKE_USD + soldUsd
    peakUsd = Math.max(peakUsd, usd)
    drawdown = Math.max(drawdown, (peakUsd - usd) / peakUsd)
    return { atMs, usd }
  })
  const days = Math.max(spanMs, 1) / DAY_MS
  return {
    ...{ horizon, purchases: sales.length, endUsd: usd, drawdown },
    ...{ turnoverPerDay: tradedUsd / PORTFOLIO_USD / days, curve },
  }
}
