// In: nothing. Out: the one error that the store throws when the world is at fault: disk, network, another process, or what
// was asked. Wrong code asserts instead. Never knows a status of HTTP: whoever answers turns the code into one.

export type StoreErrorCode =
  /** Nothing can be written or read just now; it is worth trying again. */
  | 'unavailable'
  /** The store is being closed. */
  | 'closing'
  /** What was asked for cannot be done as it was asked. */
  | 'invalid'
  | 'not_found'

export interface StoreErrorOptions {
  /** A commit was refused, and yet a start may find its rows: nobody can tell what became of them. */
  mayBeStored?: boolean
  /** Of `invalid`: the part of the request that cannot be done, by name. */
  field?: string
  /** When it is worth trying again, ms. */
  retryAfterMs?: number
  cause?: unknown
}

export class StoreError extends Error {
  readonly code: StoreErrorCode
  readonly mayBeStored: boolean
  readonly field: string | null
  readonly retryAfterMs: number | null

  constructor(code: StoreErrorCode, sentence: string, options: StoreErrorOptions = {}) {
    super(sentence, { cause: options.cause })
    this.name = 'StoreError'
    this.code = code
    this.mayBeStored = options.mayBeStored ?? false
    this.field = options.field ?? null
    this.retryAfterMs = options.retryAfterMs ?? null
  }
}

export const unavailable = (sentence: string, options: StoreErrorOptions = {}): StoreError =>
  new StoreError('unavailable', sentence, options)
