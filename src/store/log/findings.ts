// In: what a reading comes upon. Out: its report. Keeps the first findings and counts the rest, however damaged a log is.
import { FINDINGS_KEPT_MAX } from './limits.ts'
import type { LogDamage, LsnRange, ReadReport } from './types.ts'

export const emptyReport = (afterLsn: number): ReadReport => ({
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

export function addDamage(report: ReadReport, damage: LogDamage): void {
  report.damageCount++
  keep(report.damage, damage)
}

/** Adds to a list of findings that must not grow without end. */
export function keep<T>(findings: T[], finding: T): void {
  if (findings.length < FINDINGS_KEPT_MAX) findings.push(finding)
}

export const rangeOf = (from: number, to: number): LsnRange | null => (from <= to ? { from, to } : null)
