// From where on a feed has to make up for what it missed while there was no process.
import type { RecordedPlace, RecordedTo } from '../../types.ts'
import { IN_FLIGHT_MS, LOGS_SILENCE_MS_MAX, SLOT_MS } from '../limits.ts'

interface Place {
  slot: number
  ts: number
}

/**
 * Up to where trades are recorded; null: none is known. One of the two programs may have been silent before the end, which is found out
 * only after a while: it is the newest trade of that program that counts, as far back as the silence can have lasted.
 */
export function newestOf(places: readonly RecordedPlace[] = []): Place | null {
  const newest = new Map<boolean, Place>()
  for (const { slot, ts, isCurve } of places)
    if (slot !== null && slot > (newest.get(isCurve)?.slot ?? -1)) newest.set(isCurve, { slot, ts })
  const [older, latest] = [newest.get(true), newest.get(false)].toSorted(
    (a, b) => (a?.slot ?? -1) - (b?.slot ?? -1),
  )
  if (latest === undefined) return older ?? null
  return {
    slot: Math.max(older?.slot ?? 0, latest.slot - Math.ceil(LOGS_SILENCE_MS_MAX / SLOT_MS)),
    ts: Math.max(older?.ts ?? 0, latest.ts - LOGS_SILENCE_MS_MAX),
  }
}

/**
 * Until when nothing is missing of what the runs before have brought, Unix ms: as of a connection that ends, until shortly before the
 * newest trade, whose time is the chain's and not that of the machine. Where a gap was open, it had been made up for until there.
 */
export function wholeToMs({ timeMs, awaySinceMs }: RecordedTo, newestTs: number | null): number {
  const wholeMs = Math.min(newestTs ?? timeMs, timeMs) - IN_FLIGHT_MS
  return Math.max(wholeMs, awaySinceMs ?? wholeMs)
}
