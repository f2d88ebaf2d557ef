// Answers about submissions, XP and leaderboards.
import { z } from 'zod'
import { recordFrom } from '../../lib/record.ts'
import { DAY_MS } from '../../lib/time.ts'
import { dataPointSchema } from '../datapoint.ts'
import { EXAMPLE_AGENT_ID, EXAMPLE_MINT, EXAMPLE_TIME_MS, exampleOf, withExample } from '../example.ts'
import { ENRICHED_FIELDS, SNAPSHOT_FIELDS } from '../features.ts'
import { quantSchema, submissionSchema } from '../submission.ts'
import { OUTCOMES, SENTIMENTS } from '../vocabulary.ts'
import { XP_MULTIPLIERS, XP_TABLE } from '../xp.ts'
import { agentHorizonSchema } from './agent-record.ts'
import * as parameter from './parameters.ts'
import {
  clampedSchema,
  deviationsSchema,
  metaWith,
  okData,
  okWith,
  percent,
  unixMs,
  wholeCount,
} from './parts.ts'
import { OUTCOME_LABELS } from './submission-list.ts'

/**
 * So much less than a minute an attempt counts against the rate. Agents that send every 6.0 s, the most that ten a minute allow, arrive some
 * milliseconds earlier or later: without it one in twenty was refused.
 */
export const SUBMIT_JITTER_MS = 100

/** A longer key is refused; an answer is remembered for this long, also over a restart. */
export const IDEMPOTENCY_KEY_CHARACTERS_MAX = 255
export const IDEMPOTENCY_TTL_MS = DAY_MS
/** Remembered responses. Beyond it the oldest is dropped, and a repetition of its request counts as a new submission. */
export const IDEMPOTENCY_RESPONSES_MAX = 50_000

export const LEADERBOARD_LIMIT_DEFAULT = 50
export const LEADERBOARD_LIMIT_MAX = 200

/** POST /api/v1/analysis/submit */
export const submitQuery = z.object({
  dryRun: parameter.word(
    ['0', '1', 'false', 'true'],
    '1: every check, the verdict and the XP that it would earn. It uses the submit rate; nothing else is stored, and ' +
      'the Idempotency-Key is not read. Refusals are those of a submission, with `dryRun:true`',
  ),
})

/** GET of either leaderboard. */
export const leaderboardQuery = z.object({
  limit: parameter.limit(LEADERBOARD_LIMIT_DEFAULT, LEADERBOARD_LIMIT_MAX, ', which meta.clamped tells'),
})

/** How the XP of an analysis comes about: (base + bonuses) x multiplier. A bonus that does not apply is 0. */
export const xpBreakdownSchema = z.object({
  base: z.number(),
  firstBonus: z.number(),
  lowCoverageBonus: z.number(),
  multiplier: z.number(),
})

/** The nine fields that the server adds to a submission. */
export const enrichedSchema = dataPointSchema.pick(recordFrom(ENRICHED_FIELDS, () => true as const))

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
  nextAllowedAt: unixMs('When the agent may submit on this mint again, by the wall clock, in a replay too'),
})

const EXAMPLE_ANALYSIS_ID = 'an_01K3ZC0M7Q8R9S0T1V2W3X4Y5Z'
const EXAMPLE_ENRICHED = recordFrom(ENRICHED_FIELDS, (field) => exampleOf(dataPointSchema)[field])
const EXAMPLE_RECEIPT = {
  analysisId: EXAMPLE_ANALYSIS_ID,
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
  enriched: EXAMPLE_ENRICHED,
  createdAt: EXAMPLE_TIME_MS,
  nextAllowedAt: EXAMPLE_TIME_MS + 60_000,
}
export const submitAnswerSchema = okWith(receiptSchema.shape, { ...EXAMPLE_RECEIPT })

/** The verdict of a dry run: what the submission would get. */
export const dryRunSchema = okWith(
  { dryRun: z.literal(true), ...receiptSchema.shape, analysisId: z.null() },
  { dryRun: true, ...EXAMPLE_RECEIPT, analysisId: null },
)

/** Rows of one page of a list of submissions. */
export const ANALYSES_LIMIT_DEFAULT = 50
export const ANALYSES_LIMIT_MAX = 200

/** GET /api/v1/analysis */
export const analysesQuery = z.object({
  agentId: parameter.text('List the submissions of this agent; `me`: of the agent whose key is sent'),
  mint: parameter.text('List the submissions on this token only'),
  latest: parameter.word(['0', '1', 'false', 'true'], '1: list the submissions of all agents on all tokens'),
  outcome: parameter.word(OUTCOMES, 'List those with this verdict only'),
  sentiment: parameter.word(SENTIMENTS, 'List those that say this only; withheld labels are none'),
  cursor: parameter.text('meta.nextCursor of the page before'),
  limit: parameter.limit(ANALYSES_LIMIT_DEFAULT, ANALYSES_LIMIT_MAX, ''),
})

/** What the price did after an accepted submission: the columns of the table `outcomes`. */
export const outcomeLabelsSchema = z
  .object({
    ...recordFrom(OUTCOME_LABELS, () => z.number().nullable()),
    dead_24h: z.boolean().nullable(),
  })
  .meta({
    description:
      'What the price did afterwards, as in the table `outcomes`: fractions, 0.1 is 10 %. null: not known yet, or rejected',
  })

/** One analysis of a list. */
export const listedAnalysisSchema = z.object({
  analysisId: z.string(),
  agentId: z.string(),
  agentName: z.string(),
  mint: z.string(),
  symbol: z.string().nullable().meta({ description: 'null: the market holds the token no longer' }),
  outcome: z.enum(OUTCOMES),
  validated: z.boolean(),
  deviationPct: percent('The largest deviation'),
  xpEarned: z.number().nullable().meta({ description: 'null: not known, its entry of the ledger was lost' }),
  sentiment: z.enum(SENTIMENTS).nullable(),
  score: z.number().nullable(),
  summary: z.string().nullable(),
  quant: quantSchema.nullable(),
  labelsAvailableAt: unixMs(
    'When others may see sentiment, score, summary and quant, by the wall clock, in a replay too; they are null until then. null: they are shown',
  ).nullable(),
  outcomes: outcomeLabelsSchema,
  createdAt: unixMs('When it was submitted'),
})

export const analysisListSchema = z.object({
  ok: z.literal(true),
  data: z.array(listedAnalysisSchema).meta({ description: 'Newest first' }),
  meta: metaWith({
    limit: z.number().int(),
    nextCursor: z.string().nullable().meta({
      description: 'The cursor of the next page, also where this one is short or empty; null: there is none',
    }),
    searchedTo: unixMs(
      'This page searched all submissions since this time, and the next page goes on from there; null: it searched all',
    ).nullable(),
    clamped: clampedSchema,
  }),
})

/** The public form of one submission, accepted or rejected. */
export const analysisSchema = listedAnalysisSchema
  .omit({ agentName: true, symbol: true, xpEarned: true, outcomes: true })
  .extend({
    snapshot: z
      .object({
        ...recordFrom(SNAPSHOT_FIELDS, () => z.number().nullable()),
        snapshotAt: unixMs('When the submission refers to').nullable(),
      })
      .meta({ description: 'The values that the server compared with' }),
    enriched: enrichedSchema,
  })
const { mint: _, snapshot, quant, ...EXAMPLE_LABELS } = exampleOf(submissionSchema)
export const analysisAnswerSchema = okData(analysisSchema, {
  labelsAvailableAt: null,
  analysisId: EXAMPLE_ANALYSIS_ID,
  agentId: EXAMPLE_AGENT_ID,
  mint: EXAMPLE_MINT,
  outcome: 'validated',
  validated: true,
  deviationPct: 3.2,
  ...EXAMPLE_LABELS,
  snapshot,
  quant,
  enriched: EXAMPLE_ENRICHED,
  createdAt: EXAMPLE_TIME_MS,
})

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
const EXAMPLE_COVERAGE = {
  totalAnalyses: 2,
  uniqueTokens: 1,
  goal: 10_000,
  progress: 0.02,
  leaderboard: [
    {
      mint: EXAMPLE_MINT,
      name: 'Soggy Narwhal',
      symbol: 'NARWHAL',
      image: null,
      count: 2,
      lastSentiment: 'bullish',
      lastScore: 70,
    },
  ],
}
const coverageAnswerSchema = okWith({ ...coverageSchema.shape, meta: limitMeta }, EXAMPLE_COVERAGE)

/** With agentId or mint a list of submissions, otherwise the most analysed tokens. */
export const analysesAnswerSchema = withExample(
  z.union([coverageAnswerSchema, analysisListSchema]),
  exampleOf(coverageAnswerSchema),
)

export const agentRankSchema = z.object({
  rank: z.number().int().min(1),
  agentId: z.string(),
  name: z.string(),
  xp: z.number(),
  analyses: wholeCount('Accepted analyses'),
  horizons: z.array(agentHorizonSchema).meta({
    description:
      'Whether it was right, as in its record: of the last 30 days, of submissions whose labels anybody may see, shortest ' +
      'first, computed once a minute. Empty while nothing is known',
  }),
})
const EXAMPLE_RANK = {
  rank: 1,
  agentId: EXAMPLE_AGENT_ID,
  name: 'curve-watcher',
  xp: 340,
  analyses: 9,
  horizons: [{ horizon: '5m', count: 8, hits: 5, meanPct: 0.9 }],
}
export const agentLeaderboardSchema = okWith(
  {
    data: z.array(agentRankSchema),
    leaderboard: z.array(agentRankSchema).meta({ description: 'The same as data' }),
    meta: limitMeta,
  },
  { data: [EXAMPLE_RANK], leaderboard: [EXAMPLE_RANK] },
)

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
  { ...XP_TABLE, multipliers: XP_MULTIPLIERS },
)

export const submissionSchemaAnswerSchema = okData(
  z
    .record(z.string(), z.unknown())
    .meta({ description: 'JSON Schema (2020-12) of the body of a submission' }),
  { type: 'object', required: ['mint', 'sentiment', 'score', 'summary', 'quant'] },
)
