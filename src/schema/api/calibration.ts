// Whether the labels of accepted submissions came true.
import { z } from 'zod'
import { HORIZON_NAMES, SENTIMENTS } from '../vocabulary.ts'
import { okData, percent, unixMs, wholeCount } from './parts.ts'

/** Submissions and agents of a group that is shown, at least: a smaller one would tell who said what. */
export const CALIBRATION_SUBMISSIONS_MIN = 5
export const CALIBRATION_AGENTS_MIN = 3

export const calibrationGroupSchema = z.object({
  label: z.string(),
  horizon: z.enum(HORIZON_NAMES).meta({ description: 'Time after the submission' }),
  count: wholeCount('Submissions whose outcome is known'),
  tokens: wholeCount('Tokens that they are about'),
  meanPct: percent('Mean over the tokens of the mean return of each').nullable(),
  lowPct: percent('Lower end of its 95 % interval; null: fewer than two tokens').nullable(),
  highPct: percent('Upper end').nullable(),
})
export type CalibrationGroup = z.infer<typeof calibrationGroupSchema>

export const calibrationSchema = z.object({
  asOfMs: unixMs('When it was computed, by the time that submissions have: in a replay the market’s'),
  sinceMs: unixMs('Of submissions since this time'),
  sentiments: z
    .array(calibrationGroupSchema)
    .meta({ description: `One group for each of ${SENTIMENTS.join(', ')}` }),
  scores: z.array(calibrationGroupSchema).meta({ description: 'Groups of scores, each 20 wide' }),
})
export type Calibration = z.infer<typeof calibrationSchema>

export const calibrationAnswerSchema = okData(calibrationSchema, {
  asOfMs: 1_772_000_000_000,
  sinceMs: 1_769_400_000_000,
  sentiments: [
    { label: 'bullish', horizon: '1h', count: 120, tokens: 40, meanPct: 2.5, lowPct: -1.1, highPct: 6.1 },
  ],
  scores: [{ label: '60–79', horizon: '1h', count: 70, tokens: 31, meanPct: 1.9, lowPct: -2, highPct: 5.8 }],
})
