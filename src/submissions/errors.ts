import type { z } from 'zod'
import type { problemSchema } from '../schema/api/problem.ts'
import type { ErrorCode, FieldError } from '../schema/errors.ts'
import type { Quota } from './types.ts'

/** What an error says beside its code and its sentence: members of the problem that clients read. */
export interface ErrorDetails extends Partial<Omit<z.infer<typeof problemSchema>, 'errors'>> {
  /** The faults of the body, one for each field. */
  errors?: readonly FieldError[]
}

/** Further facts of an error, of which the HTTP layer makes headers. */
export interface ErrorContext {
  /** When it is worth trying again, ms; null: at no known time. */
  retryAfterMs?: number | null
  /** The agent's submit rate, where the request counted against it. */
  quota?: Quota | null
  /** The error of an earlier request with the same Idempotency-Key. */
  isReplay?: boolean
}

/** A request that is refused: the input, the agent or a limit is at fault. The HTTP layer makes an answer of it. */
export class SubmissionError extends Error {
  readonly code: ErrorCode
  readonly details: ErrorDetails
  readonly retryAfterMs: number | null
  readonly isReplay: boolean
  /** Set when the error leaves `submit`, since only then it is known what is left of the rate. */
  quota: Quota | null

  constructor(
    code: ErrorCode,
    sentence: string,
    details: ErrorDetails = {},
    { retryAfterMs = null, quota = null, isReplay = false }: ErrorContext = {},
  ) {
    super(sentence)
    this.name = 'SubmissionError'
    this.code = code
    this.details = details
    this.retryAfterMs = retryAfterMs
    this.quota = quota
    this.isReplay = isReplay
  }
}
