// Messages between the server and the process of a query.
import type { JobFailure, JobTask } from '../lake-jobs.ts'
import type { QueryAnswer, QueryFormat } from '../types.ts'

/** A query, as its process receives it. */
export interface QueryTask extends JobTask {
  sql: string
  format: QueryFormat
  rowsMax: number
}

/** An answer on its way: the text has lost its class. */
export interface SentAnswer extends Omit<QueryAnswer, 'text'> {
  text: Uint8Array
}

/** What the process sends, once. */
export type FromQuery = { answer: SentAnswer } | { failure: JobFailure }
