import type { Write } from '../schema/tables.ts'
import { SubmissionError } from './errors.ts'
import type { Evaluation } from './rows.ts'
import type { EvaluatedSubmission, Receipt } from './types.ts'

/** An evaluated submission that is to be written. What it reserves is in force already; `confirm` or `cancel` must follow. */
export interface Decision {
  readonly writes: readonly Write[]
  /** The result once the rows are durable. */
  readonly result: Receipt | SubmissionError
  /** The rows are durable. */
  confirm(): void
  /** The store refused the rows. Releases what this submission reserved, and nothing else. */
  cancel(): void
}

/** What everybody may know of a submission at once. */
export function evaluatedSubmission(evaluation: Evaluation, { result }: Decision): EvaluatedSubmission {
  const { analysisId, agentId, submission, outcome, deviation, submittedAtMs } = evaluation
  return {
    analysisId,
    agentId,
    mint: submission.mint,
    outcome,
    deviationPct: deviation.deviationPct,
    xpEarned: result instanceof SubmissionError ? 0 : result.xpEarned,
    createdAt: submittedAtMs,
  }
}
