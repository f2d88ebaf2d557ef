// In: why the log refuses. Out: one typed error, which says whether the rows may be stored all the same. Knows no HTTP.
import { systemCode } from '../../lib/error-text.ts'

export type LogErrorCode =
  /** One commit is larger than a record may be. */
  | 'record_too_large'
  /** Too many bytes or commits wait for the disk. */
  | 'too_many_waiting'
  /** The disk is full, or the store said that nothing may be written now. */
  | 'no_space'
  /** A write or a sync failed, or what an earlier failure left in doubt is not settled yet. */
  | 'disk_failed'
  /** An operation of the disk takes longer than the time limit. */
  | 'disk_hanging'
  | 'closed'
  /** A segment was written by a newer version of this program. */
  | 'unknown_format'
  /** The bytes at a position are not the record that was written there. */
  | 'damaged_record'
  /** The segment of a position is not there any more. */
  | 'segment_removed'

export class LogError extends Error {
  readonly code: LogErrorCode
  /** False: the rows are not stored, and no restart brings them back. True: nobody can tell yet. */
  readonly mayBeStored: boolean

  constructor(code: LogErrorCode, message: string, options: { mayBeStored?: boolean; cause?: unknown } = {}) {
    super(message, { cause: options.cause })
    this.name = 'LogError'
    this.code = code
    this.mayBeStored = options.mayBeStored ?? false
  }
}

/** What a failed operation of the disk is called. */
export const codeOfFailure = (error: unknown): LogErrorCode =>
  ['ENOSPC', 'EDQUOT', 'EROFS'].includes(systemCode(error)) ? 'no_space' : 'disk_failed'
