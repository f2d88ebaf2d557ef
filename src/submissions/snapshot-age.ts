// In: the time a client says it read the snapshot, and the times that may be called now. Out: nothing, or the error to answer.
// Never reads a clock.
import { DAY_MS } from '../lib/time.ts'
import { ServiceError } from '../schema/errors.ts'
import { SNAPSHOT_AGE_MS_MAX, SNAPSHOT_AHEAD_MS_MAX } from './limits.ts'

const MS_PER_SECOND = 1_000

/** What else the number could be, when it is no recent time in milliseconds: a sentence, or null. */
function unitHint(snapshotAtMs: number, nowMs: number): string | null {
  const near = (timeMs: number) => Math.abs(timeMs - nowMs) <= DAY_MS
  if (near(snapshotAtMs * MS_PER_SECOND)) {
    return 'snapshotAt looks like seconds: send Unix milliseconds, 1000 times this number.'
  }
  if (near(snapshotAtMs / MS_PER_SECOND)) {
    return 'snapshotAt looks like microseconds: send Unix milliseconds, a thousandth of this number.'
  }
  return null
}

const isOfAge = (ageMs: number): boolean => ageMs <= SNAPSHOT_AGE_MS_MAX && ageMs >= -SNAPSHOT_AHEAD_MS_MAX

/** How old something of `atMs` is by whichever of `nowsMs` is nearest to it. */
function smallestAge(atMs: number, nowsMs: readonly number[]): number {
  const ages = nowsMs.map((nowMs) => nowMs - atMs)
  return ages.reduce((nearest, ageMs) => (Math.abs(ageMs) < Math.abs(nearest) ? ageMs : nearest))
}

/**
 * Throws `snapshot_stale` over 300 000 ms of age and `snapshot_in_future` over 30 000 ms ahead; both bounds pass. One of
 * `nowsMs` by which it is neither is enough.
 */
export function checkSnapshotAge(snapshotAtMs: number, nowsMs: readonly number[]): void {
  if (nowsMs.some((nowMs) => isOfAge(nowMs - snapshotAtMs))) return
  const ageMs = smallestAge(snapshotAtMs, nowsMs)
  const nowMs = snapshotAtMs + ageMs
  const hint = unitHint(snapshotAtMs, nowMs)
  const stale = ageMs > 0
  const sentence = stale
    ? `The snapshot is older than ${SNAPSHOT_AGE_MS_MAX} ms: read the DataPoint again and submit within 5 minutes.`
    : `The snapshot lies more than ${SNAPSHOT_AHEAD_MS_MAX} ms in the future: check the clock.`
  throw new ServiceError(
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
