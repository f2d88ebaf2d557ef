// The one place where errors of the store and of submissions get their status, headers and members of the body.
import { ERRORS, type ErrorCode, type ErrorExtra, ServiceError } from '../../schema/errors.ts'
import { StoreError, type StoreErrorCode } from '../../store/errors.ts'
import { SubmissionError } from '../../submissions/errors.ts'
import { retryAfter, submitHeaders } from './rate-limit-headers.ts'

const STORE_CODES: Readonly<Record<StoreErrorCode, ErrorCode>> = {
  unavailable: 'store_unavailable',
  closing: 'draining',
  overloaded: 'overloaded',
  invalid: 'invalid_parameter',
  query_failed: 'query_failed',
  query_too_costly: 'query_too_costly',
  not_found: 'not_found',
  gone: 'file_gone',
}
/** Used where the store does not say when to try again. */
const RETRY_AFTER_MS = 1_000

/** The error to answer with; null: the error is unexpected, and answered as `internal`. */
export function toServiceError(error: unknown): ServiceError | null {
  if (error instanceof ServiceError) return error
  if (error instanceof SubmissionError) return fromSubmission(error)
  return error instanceof StoreError ? fromStore(error) : null
}

function fromSubmission(error: SubmissionError): ServiceError {
  const { code, message, details, retryAfterMs } = error
  const headers = submitHeaders(error.quota, error.isReplay)
  if (retryAfterMs !== null) Object.assign(headers, retryAfter(retryAfterMs))
  return new ServiceError(code, message, { ...details }, headers)
}

function fromStore(error: StoreError): ServiceError {
  const code = STORE_CODES[error.code]
  const extra: ErrorExtra = {}
  if (error.mayBeStored) extra.mayBeStored = true
  if (error.field !== null)
    extra.errors = [
      { pointer: `/${error.field}`, code, message: error.message.slice(error.field.length + 1) },
    ]
  if (ERRORS[code].status !== 503) return new ServiceError(code, error.message, extra)
  const retryAfterMs = error.retryAfterMs ?? RETRY_AFTER_MS
  if (error.retryAfterMs !== null) extra.retryAfterMs = retryAfterMs
  return new ServiceError(code, error.message, extra, retryAfter(retryAfterMs))
}
