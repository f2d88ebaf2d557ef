import { systemCode } from '../../lib/error-text.ts'

export type LogErrorCode =
  /** One commit is larger than a record may be. */
  | 'record_too_large'
  /** The queue for the disk is full. */
  | 'too_many_waiting'
  /** The disk is full or read-only, or the store does not permit writing now. */
  | 'no_space'
  /** A write or a sync failed, or the log still recovers from such a failure. */
  | 'disk_failed'
  /** A disk operation takes longer than the time limit. */
  | 'disk_hanging'
  | 'closed'
  /** The bytes at a position are not a valid commit. */
  | 'damaged_record'
  /** The segment of a position does not exist any more. */
  | 'segment_removed'

export class LogError extends Error {
  readonly code: LogErrorCode
  /** False: the rows are not stored, and a restart will not find them. True: nobody can tell. */
  readonly mayBeStored: boolean

  constructor(code: LogErrorCode, message: string, options: { mayBeStored?: boolean; cause?: unknown } = {}) {
    super(message, { cause: options.cause })
    this.name = 'LogError'
    this.code = code
    this.mayBeStored = options.mayBeStored ?? false
  }
}

/** The error code for a disk operation that failed. */
export const toLogErrorCode = (error: unknown): LogErrorCode =>
  ['ENOSPC', 'EDQUOT', 'EROFS'].includes(systemCode(error)) ? 'no_space' : 'disk_failed'
