// The error that the store throws when the disk, the network, another process or the request is at fault. Programming errors
// fail an assertion instead. The HTTP layer turns the codes into statuses.

export type StoreErrorCode =
  /** Cannot be read or written now; a retry may succeed. */
  | 'unavailable'
  /** The store is being closed. */
  | 'closing'
  /** Too much is asked for at once; a retry may succeed. */
  | 'overloaded'
  /** The request cannot be fulfilled as it is. */
  | 'invalid'
  /** The SQL is wrong, is refused, or fails on the data. */
  | 'query_failed'
  /** The query takes more time or memory than it may. */
  | 'query_too_costly'
  | 'not_found'
  /** It existed, and was deleted. */
  | 'gone'

export interface StoreErrorOptions {
  /** The commit failed, yet its rows may be on the disk and come back at the next start. */
  mayBeStored?: boolean
  /** For `invalid`: name of the field of the request that is wrong. */
  field?: string
  /** When a retry makes sense. */
  retryAfterMs?: number
  cause?: unknown
}

export class StoreError extends Error {
  readonly code: StoreErrorCode
  readonly mayBeStored: boolean
  readonly field: string | null
  readonly retryAfterMs: number | null

  constructor(code: StoreErrorCode, message: string, options: StoreErrorOptions = {}) {
    super(message, { cause: options.cause })
    this.name = 'StoreError'
    this.code = code
    this.mayBeStored = options.mayBeStored ?? false
    this.field = options.field ?? null
    this.retryAfterMs = options.retryAfterMs ?? null
  }
}

/** How a message begins to say what to do about a damaged data folder. */
export const howToRepair = (dataDir: string): string =>
  `Stop the server, and \`mintlake repair --data-dir ${dataDir}\``

export const unavailable = (message: string, options: StoreErrorOptions = {}): StoreError =>
  new StoreError('unavailable', message, options)

export const invalid = (message: string, options: StoreErrorOptions = {}): StoreError =>
  new StoreError('invalid', message, options)

export const notFound = (message: string): StoreError => new StoreError('not_found', message)
