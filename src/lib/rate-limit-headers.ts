/**
 * `RateLimit-Policy` and `RateLimit` (draft-ietf-httpapi-ratelimit-headers), and the older `X-RateLimit-*`, whose Reset is the
 * Unix second at which one more is free.
 * @param policy name of the limit.
 * @param resetMs until one more is free.
 */
export function rateLimitHeaders(
  policy: string,
  windowMs: number,
  limit: number,
  remaining: number,
  resetMs: number,
  wallMs: number,
): Record<string, string> {
  return {
    'RateLimit-Policy': `"${policy}";q=${limit};w=${Math.ceil(windowMs / 1_000)}`,
    RateLimit: `"${policy}";r=${remaining};t=${Math.ceil(resetMs / 1_000)}`,
    'X-RateLimit-Limit': `${limit}`,
    'X-RateLimit-Remaining': `${remaining}`,
    'X-RateLimit-Reset': `${Math.ceil((wallMs + resetMs) / 1_000)}`,
  }
}
