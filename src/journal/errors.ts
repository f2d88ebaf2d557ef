/** `unknown_format`: a newer version wrote it; `segment_removed`: it was deleted during the read, start again behind it. */
export type JournalErrorCode = 'unknown_format' | 'segment_removed'

export class JournalError extends Error {
  readonly code: JournalErrorCode

  constructor(code: JournalErrorCode, message: string) {
    super(message)
    this.code = code
  }
}
