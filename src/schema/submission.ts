// In: the parsed body of a submission, of unknown shape. Out: a typed submission. Length is counted in Unicode code
// points after trimming; duplicate risk factors are folded. Never knows the market.
import { z } from 'zod'
import { SNAPSHOT_FIELDS } from './datapoint.ts'
import { isMint } from './mint.ts'
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

const codePoints = (text: string): number => {
  let count = 0
  for (const _ of text) count++
  return count
}

const percent = z.number().min(0).max(100)

export const quantSchema = z.object({
  riskLevel: z.enum(RISK_LEVELS),
  riskFactors: z
    .array(z.enum(RISK_FACTORS))
    .transform((factors) => [...new Set(factors)])
    .pipe(z.array(z.enum(RISK_FACTORS)).min(RISK_FACTORS_MIN).max(RISK_FACTORS_MAX)),
  buyPressure: percent,
  volatilityScore: percent,
  liquidityDepth: z.enum(LIQUIDITY_DEPTHS),
  holderConcentration: z.enum(HOLDER_CONCENTRATIONS),
  trendDirection: z.enum(TREND_DIRECTIONS),
  volumeProfile: z.enum(VOLUME_PROFILES),
})

const snapshotNumbers = Object.fromEntries(
  SNAPSHOT_FIELDS.map((field) => [field, z.number().nullish()]),
) as Record<(typeof SNAPSHOT_FIELDS)[number], z.ZodOptional<z.ZodNullable<z.ZodNumber>>>

export const snapshotSchema = z.object({
  ...snapshotNumbers,
  snapshotAt: z
    .number()
    .meta({ description: 'When the data was read, at most 5 minutes ago', unit: 'Unix ms' }),
})

export const submissionSchema = z.object({
  mint: z
    .string()
    .refine(isMint, { error: 'not a base58 address of 32 bytes', params: { code: 'invalid_mint' } }),
  sentiment: z.enum(SENTIMENTS),
  score: percent,
  summary: z
    .string()
    .transform((text) => text.trim())
    .refine((text) => codePoints(text) >= SUMMARY_CODE_POINTS_MIN, {
      error: `must be at least ${SUMMARY_CODE_POINTS_MIN} characters`,
      params: { code: 'too_small' },
    })
    .refine((text) => codePoints(text) <= SUMMARY_CODE_POINTS_MAX, {
      error: `must be at most ${SUMMARY_CODE_POINTS_MAX} characters`,
      params: { code: 'too_big' },
    }),
  snapshot: snapshotSchema.nullish(),
  quant: quantSchema,
})

export type Submission = z.infer<typeof submissionSchema>
export type SubmittedSnapshot = z.infer<typeof snapshotSchema>
export type Quant = z.infer<typeof quantSchema>
