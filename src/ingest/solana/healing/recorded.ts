// From where on a feed has to make up for what it missed while there was no process.
import type { RecordedPlace, RecordedTo } from '../../types.ts'
import { IN_FLIGHT_MS } from '../limits.ts'

/** The recorded trade of the newest slot; null: none is known. */
export function newestOf(places: readonly RecordedPlace[] = []): { slot: number; ts: number } | null {
  let newest: { slot: number; ts: number } | null = null
  for (const { slot, ts } of places) if (slot !== null && slot > (newest?.slot ?? -1)) newest = { slot, ts }
  return newest
}

/**
 * Until when nothing is missing of what the runs before have brought, Unix ms: something may have been on its way. Where a gap was open,
 * it had been made up for to its newest trade.
 */
export function wholeToMs({ timeMs, awaySinceMs }: RecordedTo, newestTs: number): number {
  if (awaySinceMs === null) return timeMs - IN_FLIGHT_MS
  return Math.max(awaySinceMs, Math.min(newestTs, timeMs) - IN_FLIGHT_MS)
}
