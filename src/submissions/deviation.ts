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
function measure(sent: Partial<SubmittedSnapshot>, cached: SnapshotValues): Deviation {
  const deviation: Deviation = { deviationPct: 0, worstField: null, deviations: {} }
  for (const field of SNAPSHOT_FIELDS) {
    const [sentValue, cachedValue] = [sent[field], cached[field]]
    if (sentValue == null || cachedValue == null) continue
    const percent = fieldDeviationPct(field, sentValue, cachedValue)
    deviation.deviations[field] = percent
    if (deviation.worstField !== null && percent <= deviation.deviationPct) continue
    deviation.worstField = field
    deviation.deviationPct = percent
  }
  return deviation
}

function isNearer(one: Deviation, other: Deviation): boolean {
  if (one.worstField === null) return false
  return other.worstField === null || one.deviationPct < other.deviationPct
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
  let nearest: Comparison | null = null
  for (const compared of asOf) {
    const deviation = measure(sent, compared)
    if (nearest === null || isNearer(deviation, nearest))
      nearest = { ...deviation, compared, version: 'asOf' }
  }
  const deviation = measure(sent, current)
  if (nearest !== null && !isNearer(deviation, nearest)) return nearest
  return { ...deviation, compared: current, version: 'current' }
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
