import type { z } from 'zod'
import type { problemSchema } from '../schema/api/problem.ts'
import { ERRORS, type ErrorCode, type FieldError } from '../schema/errors.ts'

/**
 * Codes of the client's own: no answer; none in time; an answer that is not Mintlake's; one that is too large; a code that this
 * version of the client does not know (`problem.code` has it).
 */
export type ClientErrorCode =
  | 'network_error'
  | 'timeout'
  | 'invalid_response'
  | 'response_too_large'
  | 'unknown_error'
export type MintlakeErrorCode = ErrorCode | ClientErrorCode

/** An error answer (RFC 9457): `code` is one that this version may not know. */
export interface Problem extends Partial<Omit<z.infer<typeof problemSchema>, 'ok' | 'code' | 'errors'>> {
  errors?: readonly FieldError[]
  error: string
  code: string
  status: number
}

interface ErrorDetails {
  status?: number
  problem?: Problem
  retryAfterMs?: number | null
  requestId?: string | null
  cause?: unknown
}

/** A call that failed. A call that its AbortSignal ended rejects with the signal's reason instead. */
export class MintlakeError extends Error {
  readonly code: MintlakeErrorCode
  /** HTTP status; null: there was no answer. */
  readonly status: number | null
  /** Faults of the body or the parameters, each with a JSON pointer and, where there is one, the nearest allowed value. */
  readonly errors: readonly FieldError[]
  /** When it is worth trying again; null: the server did not say. */
  readonly retryAfterMs: number | null
  /** The request's name in the server's log. */
  readonly requestId: string | null
  /** The whole error answer; null where there was none of this form. */
  readonly problem: Problem | null

  constructor(code: MintlakeErrorCode, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
    this.name = 'MintlakeError'
    this.code = code
    this.status = details.status ?? null
    this.errors = details.problem?.errors ?? []
    this.retryAfterMs = details.retryAfterMs ?? null
    this.requestId = details.requestId ?? null
    this.problem = details.problem ?? null
  }
}

const isErrorCode = (code: string): code is ErrorCode => Object.hasOwn(ERRORS, code)

const isProblem = (body: unknown): body is Problem =>
  typeof body === 'object' &&
  body !== null &&
  'code' in body &&
  typeof body.code === 'string' &&
  'error' in body &&
  typeof body.error === 'string'

/** `Retry-After` as milliseconds; null where it is missing or a date. */
function retryAfterHeader(headers: Headers): number | null {
  const seconds = headers.get('Retry-After') ?? ''
  return /^\d{1,6}$/.test(seconds) ? Number(seconds) * 1_000 : null
}

/** The error for an answer of a status other than 2xx. `body` is its parsed JSON, or undefined. */
export function errorOfAnswer(status: number, headers: Headers, body: unknown): MintlakeError {
  const requestId = headers.get('X-Request-Id')
  const headerMs = retryAfterHeader(headers)
  if (!isProblem(body)) {
    const details = { status, requestId, retryAfterMs: headerMs }
    return new MintlakeError(
      'invalid_response',
      `The address answered ${status}, not as Mintlake does`,
      details,
    )
  }
  const code = isErrorCode(body.code) ? body.code : 'unknown_error'
  const retryAfterMs = typeof body.retryAfterMs === 'number' ? body.retryAfterMs : headerMs
  return new MintlakeError(code, body.error, { status, problem: body, retryAfterMs, requestId })
}
