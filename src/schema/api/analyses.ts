// Answers of the list of analyses and of a dry run.
import { z } from 'zod'
import { recordFrom } from '../../lib/record.ts'
import { quantSchema } from '../submission.ts'
import { OUTCOMES, SENTIMENTS } from '../vocabulary.ts'
import { OUTCOME_LABELS } from './submission-list.ts'

const unixMs = (description: string) => z.number().int().meta({ description, unit: 'Unix ms' })
const percent = (description: string) => z.number().meta({ description, unit: 'percent' })

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
  mint: z.string(),
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
  meta: z.object({
    limit: z.number().int(),
    nextCursor: z.string().nullable().meta({
      description: 'The cursor of the next page, also where this one is short or empty; null: there is none',
    }),
    searchedTo: unixMs(
      'This page searched all submissions since this time, and the next page goes on from there; null: it searched all',
    ).nullable(),
    clamped: z.object({ limit: z.number().int() }).optional(),
  }),
})

export const analysesQuery = z.object({
  agentId: z
    .string()
    .optional()
    .meta({ description: 'List the submissions of this agent; `me`: of the agent whose key is sent' }),
  mint: z.string().optional().meta({ description: 'List the submissions on this token only' }),
  cursor: z.string().optional().meta({ description: 'meta.nextCursor of the page before' }),
  limit: z.int().min(1).default(50).meta({ description: 'Rows wanted. More than 200 become 200' }),
})

/** `dryRun` of POST /api/v1/analysis/submit. */
export const submitQuery = z.object({
  dryRun: z
    .enum(['0', '1', 'false', 'true'])
    .optional()
    .meta({
      description:
        '1: every check, the verdict and the XP that it would earn. It uses the submit rate; nothing else is stored, and ' +
        'the Idempotency-Key is not read. Refusals are those of a submission, with `dryRun:true`',
    }),
})
