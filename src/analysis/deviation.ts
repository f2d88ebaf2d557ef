// In: what a client says of a token and what the cache held. Out: how far they are apart, field by field, in percent.
// Never looks anything up and never decides what the distance means: see xp.ts for the outcome.
import { SNAPSHOT_FIELDS, type SnapshotField, type SnapshotValues } from '../schema/datapoint.ts'
import type { SubmittedSnapshot } from '../schema/submission.ts'

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

/** Smallest denominator of each field: 1 percentage point, 1 count, 1 USD; none for the price. */
export const DEVIATION_FLOORS: Readonly<SnapshotValues & Record<SnapshotField, number>> = {
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
 * `100*|sent-cached| / max(|cached|, floor)`, percent, always finite.
 * Rounded to 1e-9 percentage points: in doubles 0.115 against 0.1 is 15.000000000000013 %, and an honest 15 % must not
 * fall for the last bit. The error of the formula near the bounds is below 1e-13, so the rounding never hides more.
 */
export function fieldDeviationPct(field: SnapshotField, sent: number, cached: number): number {
  if (sent === cached) return 0
  const percent = 100 * (Math.abs(sent - cached) / Math.max(Math.abs(cached), DEVIATION_FLOORS[field]))
  if (percent < ROUNDED_PCT_MAX) return Math.round(percent * ROUNDING_PER_PCT) / ROUNDING_PER_PCT
  return Math.min(percent, Number.MAX_VALUE)
}

/** Compares every field that the client sent and the cache knows. */
export function deviationOf(sent: Partial<SubmittedSnapshot>, cached: SnapshotValues): Deviation {
  const result: Deviation = { deviationPct: 0, worstField: null, deviations: {} }
  for (const field of SNAPSHOT_FIELDS) {
    const sentValue = sent[field]
    const cachedValue = cached[field]
    if (sentValue == null || cachedValue == null) continue
    const percent = fieldDeviationPct(field, sentValue, cachedValue)
    result.deviations[field] = percent
    if (result.worstField === null || percent > result.deviationPct) {
      result.deviationPct = percent
      result.worstField = field
    }
  }
  return result
}

/**
 * Compares with the version in effect at `snapshotAt` (null when it is not held) and with the current one, each as a
 * whole; the smaller deviation counts, the client's version on a tie. A version that knows none of the sent fields has
 * nothing to say: it counts only when the other knows none either, so that a token's empty first moment clears nobody.
 */
export function compareSnapshot(
  sent: Partial<SubmittedSnapshot>,
  asOf: SnapshotValues | null,
  current: SnapshotValues,
): Comparison {
  const now: Comparison = { ...deviationOf(sent, current), compared: current, version: 'current' }
  if (asOf === null) return now
  const then: Comparison = { ...deviationOf(sent, asOf), compared: asOf, version: 'asOf' }
  if ((then.worstField === null) !== (now.worstField === null)) return then.worstField === null ? now : then
  return now.deviationPct < then.deviationPct ? now : then
}

/** True when the DataPoint holds nothing at all to compare with. */
export function isEmptySnapshot(values: SnapshotValues): boolean {
  return SNAPSHOT_FIELDS.every((field) => values[field] === null)
}
