import { intervalStart } from '../../lib/time.ts'
import { TIMEFRAME_MS } from '../../schema/bar.ts'
import type { BarsQuery } from '../types.ts'

/**
 * The time that an answer speaks of: from `fromMs` to before `beforeMs`, Unix ms. It ends now, even if the last bar ended long
 * ago: that there is none since is part of the answer.
 * @param firstMs start of the first row; any number without rows.
 */
export function answeredInterval(
  { tf, limit, fromMs, toMs }: BarsQuery,
  firstMs: number,
  rowCount: number,
  nowMs: number,
): { fromMs: number; beforeMs: number } {
  const length = TIMEFRAME_MS[tf]
  const afterNow = nowMs + 1
  const beforeMs = toMs === null ? afterNow : Math.min(afterNow, intervalStart(toMs, length) + length)
  if (rowCount === 0) return { fromMs: fromMs ?? Number.NEGATIVE_INFINITY, beforeMs }
  // Where as many rows qualify as were asked for, older ones may have been left out.
  return { fromMs: fromMs === null || rowCount === limit ? firstMs : fromMs, beforeMs }
}
