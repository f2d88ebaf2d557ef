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
 * Until when nothing is missing of what the runs before have brought, Unix ms: as of a connection that ends, until shortly before the
 * newest trade, whose time is the chain's and not that of the machine. Where a gap was open, it had been made up for until there.
 */
export function wholeToMs({ timeMs, awaySinceMs }: RecordedTo, newestTs: number | null): number {
  const wholeMs = Math.min(newestTs ?? timeMs, timeMs) - IN_FLIGHT_MS
  return Math.max(wholeMs, awaySinceMs ?? wholeMs)
}
