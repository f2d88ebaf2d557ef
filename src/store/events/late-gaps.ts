// Gaps that are known only some time after they began: a connection that was half open, a server that was down. Bars that ended
// meanwhile may have been written as complete; the intervals found here say which.
import { LATE_GRACE_MS } from '../../market/limits.ts'
import type { MarketEvent } from '../../schema/event.ts'
import { TIMEFRAME_MS, TIMEFRAMES } from '../../schema/timeframe.ts'
import { LATE_GAP_MS_MAX } from '../limits.ts'

/** The interval of a bar, of any token. */
export interface BarInterval {
  tf: string
  /** Its start, Unix ms. */
  tMs: number
}

/** Timeframes of the bars that the lake has. */
const LAKE_TIMEFRAMES = TIMEFRAMES.filter((tf) => TIMEFRAME_MS[tf] >= TIMEFRAME_MS['1m'])

/** When a gap began that this event tells of, and when it ended or became known; null: it tells of none that began earlier. */
function findGap(event: MarketEvent, atMs: number): { fromMs: number; toMs: number } | null {
  if (event.type === 'disconnect') {
    const { sinceMs = atMs, isDowntime } = event
    if (isDowntime === true) return null
    return sinceMs < atMs ? { fromMs: sinceMs, toMs: atMs } : null
  }
  if (event.type === 'gap') return { fromMs: event.fromMs, toMs: Math.min(event.toMs, atMs) }
  return null
}

/**
 * The intervals that a gap touches and whose bars may have closed before it became known: those that close later are marked by the
 * engine. A bar that ended more than LATE_GAP_MS_MAX after the gap began is left out: without data none is written.
 * @param atMs market time at which the event was applied
 */
export function findLateIntervals(event: MarketEvent, atMs: number): BarInterval[] {
  const gap = findGap(event, atMs)
  if (gap === null || gap.fromMs >= gap.toMs) return []
  const untilMs = Math.min(gap.toMs, gap.fromMs + LATE_GAP_MS_MAX)
  const intervals: BarInterval[] = []
  for (const tf of LAKE_TIMEFRAMES) {
    const lengthMs = TIMEFRAME_MS[tf]
    const lastMs = Math.min(untilMs - 1, atMs - lengthMs - LATE_GRACE_MS)
    for (let tMs = gap.fromMs - (gap.fromMs % lengthMs); tMs <= lastMs; tMs += lengthMs)
      intervals.push({ tf, tMs })
  }
  return intervals
}
