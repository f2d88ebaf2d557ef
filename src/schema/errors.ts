// The registry of error codes. The README's table of errors is made of it, and a test compares the two.

export const ERRORS = {
  invalid_json: { status: 400, title: 'The body is not valid JSON' },
  validation_failed: { status: 400, title: 'The body does not match the schema' },
  invalid_mint: { status: 400, title: 'The mint is not a base58 address of 32 bytes' },
  invalid_parameter: { status: 400, title: 'A query parameter or header is not acceptable' },
  query_failed: { status: 400, title: 'The query cannot be run' },
  missing_key: { status: 401, title: 'An API key is required' },
  invalid_key: { status: 401, title: 'The API key is not known' },
  revoked_key: { status: 401, title: 'The API key was revoked' },
  agent_banned: { status: 403, title: 'The agent is suspended or banned' },
  key_not_allowed: { status: 403, title: 'The key does not allow this' },
  registration_closed: { status: 403, title: 'Registration is closed' },
  not_found: { status: 404, title: 'No such resource' },
  token_not_found: { status: 404, title: 'No DataPoint is known for this mint' },
  method_not_allowed: { status: 405, title: 'The method is not allowed here' },
  not_acceptable: { status: 406, title: 'None of the accepted formats is available' },
  body_timeout: { status: 408, title: 'The body did not arrive in time' },
  idempotency_in_flight: {
    status: 409,
    title: 'A request with this Idempotency-Key is still being answered',
  },
  cursor_expired: { status: 410, title: 'The cursor has expired' },
  file_gone: { status: 410, title: 'The file has left the lake' },
  payload_too_large: { status: 413, title: 'The body is too large' },
  unsupported_media_type: { status: 415, title: 'The content type is not supported' },
  range_not_satisfiable: { status: 416, title: 'The range lies beyond the end of the file' },
  snapshot_rejected: { status: 422, title: 'The snapshot deviates too far from the DataPoint' },
  snapshot_stale: { status: 422, title: 'The snapshot is too old' },
  snapshot_in_future: { status: 422, title: 'The snapshot lies in the future' },
  idempotency_mismatch: { status: 422, title: 'The Idempotency-Key was used with another body' },
  query_too_costly: { status: 422, title: 'The query takes more time or memory than it may' },
  upgrade_required: { status: 426, title: 'This address is a WebSocket' },
  mint_cooldown: { status: 429, title: 'The cooldown of this mint has not passed' },
  submit_rate_limited: { status: 429, title: 'Too many submissions' },
  read_rate_limited: { status: 429, title: 'Too many reads' },
  register_rate_limited: { status: 429, title: 'Too many registrations' },
  internal: { status: 500, title: 'Internal error' },
  datapoint_unavailable: { status: 503, title: 'The DataPoint holds nothing to compare with yet' },
  store_unavailable: { status: 503, title: 'The store cannot write' },
  overloaded: { status: 503, title: 'The server does or holds as much as it may' },
  warming_up: { status: 503, title: 'The server is warming up' },
  draining: { status: 503, title: 'The server is shutting down' },
} as const satisfies Record<string, { status: number; title: string }>

export type ErrorCode = keyof typeof ERRORS

/** One fault in a body that a program can repair. `pointer` is a JSON pointer (RFC 6901); enums have `allowed` and `suggestion`. */
export interface FieldError {
  pointer: string
  code: string
  message: string
  allowed?: readonly string[]
  suggestion?: string
}

/** Members of an error answer beside the fixed ones. */
export interface ErrorExtra {
  errors?: readonly FieldError[]
  [member: string]: unknown
}

/** An error that has a code and a status: the input, the network or a limit is at fault. Faults of the code assert instead. */
export class ServiceError extends Error {
  readonly code: ErrorCode
  readonly status: number
  readonly extra: ErrorExtra
  /** Further headers of the answer, for example Retry-After. */
  readonly headers: Readonly<Record<string, string>>

  constructor(
    code: ErrorCode,
    sentence: string,
    extra: ErrorExtra = {},
    headers: Record<string, string> = {},
  ) {
    super(sentence)
    this.name = 'ServiceError'
    this.code = code
    this.status = ERRORS[code].status
    this.extra = extra
    this.headers = this.status === 401 ? { 'WWW-Authenticate': 'Bearer', ...headers } : headers
  }
}
