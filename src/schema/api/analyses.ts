// The answer of the list of analyses.
import { z } from 'zod'
import { recordFrom } from '../../lib/record.ts'
import { quantSchema } from '../submission.ts'
import { OUTCOMES, SENTIMENTS } from '../vocabulary.ts'
import { clampedSchema, metaWith, percent, unixMs } from './parts.ts'
import { OUTCOME_LABELS } from './submission-list.ts'

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
