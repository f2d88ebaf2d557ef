// The list of analyses: query and answer.
import { z } from 'zod'
import { recordFrom } from '../../lib/record.ts'
import { quantSchema } from '../submission.ts'
import { OUTCOMES, SENTIMENTS } from '../vocabulary.ts'
import * as parameter from './parameters.ts'
import { clampedSchema, metaWith, percent, unixMs } from './parts.ts'
import { OUTCOME_LABELS } from './submission-list.ts'

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
    'When others may see sentiment, score, summary and quant, which are null until then; null: they are shown',
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
