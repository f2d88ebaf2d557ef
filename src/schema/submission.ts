// In: the parsed body of a submission, of unknown shape. Out: a typed submission. Length is counted in Unicode code
// points after trimming; duplicate risk factors are folded. Never knows the market.
import { z } from 'zod'
import { AMOUNT_MAX } from './bounds.ts'
import { SNAPSHOT_FIELDS } from './datapoint.ts'
import { isMint, MINT_SHAPE } from './mint.ts'
import {
  HOLDER_CONCENTRATIONS,
  LIQUIDITY_DEPTHS,
  RISK_FACTORS,
  RISK_LEVELS,
  SENTIMENTS,
  TREND_DIRECTIONS,
  VOLUME_PROFILES,
} from './vocabulary.ts'

export const SUMMARY_CODE_POINTS_MIN = 50
export const SUMMARY_CODE_POINTS_MAX = 2_000
export const RISK_FACTORS_MIN = 1
export const RISK_FACTORS_MAX = 8

/**
 * How many code points `text` has, as far as the bounds ask: a text of so many UTF-16 units has at most as many and at
 * least half as many, so most texts need no counting.
 */
const codePoints = (text: string): number => {
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

/** Without duplicates; the same array when there are none, as nearly always. */
const distinct = <T>(items: T[]): T[] => {
  for (let at = 1; at < items.length; at++) {
    if (items.indexOf(items[at]) < at) return [...new Set(items)]
  }
  return items
}

const PERCENT_MAX = 100

/** What is wrong with a figure that must lie between zero and `maximum`; null: nothing. */
function rangeFault(input: number, maximum: number) {
  const fault = { origin: 'number', inclusive: true, input } as const
  if (input < 0) return { code: 'too_small', minimum: 0, ...fault } as const
  return input > maximum ? ({ code: 'too_big', maximum, ...fault } as const) : null
}

/** One check for both ends: it costs half of two. */
const percent = z
  .number()
  .check(({ value, issues }) => {
    const fault = rangeFault(value, PERCENT_MAX)
    if (fault !== null) issues.push(fault)
  })
  .meta({ minimum: 0, maximum: PERCENT_MAX })

export const quantSchema = z.object({
  riskLevel: z.enum(RISK_LEVELS),
  riskFactors: z.array(z.enum(RISK_FACTORS)).overwrite(distinct).min(RISK_FACTORS_MIN).max(RISK_FACTORS_MAX),
  buyPressure: percent,
  volatilityScore: percent,
  liquidityDepth: z.enum(LIQUIDITY_DEPTHS),
  holderConcentration: z.enum(HOLDER_CONCENTRATIONS),
  trendDirection: z.enum(TREND_DIRECTIONS),
  volumeProfile: z.enum(VOLUME_PROFILES),
})

const PERCENTS: ReadonlySet<string> = new Set(['top10HolderPct', 'bondingProgress'])

type Figure = z.ZodOptional<z.ZodNullable<z.ZodNumber>>
const snapshotNumbers = Object.fromEntries(
  SNAPSHOT_FIELDS.map((field) => {
    const range = PERCENTS.has(field)
      ? { minimum: 0, maximum: PERCENT_MAX }
      : { minimum: 0, maximum: AMOUNT_MAX }
    return [field, z.number().meta(range).nullish()]
  }),
) as Record<(typeof SNAPSHOT_FIELDS)[number], Figure>

/** Nothing that is compared can be negative, or larger than what the market holds. One check of all figures: one for each costs a microsecond in all. */
const inRange = z.check<Partial<Record<(typeof SNAPSHOT_FIELDS)[number], number | null>>>(
  ({ value, issues }) => {
    for (const field of SNAPSHOT_FIELDS) {
      const figure = value[field]
      if (typeof figure !== 'number') continue
      const fault = rangeFault(figure, PERCENTS.has(field) ? PERCENT_MAX : AMOUNT_MAX)
      if (fault !== null) issues.push({ ...fault, path: [field] })
    }
  },
)
// Beside a figure of a wrong type the others are checked too: an agent is told of all faults at once.
inRange._zod.def.when = ({ value }) => typeof value === 'object' && value !== null

export const snapshotSchema = z
  .object({
    ...snapshotNumbers,
    snapshotAt: z
      .number()
      .meta({ description: 'When the data was read, at most 5 minutes ago', unit: 'Unix ms' }),
  })
  .check(inRange)

export const submissionSchema = z.object({
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
      const fault = lengthFault(codePoints(value))
      if (fault !== null) issues.push({ code: 'custom', input: value, ...fault })
    })
    .meta({
      description: 'The analysis in words; length in Unicode code points after trimming',
      minLength: SUMMARY_CODE_POINTS_MIN,
      maxLength: SUMMARY_CODE_POINTS_MAX,
    }),
  snapshot: snapshotSchema.nullish(),
  quant: quantSchema,
})

export type Submission = z.infer<typeof submissionSchema>
export type SubmittedSnapshot = z.infer<typeof snapshotSchema>
export type Quant = z.infer<typeof quantSchema>

/** A ULID after the prefix; beyond 7 its first digit is no time. */
const ANALYSIS_ID = /^an_[0-7][0-9A-HJKMNP-TV-Z]{25}$/

/** Whether a submission of this service can bear that identity. */
export const isAnalysisId = (text: string): boolean => ANALYSIS_ID.test(text)
