// In: what a client says of a token and what the cache held. Out: how far they are apart, field by field, in percent.
// Never looks anything up and never decides what the distance means: see xp.ts for the outcome.
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

/** The distance from one version of the DataPoint. */
interface Distance {
  /** By field, in the specification's order; -1 where nothing was compared. */
  readonly percents: Float64Array
  worst: number
}

const NOTHING = -1
const FIELD_COUNT = SNAPSHOT_FIELDS.length
const newDistance = (): Distance => ({ percents: new Float64Array(FIELD_COUNT), worst: NOTHING })
/** Written anew by each comparison. */
const fromCurrent = newDistance()
const fromAsOf = newDistance()

function measure(distance: Distance, sent: Partial<SubmittedSnapshot>, cached: SnapshotValues): void {
  const { percents } = distance
  let worst = NOTHING
  for (let at = 0; at < FIELD_COUNT; at++) {
    const field = SNAPSHOT_FIELDS[at]
    const sentValue = sent[field]
    const cachedValue = cached[field]
    if (sentValue == null || cachedValue == null) {
      percents[at] = NOTHING
      continue
    }
    percents[at] = fieldDeviationPct(field, sentValue, cachedValue)
    if (worst === NOTHING || percents[at] > percents[worst]) worst = at
  }
  distance.worst = worst
}

function comparisonOf(
  { percents, worst }: Distance,
  compared: SnapshotValues,
  version: Comparison['version'],
): Comparison {
  const deviations: Deviation['deviations'] = {}
  for (let at = 0; at < FIELD_COUNT; at++) {
    if (percents[at] !== NOTHING) deviations[SNAPSHOT_FIELDS[at]] = percents[at]
  }
  const isEmpty = worst === NOTHING
  return {
    deviationPct: isEmpty ? 0 : percents[worst],
    worstField: isEmpty ? null : SNAPSHOT_FIELDS[worst],
    deviations,
    compared,
    version,
  }
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
  measure(fromCurrent, sent, current)
  if (asOf === null) return comparisonOf(fromCurrent, current, 'current')
  measure(fromAsOf, sent, asOf)
  return isNearer(fromCurrent, fromAsOf)
    ? comparisonOf(fromCurrent, current, 'current')
    : comparisonOf(fromAsOf, asOf, 'asOf')
}

function isNearer(one: Distance, other: Distance): boolean {
  if (one.worst === NOTHING || other.worst === NOTHING) return one.worst > other.worst
  return one.percents[one.worst] < other.percents[other.worst]
}

/** True when the DataPoint holds nothing at all to compare with. */
export function isEmptySnapshot(values: SnapshotValues): boolean {
  return SNAPSHOT_FIELDS.every((field) => values[field] === null)
}

const PERCENT = new Intl.NumberFormat('en-US', { maximumSignificantDigits: 4 })
/** Beyond it nobody reads the digits. */
const SHOWN_PCT_MAX = 1e9

/** A deviation for people: `50.1%`, `6,923,000%`; never in powers of ten, and never rounded down to the bound it is above. */
export function shownPercent(deviationPct: number): string {
  if (deviationPct > SHOWN_PCT_MAX) return `more than ${PERCENT.format(SHOWN_PCT_MAX)}%`
  const { deviationPctMax } = XP_MULTIPLIERS.unvalidated
  const isJustAbove = deviationPct > deviationPctMax && Number(deviationPct.toPrecision(4)) <= deviationPctMax
  return isJustAbove ? `just over ${deviationPctMax}%` : `${PERCENT.format(deviationPct)}%`
}
