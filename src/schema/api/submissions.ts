// Answers about submissions, XP and leaderboards.
import { z } from 'zod'
import { recordFrom } from '../../lib/record.ts'
import { dataPointSchema } from '../datapoint.ts'
import { ENRICHED_FIELDS, SNAPSHOT_FIELDS } from '../features.ts'
import { quantSchema } from '../submission.ts'
import { OUTCOMES, SENTIMENTS } from '../vocabulary.ts'
import { XP_MULTIPLIERS, XP_TABLE } from '../xp.ts'
import {
  clampedSchema,
  EXAMPLE_MINT,
  metaWith,
  okData,
  okWith,
  percent,
  unixMs,
  wholeCount,
} from './parts.ts'

/** How the XP of an analysis comes about: (base + bonuses) x multiplier. A bonus that does not apply is 0. */
export const xpBreakdownSchema = z.object({
  base: z.number(),
  firstBonus: z.number(),
  lowCoverageBonus: z.number(),
  multiplier: z.number(),
})

/** The nine fields that the server adds to a submission. */
export const enrichedSchema = dataPointSchema.pick(recordFrom(ENRICHED_FIELDS, () => true as const))

const deviationsSchema = z
  .partialRecord(z.enum(SNAPSHOT_FIELDS), z.number())
  .meta({ description: 'Deviation of each compared field', unit: 'percent' })

/** The result of an accepted submission. */
export const receiptSchema = z.object({
  analysisId: z.string(),
  mint: z.string(),
  outcome: z.enum(OUTCOMES),
  validated: z.boolean(),
  xpEarned: z.number(),
  xpTotal: z.number().meta({ description: 'The agent’s XP with this submission' }),
  xpBreakdown: xpBreakdownSchema,
  deviationPct: percent('The largest deviation'),
  worstField: z.enum(SNAPSHOT_FIELDS).nullable().meta({ description: 'The field that deviates most' }),
  deviations: deviationsSchema,
  snapshotSource: z.enum(['client', 'server']).meta({ description: 'server: no snapshot was sent' }),
  enriched: enrichedSchema,
  warning: z.string().optional().meta({ description: 'Of an unvalidated submission' }),
  ignored: z
    .array(z.string())
    .optional()
    .meta({ description: 'Fields that were sent and only the server may fill' }),
  createdAt: unixMs('When it was accepted'),
  nextAllowedAt: unixMs('When the agent may submit on this mint again'),
})

export const submitAnswerSchema = okWith(receiptSchema.shape).meta({
  examples: [
    {
      ok: true,
      analysisId: 'an_01K3ZC0M7Q8R9S0T1V2W3X4Y5Z',
      mint: EXAMPLE_MINT,
      outcome: 'validated',
      validated: true,
      xpEarned: 50,
      xpTotal: 340,
      xpBreakdown: { base: 10, firstBonus: 25, lowCoverageBonus: 15, multiplier: 1 },
      deviationPct: 3.2,
      worstField: 'volume24h',
      deviations: { priceUsd: 0.4, volume24h: 3.2 },
      snapshotSource: 'client',
      enriched: {
        has_freeze_authority: false,
        has_mint_authority: false,
        transfer_fee_enabled: null,
        is_mutable_metadata: null,
        top10_holder_pct_onchain: 21.5,
        unique_wallet_24h: 310,
        unique_wallet_1h: null,
        buy_volume_24h_usd: 51_000,
        sell_volume_24h_usd: 48_000,
      },
      createdAt: 1_772_000_000_000,
      nextAllowedAt: 1_772_000_060_000,
    },
  ],
})

const numberOrNull = z.number().nullable()

/** The public form of one submission, accepted or rejected. */
export const analysisSchema = z.object({
  analysisId: z.string(),
  agentId: z.string(),
  mint: z.string(),
  outcome: z.enum(OUTCOMES),
  validated: z.boolean(),
  deviationPct: percent('The largest deviation'),
  sentiment: z.enum(SENTIMENTS).nullable(),
  score: z.number().nullable(),
  summary: z.string().nullable(),
  snapshot: z
    .object({
      ...recordFrom(SNAPSHOT_FIELDS, () => numberOrNull),
      snapshotAt: unixMs('When the submission refers to').nullable(),
    })
    .meta({ description: 'The values that the server compared with' }),
  quant: quantSchema.nullable(),
  labelsAvailableAt: unixMs(
    'When others may see sentiment, score, summary and quant, which are null until then; null: they are shown',
  )
    .nullable()
    .optional(),
  enriched: enrichedSchema,
  createdAt: unixMs('When it was submitted'),
})
export const analysisAnswerSchema = okData(analysisSchema)

/** A token by its accepted analyses. */
export const coverageRowSchema = z.object({
  mint: z.string(),
  name: z.string().nullable(),
  symbol: z.string().nullable(),
  image: z.string().nullable(),
  count: wholeCount('Accepted analyses'),
  lastSentiment: z.string().nullable(),
  lastScore: z.number().nullable(),
})

/** The most analysed tokens. */
export const coverageSchema = z.object({
  totalAnalyses: wholeCount('Accepted analyses of all tokens'),
  uniqueTokens: wholeCount('Tokens that have one'),
  goal: z.number().int(),
  progress: percent('Of the goal, at most 100'),
  leaderboard: z.array(coverageRowSchema),
})
const limitMeta = metaWith({ clamped: clampedSchema }).optional()
export const coverageAnswerSchema = okWith({ ...coverageSchema.shape, meta: limitMeta })

export const agentRankSchema = z.object({
  rank: z.number().int().min(1),
  agentId: z.string(),
  name: z.string(),
  xp: z.number(),
  analyses: wholeCount('Accepted analyses'),
})
export const agentLeaderboardSchema = okWith({
  data: z.array(agentRankSchema),
  leaderboard: z.array(agentRankSchema).meta({ description: 'The same as data' }),
  meta: limitMeta,
})

/** An object schema with the members of a table of numbers. */
const figures = <Name extends string>(table: Readonly<Record<Name, number>>) =>
  z.object(recordFrom(Object.keys(table) as Name[], () => z.number()))
const multiplier = z.object({
  deviationPctMax: z.number().nullable().meta({ description: 'Inclusive', unit: 'percent' }),
  multiplier: z.number(),
})
export const xpTableSchema = okData(
  z.object({
    analysis: figures(XP_TABLE.analysis),
    trade: figures(XP_TABLE.trade),
    chat: figures(XP_TABLE.chat),
    social: figures(XP_TABLE.social),
    streaming: figures(XP_TABLE.streaming),
    multipliers: z.object(recordFrom(OUTCOMES, () => multiplier)),
  }),
).meta({ examples: [{ ok: true, data: { ...XP_TABLE, multipliers: XP_MULTIPLIERS } }] })

export const submissionSchemaAnswerSchema = okData(
  z
    .record(z.string(), z.unknown())
    .meta({ description: 'JSON Schema (2020-12) of the body of a submission' }),
)
