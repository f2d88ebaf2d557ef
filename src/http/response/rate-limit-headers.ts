import { type ErrorCode, type ErrorExtra, ServiceError } from '../../schema/errors.ts'
import type { Quota } from '../../submissions/types.ts'

const toSeconds = (ms: number): number => Math.ceil(ms / 1_000)

/**
 * `RateLimit-Policy` and `RateLimit` (draft-ietf-httpapi-ratelimit-headers), and the older `X-RateLimit-*`, whose Reset is the
 * Unix second at which one more becomes free.
 */
export const rateLimitHeaders = (policy: string, quota: Quota): Record<string, string> => ({
  'RateLimit-Policy': `"${policy}";q=${quota.limit};w=${toSeconds(quota.windowMs)}`,
  RateLimit: `"${policy}";r=${quota.remaining};t=${toSeconds(Math.min(quota.resetMs, quota.windowMs))}`,
  'X-RateLimit-Limit': `${quota.limit}`,
  'X-RateLimit-Remaining': `${quota.remaining}`,
  'X-RateLimit-Reset': `${toSeconds(quota.resetAtMs)}`,
})

/** Of a request that counted against the submit rate, or that repeated one; without a quota there is no such limit. */
export function submitHeaders(quota: Quota | null, isReplay: boolean): Record<string, string> {
  const headers = quota === null ? {} : rateLimitHeaders('submit', quota)
  if (isReplay) headers['Idempotency-Replayed'] = 'true'
  return headers
}

/** `Retry-After` in whole seconds, rounded up. */
export const retryAfter = (ms: number): Record<string, string> => ({ 'Retry-After': `${toSeconds(ms)}` })

/** An error of what cannot be had now, and can be later. */
export const tryAgain = (
  code: ErrorCode,
  sentence: string,
  retryAfterMs = 1_000,
  more: ErrorExtra = {},
): ServiceError => new ServiceError(code, sentence, { ...more, retryAfterMs }, retryAfter(retryAfterMs))

export const overloaded = (sentence: string, retryAfterMs?: number): ServiceError =>
  tryAgain('overloaded', sentence, retryAfterMs)
