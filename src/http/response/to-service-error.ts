// In: whatever a handler threw. Out: the error as clients are told of it, or that it is a fault of the server's own. The one
// place that turns the store's errors into statuses and headers.
import { type ErrorCode, type ErrorExtra, ServiceError } from '../../schema/errors.ts'
import { StoreError, type StoreErrorCode } from '../../store/errors.ts'

const CODES: Readonly<Record<StoreErrorCode, ErrorCode>> = {
  unavailable: 'store_unavailable',
  closing: 'draining',
  invalid: 'invalid_parameter',
  not_found: 'not_found',
}
/** What a client is told to wait where the store does not say. */
const RETRY_AFTER_MS = 1_000

/** The error to answer with; null: nobody expected it. */
export function toServiceError(error: unknown): ServiceError | null {
  if (error instanceof ServiceError) return error
  return error instanceof StoreError ? fromStore(error) : null
}

function fromStore(error: StoreError): ServiceError {
  const code = CODES[error.code]
  const extra: ErrorExtra = {}
  if (error.mayBeStored) extra.mayBeStored = true
  if (error.field !== null)
    extra.errors = [
      { pointer: `/${error.field}`, code, message: error.message.slice(error.field.length + 1) },
    ]
  if (error.code !== 'unavailable' && error.code !== 'closing')
    return new ServiceError(code, error.message, extra)
  const retryAfterMs = error.retryAfterMs ?? RETRY_AFTER_MS
  if (error.retryAfterMs !== null) extra.retryAfterMs = retryAfterMs
  return new ServiceError(code, error.message, extra, { 'Retry-After': `${Math.ceil(retryAfterMs / 1_000)}` })
}
