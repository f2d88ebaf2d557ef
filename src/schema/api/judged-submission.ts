import { z } from 'zod'
import { OUTCOMES } from '../vocabulary.ts'
import { percent, unixMs } from './parts.ts'

/** A submission as the stream tells of it the moment it is durable. Its labels stay with its agent at first. */
export const judgedSubmissionSchema = z.object({
  analysisId: z.string(),
  agentId: z.string(),
  agentName: z.string(),
  mint: z.string(),
  symbol: z.string().nullable(),
  outcome: z.enum(OUTCOMES),
  deviationPct: percent('The largest deviation'),
  xpEarned: z.number(),
  createdAt: unixMs('When it was submitted'),
})
export type StreamedSubmission = z.infer<typeof judgedSubmissionSchema>
