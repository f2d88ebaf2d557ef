// Gaps that are known only some time after they began: a connection that was half open, a server that was down. Bars that ended
// meanwhile may have been written as complete; the intervals found here say which.
import { LATE_GRACE_MS } from '../../market/time/limits.ts'
import type { MarketEvent, RewoundSpan } from '../../schema/event.ts'
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

interface LateGap {
  fromMs: number
  /** When it ended or became known. */
  toMs: number
  /** Bars that reach beyond this time had not closed by then. */
  heldFromMs: number
}

/** The gap that this event tells of; null: it tells of none that began earlier. */
function findGap(event: MarketEvent, atMs: number): LateGap | null {
  if (event.type === 'disconnect') {
    const { sinceMs = atMs, isDowntime, heldFromMs = Number.POSITIVE_INFINITY } = event
    if (isDowntime === true) return null
    return sinceMs < atMs ? { fromMs: sinceMs, toMs: atMs, heldFromMs } : null
  }
  if (event.type !== 'gap') return null
  // Of what a clock leaps over only the intervals that were open have bars, and a feed may have closed some before this was told.
  const toMs = event.reason === 'leap' ? event.fromMs + 1 : event.toMs
  return { fromMs: event.fromMs, toMs: Math.min(toMs, atMs), heldFromMs: Number.POSITIVE_INFINITY }
}

/**
 * The intervals that a gap touches and whose bars may have closed before it became known: those that close later are marked by the
 * engine. A bar that ended more than LATE_GAP_MS_MAX after the gap began is left out: without data none is written.
 * @param atMs market time at which the event was applied
 */
export function findLateIntervals(event: MarketEvent, atMs: number): BarInterval[] {
  const gap = findGap(event, atMs)
  if (gap === null || gap.fromMs >= gap.toMs) return []
  return closedIntervals({ ...gap, toMs: Math.min(gap.toMs, gap.fromMs + LATE_GAP_MS_MAX) }, atMs)
}

/** The intervals that a gap touches and whose bars may have closed by market time `atMs`. */
function closedIntervals({ fromMs, toMs, heldFromMs }: LateGap, atMs: number): BarInterval[] {
  const intervals: BarInterval[] = []
  for (const tf of LAKE_TIMEFRAMES) {
    const lengthMs = TIMEFRAME_MS[tf]
    const lastMs = Math.min(toMs - 1, atMs - lengthMs - LATE_GRACE_MS, heldFromMs - lengthMs)
    for (let tMs = fromMs - (fromMs % lengthMs); tMs <= lastMs; tMs += lengthMs) intervals.push({ tf, tMs })
  }
  return intervals
}

/**
 * The intervals whose bars a clock that was ahead may have closed before market time went back, and which therefore lack what happened in
 * them: of a longer span those of its last LATE_GAP_MS_MAX.
 */
export const findRewoundIntervals = ({ fromMs, toMs }: RewoundSpan): BarInterval[] =>
  closedIntervals(
    {
      fromMs: Math.max(fromMs, toMs - LATE_GAP_MS_MAX),
      toMs,
      heldFromMs: Number.POSITIVE_INFINITY,
    },
    toMs,
  )
