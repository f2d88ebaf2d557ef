import type { Write } from '../schema/tables.ts'
import type { SubmissionError } from './errors.ts'
import type { Receipt } from './types.ts'

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
