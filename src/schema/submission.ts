import { z } from 'zod'
import { recordFrom } from '../lib/record.ts'
import { AMOUNT_MAX } from './bounds.ts'
import { dataPointSchema, SNAPSHOT_FIELDS, type SnapshotField } from './datapoint.ts'
import { EXAMPLE_MINT, EXAMPLE_TIME_MS, exampleOf, withExample } from './example.ts'
import { isMint, MINT_SHAPE } from './mint.ts'
import {
  HOLDER_CONCENTRATIONS,
  LIQUIDITY_DEPTHS,
  RISK_FACTORS,
  RISK_FACTORS_MAX,
  RISK_FACTORS_MIN,
  RISK_LEVELS,
  SENTIMENTS,
  SUMMARY_CODE_POINTS_MAX,
  SUMMARY_CODE_POINTS_MIN,
  TREND_DIRECTIONS,
  VOLUME_PROFILES,
} from './vocabulary.ts'

/**
 * The number of code points, exact only where the bounds on the summary depend on it. A text has at most as many code points as
 * UTF-16 units, and at least half as many, so that most texts need no counting.
 */
const countCodePoints = (text: string): number => {
  const units = text.length
  if (units < SUMMARY_CODE_POINTS_MIN || units > 2 * SUMMARY_CODE_POINTS_MAX) return units
  if (units >= 2 * SUMMARY_CODE_POINTS_MIN && units <= SUMMARY_CODE_POINTS_MAX) return units
  let count = 0
  for (const _ of text) count++
  return count
}

function lengthFault(count: number): { message: string; params: { code: string } } | null {
  if (count < SUMMARY_CODE_POINTS_MIN)
    return {
      message: `must be at least ${SUMMARY_CODE_POINTS_MIN} characters`,
      params: { code: 'too_small' },
    }
  if (count > SUMMARY_CODE_POINTS_MAX)
    return { message: `must be at most ${SUMMARY_CODE_POINTS_MAX} characters`, params: { code: 'too_big' } }
  return null
}

/** Removes duplicates. Returns the same array when there are none, which is the usual case. */
const withoutDuplicates = <T>(items: T[]): T[] => {
  let at = 0
  for (const item of items) {
    if (items.indexOf(item) < at) return [...new Set(items)]
    at++
  }
  return items
}

const PERCENT_MAX = 100

/** The issue of a number that is not between 0 and `maximum`; null where there is none. */
function rangeFault(input: number, maximum: number) {
  const fault = { origin: 'number', inclusive: true, input } as const
  if (input < 0) return { code: 'too_small', minimum: 0, ...fault } as const
  return input > maximum ? ({ code: 'too_big', maximum, ...fault } as const) : null
}

/** One check for both bounds takes half the time of two. */
const percent = z
  .number()
  .check(({ value, issues }) => {
    const fault = rangeFault(value, PERCENT_MAX)
    if (fault !== null) issues.push(fault)
  })
  .meta({ minimum: 0, maximum: PERCENT_MAX })

export const quantSchema = z.object({
  riskLevel: z.enum(RISK_LEVELS),
  riskFactors: z
    .array(z.enum(RISK_FACTORS))
    .overwrite(withoutDuplicates)
    .min(RISK_FACTORS_MIN)
    .max(RISK_FACTORS_MAX),
  buyPressure: percent,
  volatilityScore: percent,
  liquidityDepth: z.enum(LIQUIDITY_DEPTHS),
  holderConcentration: z.enum(HOLDER_CONCENTRATIONS),
  trendDirection: z.enum(TREND_DIRECTIONS),
  volumeProfile: z.enum(VOLUME_PROFILES),
})

const PERCENTS: ReadonlySet<string> = new Set(['top10HolderPct', 'bondingProgress'])

const snapshotNumbers = recordFrom(SNAPSHOT_FIELDS, (field) => {
  const range = { minimum: 0, maximum: PERCENTS.has(field) ? PERCENT_MAX : AMOUNT_MAX }
  return z.number().meta(range).nullish()
})

/** Compared values cannot be negative or beyond the market's bounds. One check for all fields: nine would take a microsecond. */
const inRange = z.check<{ [Field in SnapshotField]?: number | null | undefined }>(({ value, issues }) => {
  for (const field of SNAPSHOT_FIELDS) {
    const figure = value[field]
    if (typeof figure !== 'number') continue
    const fault = rangeFault(figure, PERCENTS.has(field) ? PERCENT_MAX : AMOUNT_MAX)
    if (fault !== null) issues.push({ ...fault, path: [field] })
  }
})
// Runs even when a field has a wrong type, so that an agent learns of all errors at once.
inRange._zod.def.when = ({ value }) => typeof value === 'object' && value !== null

export const snapshotSchema = z
  .object({
    ...snapshotNumbers,
    snapshotAt: z
      .number()
      .meta({ description: 'When the data was read, at most 5 minutes ago', unit: 'Unix ms' }),
  })
  .check(inRange)

export const submissionSchema = withExample(
  z.object({
    mint: z
      .string()
      .refine(isMint, { error: 'not a base58 address of 32 bytes', params: { code: 'invalid_mint' } })
      .meta({ description: 'Mint address, base58 of 32 bytes', ...MINT_SHAPE }),
    sentiment: z.enum(SENTIMENTS),
    score: percent,
    summary: z
      .string()
      .trim()
      .check(({ value, issues }) => {
        const fault = lengthFault(countCodePoints(value))
        if (fault !== null) issues.push({ code: 'custom', input: value, ...fault })
      })
      .meta({
        description: 'The analysis in words; length in Unicode code points after trimming',
        minLength: SUMMARY_CODE_POINTS_MIN,
        maxLength: SUMMARY_CODE_POINTS_MAX,
      }),
    snapshot: snapshotSchema.nullish(),
    quant: quantSchema,
  }),
  {
    mint: EXAMPLE_MINT,
    sentiment: 'bullish',
    score: 70,
    summary:
      'Volume rises while the ten largest wallets hold still; the bonding curve is six tenths of the way.',
    quant: {
      riskLevel: 'medium',
      riskFactors: ['bonding_curve_risk', 'high_concentration'],
      buyPressure: 55,
      volatilityScore: 40,
      liquidityDepth: 'moderate',
      holderConcentration: 'concentrated',
      trendDirection: 'up',
      volumeProfile: 'rising',
    },
    snapshot: {
      ...recordFrom(SNAPSHOT_FIELDS, (field) => exampleOf(dataPointSchema)[field]),
      snapshotAt: EXAMPLE_TIME_MS,
    },
  },
)

export type Submission = z.infer<typeof submissionSchema>
export type SubmittedSnapshot = z.infer<typeof snapshotSchema>
export type Quant = z.infer<typeof quantSchema>

/** A ULID after the prefix. The first digit of a valid ULID is at most 7. */
const ANALYSIS_ID = /^an_[0-7][0-9A-HJKMNP-TV-Z]{25}$/

/** Whether `text` has the form of a submission's identity. */
export const isAnalysisId = (text: string): boolean => ANALYSIS_ID.test(text)
