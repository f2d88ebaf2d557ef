// Messages between the server and the process of a query.
import type { StoreErrorCode } from '../errors.ts'
import type { QueryAnswer, QueryFormat } from '../types.ts'

/** A query, as its process receives it. */
export interface QueryTask {
  dataDir: string
  /** A folder that only this query uses. The server removes it. */
  folder: string
  sql: string
  format: QueryFormat
  rowsMax: number
  /** Disk space that spilled data leaves to the store, MB. */
  diskReserveMb: number
}

/** An answer on its way: the text has lost its class. */
export interface SentAnswer extends Omit<QueryAnswer, 'text'> {
  text: Uint8Array
}

export interface QueryFailure {
  code: StoreErrorCode
  message: string
  /** For the log. */
  detail?: string
}

/** What the process sends, once. */
export type FromQuery = { answer: SentAnswer } | { failure: QueryFailure }
