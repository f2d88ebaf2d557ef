/** The message of anything that was thrown, without its stack. */
export const errorMessage = (error: unknown): string =>
  error instanceof Error ? error.message : String(error)

/** Why a `fetch` failed: Node says it in the cause of the error, if at all. */
export function fetchFailure(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined
  return cause instanceof Error
    ? cause.message || systemCode(cause) || errorMessage(error)
    : errorMessage(error)
}

/** The first line of the message. DuckDB appends lines that show the SQL. */
export function errorFirstLine(error: unknown): string {
  const [line = ''] = errorMessage(error).split('\n', 1)
  return line
}

/** The code of an operating-system error, such as `ENOENT`; '' when the error has none. */
export function systemCode(error: unknown): string {
  const hasCode = typeof error === 'object' && error !== null && 'code' in error
  return hasCode && typeof error.code === 'string' ? error.code : ''
}

/** For what may be gone already: a file or a folder. @throws any other error */
export function ignoreMissing(error: unknown): void {
  if (systemCode(error) !== 'ENOENT') throw error
}
