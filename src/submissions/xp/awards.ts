import { AWARDED_KINDS, type AwardedKind } from '../../schema/xp.ts'
import { SubmissionError } from '../errors.ts'
import { AWARD_TIMES_MAX } from '../limits.ts'

/** The activity of that name. Throws validation_failed: the operator awards no XP for analyses, or for unknown activities. */
export function parseAwardedKind(kind: string): AwardedKind {
  const known = AWARDED_KINDS.find((each) => each === kind)
  if (known !== undefined) return known
  throw new SubmissionError('validation_failed', `kind must be one of ${AWARDED_KINDS.join(', ')}.`, {
    errors: [
      {
        pointer: '/kind',
        code: 'not_allowed',
        message: 'is not awarded by the operator',
        allowed: AWARDED_KINDS,
      },
    ],
  })
}

/** Throws validation_failed unless `times` is a whole number from 1 to AWARD_TIMES_MAX. */
export function checkAwardTimes(times: number): void {
  if (Number.isInteger(times) && times >= 1 && times <= AWARD_TIMES_MAX) return
  throw new SubmissionError('validation_failed', `times must be 1 to ${AWARD_TIMES_MAX}.`, {
    errors: [{ pointer: '/times', code: 'out_of_range', message: `must be 1 to ${AWARD_TIMES_MAX}` }],
  })
}
