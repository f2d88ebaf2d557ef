import { LATE_GRACE_MS, SILENCE_MS } from '../time/limits.ts'
import type { MarketTime } from '../time/market-time.ts'
import { type Columns, rowIndex } from '../tokens/token-table.ts'

/**
 * A token's bars that ended at or before this time, Unix ms, are closed; older trades are late. The token's own trades move it
 * forward; once the token has been silent for SILENCE_MS, the market's time does. Neither does so past what a feed may still heal.
 */
export function watermarkMs(
  { watermark, tradedAtMs }: Columns,
  slot: number,
  { nowMs, heldFromMs }: MarketTime,
): number {
  const row = rowIndex(slot)
  const own = watermark[row]
  if (own === 0 || nowMs - tradedAtMs[row] < SILENCE_MS) return own
  return Math.max(own, Math.min(nowMs, heldFromMs) - LATE_GRACE_MS)
}
