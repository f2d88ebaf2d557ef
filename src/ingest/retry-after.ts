/**
 * The wait in ms that an answer asks for with `Retry-After`, in seconds or as a date (RFC 9110, section 10.2.3); null where it
 * asks for none. A date is compared with that of the answer, so that the clocks need not agree.
 */
export function readRetryAfterMs(
  retryAfter: string | null | undefined,
  date: string | null | undefined,
): number | null {
  const text = retryAfter?.trim() ?? ''
  if (text === '') return null
  const seconds = Number(text)
  const waitMs = Number.isNaN(seconds) ? Date.parse(text) - Date.parse(date ?? '') : 1_000 * seconds
  return waitMs > 0 ? waitMs : null
}
