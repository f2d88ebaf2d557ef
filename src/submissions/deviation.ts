// How far a client's snapshot is from the server's, field by field, in percent. xp/xp.ts decides the outcome.
import { SNAPSHOT_FIELDS, type SnapshotField, type SnapshotValues } from '../schema/datapoint.ts'
import type { SubmittedSnapshot } from '../schema/submission.ts'
import { XP_MULTIPLIERS } from '../schema/xp.ts'

export interface Deviation {
  /** Largest deviation over the compared fields, percent; 0 when nothing was compared. */
  deviationPct: number
  /** The field that deviates most; the first one in the specification's order on a tie; null when none was compared. */
  worstField: SnapshotField | null
  /** Percent, for compared fields only. */
  deviations: Partial<Record<SnapshotField, number>>
}

export interface Comparison extends Deviation {
  /** The values compared against: the features of the training row. */
  compared: SnapshotValues
  /** Which DataPoint version that is. */
  version: 'asOf' | 'current'
}

/** The smallest denominator of each field, so that a difference from a value near 0 stays small: 1 percentage point, 1 count,
 *  1 USD; none for the price. */
const DEVIATION_FLOORS: Readonly<SnapshotValues & Record<SnapshotField, number>> = {
  priceUsd: 0,
  marketCap: 1,
  volume24h: 1,
  liquidity: 1,
  holderCount: 1,
  top10HolderPct: 1,
  buys24h: 1,
  sells24h: 1,
  bondingProgress: 1,
}

/** Deviations are rounded to this fraction of a percentage point, below `ROUNDED_PCT_MAX`. */
const ROUNDING_PER_PCT = 1e9
const ROUNDED_PCT_MAX = 1e6

/**
 * `100*|sent-cached| / max(|cached|, floor)`, percent, always finite. The specification's formula.
 * Rounded to 1e-9 percentage points: in doubles 0.115 against 0.1 is 15.000000000000013 %, which must still count as 15 %.
 * The rounding error of the formula is below 1e-13 near the bounds, so that no real difference is lost.
 */
function fieldDeviationPct(field: SnapshotField, sent: number, cached: number): number {
  if (sent === cached) return 0
  const percent = 100 * (Math.abs(sent - cached) / Math.max(Math.abs(cached), DEVIATION_FLOORS[field]))
  if (percent < ROUNDED_PCT_MAX) return Math.round(percent * ROUNDING_PER_PCT) / ROUNDING_PER_PCT
  return Math.min(percent, Number.MAX_VALUE)
}

/** The deviations from one version of the DataPoint. */
interface Distance {
  /** By field, in the specification's order; NOT_COMPARED where a side is unknown. */
  readonly percents: Float64Array
  /** The field with the largest deviation, the first such one; null when no field was compared. */
  worstField: SnapshotField | null
  /** Its deviation; NOT_COMPARED when no field was compared. */
  worstPct: number
}

const NOT_COMPARED = -1
const newDistance = (): Distance => ({
  percents: new Float64Array(SNAPSHOT_FIELDS.length),
  worstField: null,
  worstPct: NOT_COMPARED,
})
/** Reused by each comparison, so that none allocates. */
let candidate = newDistance()
let nearest = newDistance()

function measure(distance: Distance, sent: Partial<SubmittedSnapshot>, cached: SnapshotValues): void {
  const { percents } = distance
  let worstField: SnapshotField | null = null
  let worstPct = NOT_COMPARED
  let at = 0
  for (const field of SNAPSHOT_FIELDS) {
    const sentValue = sent[field]
    const cachedValue = cached[field]
    const isCompared = sentValue != null && cachedValue != null
    const percent = isCompared ? fieldDeviationPct(field, sentValue, cachedValue) : NOT_COMPARED
    percents[at++] = percent
    if (percent <= worstPct) continue
    worstField = field
    worstPct = percent
  }
  distance.worstField = worstField
  distance.worstPct = worstPct
}

function makeComparison(
  { percents, worstField, worstPct }: Distance,
  compared: SnapshotValues,
  version: Comparison['version'],
): Comparison {
  const deviations: Deviation['deviations'] = {}
  let at = 0
  for (const field of SNAPSHOT_FIELDS) {
    const percent = percents[at++] ?? NOT_COMPARED
    if (percent !== NOT_COMPARED) deviations[field] = percent
  }
  return {
    deviationPct: worstField === null ? 0 : worstPct,
    worstField,
    deviations,
    compared,
    version,
  }
}

/**
 * Compares with the versions in effect at `snapshotAt`, newest first (none when they are no longer kept), and with the current
 * one. The version with the smallest deviation counts as a whole; on a tie the first of these, `asOf` before the current one. A
 * version that shares no field with what was sent counts only when all others share none either: otherwise the empty first
 * version of a token would accept anything.
 */
export function compareSnapshot(
  sent: Partial<SubmittedSnapshot>,
  asOf: readonly SnapshotValues[],
  current: SnapshotValues,
): Comparison {
  let best: SnapshotValues | null = null
  for (const version of asOf) {
    measure(candidate, sent, version)
    if (best !== null && !isNearer(candidate, nearest)) continue
    best = version
    swap()
    if (nearest.worstPct === 0) break
  }
  measure(candidate, sent, current)
  if (best !== null && !isNearer(candidate, nearest)) return makeComparison(nearest, best, 'asOf')
  return makeComparison(candidate, current, 'current')
}

function swap(): void {
  const measured = candidate
  candidate = nearest
  nearest = measured
}

function isNearer(one: Distance, other: Distance): boolean {
  if (one.worstField === null) return false
  return other.worstField === null || one.worstPct < other.worstPct
}

/** True when the DataPoint has no value to compare with. */
export function isEmptySnapshot(values: SnapshotValues): boolean {
  return SNAPSHOT_FIELDS.every((field) => values[field] === null)
}

const PERCENT = new Intl.NumberFormat('en-US', { maximumSignificantDigits: 4 })
/** Larger deviations are not shown in digits. */
const SHOWN_PCT_MAX = 1e9

/** A deviation as text for people: `50.1%`, `6,923,000%`. A deviation just above the bound is not rounded down to it. */
export function shownPercent(deviationPct: number): string {
  if (deviationPct > SHOWN_PCT_MAX) return `more than ${PERCENT.format(SHOWN_PCT_MAX)}%`
  const { deviationPctMax } = XP_MULTIPLIERS.unvalidated
  const isJustAbove = deviationPct > deviationPctMax && Number(deviationPct.toPrecision(4)) <= deviationPctMax
  return isJustAbove ? `just over ${deviationPctMax}%` : `${PERCENT.format(deviationPct)}%`
}
