import { unitHint } from '../lib/time.ts'
import { SubmissionError } from './errors.ts'
import { SNAPSHOT_AGE_MS_MAX, SNAPSHOT_AHEAD_MS_MAX } from './limits.ts'

const isValidAge = (ageMs: number): boolean => ageMs <= SNAPSHOT_AGE_MS_MAX && ageMs >= -SNAPSHOT_AHEAD_MS_MAX

/** Whether a snapshot of this time may be submitted, by one of the times that count as now. */
export const isOfAge = (snapshotAtMs: number, nowsMs: readonly number[]): boolean =>
  nowsMs.some((nowMs) => isValidAge(nowMs - snapshotAtMs))

/** That of `nowsMs` which is nearest to `atMs`. */
const nearestOf = (nowsMs: readonly number[], atMs: number): number =>
  nowsMs.reduce((nearest, nowMs) => (Math.abs(nowMs - atMs) < Math.abs(nearest - atMs) ? nowMs : nearest))

/**
 * Throws `snapshot_stale` for an age over 300 000 ms and `snapshot_in_future` for a time more than 30 000 ms ahead; both
 * bounds are inclusive. It is enough that the age is valid by one of `nowsMs`, the times that count as now. Unix ms.
 */
export function checkSnapshotAge(snapshotAtMs: number, nowsMs: readonly number[]): void {
  if (isOfAge(snapshotAtMs, nowsMs)) return
  const nowMs = nearestOf(nowsMs, snapshotAtMs)
  const unit = unitHint(snapshotAtMs)
  const hint = unit === null ? null : `snapshotAt ${unit}.`
  const stale = nowMs > snapshotAtMs
  const sentence = stale
    ? `The snapshot is older than ${SNAPSHOT_AGE_MS_MAX} ms: read the DataPoint again and submit within 5 minutes.`
    : `The snapshot lies more than ${SNAPSHOT_AHEAD_MS_MAX} ms in the future: check the clock.`
  throw new SubmissionError(
    stale ? 'snapshot_stale' : 'snapshot_in_future',
    hint === null ? sentence : `${sentence} ${hint}`,
    {
      errors: [
        {
          pointer: '/snapshot/snapshotAt',
          code: stale ? 'too_old' : 'in_future',
          message: hint ?? (stale ? 'must be at most 5 minutes old' : 'must not be more than 30 s ahead'),
        },
      ],
      snapshotAt: snapshotAtMs,
      serverTime: nowMs,
      ...(hint === null ? {} : { hint }),
    },
  )
}

/** A snapshot is stamped with a clock of the client's own, which does not say what time it was in the market. */
export const ownClock = (snapshotAtMs: number, nowMs: number): SubmissionError => {
  const hint =
    'Send the snapshotAt of the DataPoint, or the time that X-Market-Time said when it was read: this market has a time of its own.'
  return new SubmissionError(
    'snapshot_in_future',
    `The snapshot is stamped with a clock that does not say when it was in this market. ${hint}`,
    {
      errors: [{ pointer: '/snapshot/snapshotAt', code: 'not_market_time', message: 'must be market time' }],
      snapshotAt: snapshotAtMs,
      serverTime: nowMs,
      hint,
    },
  )
}
