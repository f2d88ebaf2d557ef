// What a read of the log found: damage, torn tails, voids. Keeps the first entries of each list and counts all damage.
import type { SegmentDamage } from '../../lib/segments/types.ts'
import { REPORT_ENTRIES_MAX } from './limits.ts'
import type { ReadReport } from './types.ts'

export const newReadReport = (afterLsn: number): ReadReport => ({
  segments: [],
  commits: 0,
  lastLsn: afterLsn,
  highestLsn: afterLsn,
  lastKnownAtMs: 0,
  voids: [],
  tornTails: [],
  damage: [],
  damageCount: 0,
})

export function addDamage(report: ReadReport, damage: SegmentDamage): void {
  report.damageCount++
  addEntry(report.damage, damage)
}

/** Adds to one of a report's lists, unless it is full. */
export function addEntry<T>(entries: T[], entry: T): void {
  if (entries.length < REPORT_ENTRIES_MAX) entries.push(entry)
}
