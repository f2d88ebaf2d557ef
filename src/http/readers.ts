// In: who reads, and when. Out: whether one more read is allowed, over a rolling window, and the headers that say so.
// A window opens with the first read and holds at most the limit. Windows run on the monotonic clock; only what a header
// says of their end is wall time.
// At the maximum of readers those idle for a window are forgotten, then the longest known.
import type { Caller } from '../analysis/types.ts'
import type { Instant } from '../lib/clock.ts'
import { ServiceError } from '../schema/errors.ts'

interface Reader {
  /** Start of the current window on the monotonic clock; the first read opens it. */
  windowStartMs: number
  used: number
}

export interface LimitOptions {
  /** Name in the RateLimit headers. */
  policy: string
  code: 'read_rate_limited' | 'register_rate_limited'
  windowMs: number
  readersMax: number
}

/** The headers where nothing is limited. */
export const NO_LIMITS: Record<string, string> = {}

export class ReadLimits {
  #readers = new Map<string, Reader>()
  #options: LimitOptions

  constructor(options: LimitOptions) {
    this.#options = options
  }

  /**
   * Counts one read of `who` and answers the headers of its answer; throws 429 when there is none left.
   * `limit` 0 switches the limit off.
   */
  count(who: string, limit: number, now: Instant): Record<string, string> {
    if (limit === 0) return NO_LIMITS
    const { windowMs } = this.#options
    const nowMs = now.monotonicMs
    let reader = this.#readers.get(who)
    if (reader === undefined || nowMs - reader.windowStartMs >= windowMs) {
      if (reader === undefined && this.#readers.size >= this.#options.readersMax) this.#forget(nowMs)
      reader = { windowStartMs: nowMs, used: 0 }
      this.#readers.delete(who)
      this.#readers.set(who, reader)
    }
    const resetMs = Math.ceil(reader.windowStartMs + windowMs - nowMs)
    const allowed = reader.used < limit
    if (allowed) reader.used++
    const headers = this.#headers(limit, limit - reader.used, resetMs, now.wallMs)
    if (allowed) return headers
    const seconds = Math.ceil(resetMs / 1_000)
    throw new ServiceError(
      this.#options.code,
      `The limit of ${limit} in ${windowMs / 1_000} seconds is used up; try again in ${seconds} seconds.`,
      { limit, retryAfterMs: resetMs },
      { ...headers, 'Retry-After': `${seconds}` },
    )
  }

  /** Windows open in order, so the first ones are the oldest. */
  #forget(nowMs: number): void {
    for (const [who, reader] of this.#readers) {
      const idle = nowMs - reader.windowStartMs >= this.#options.windowMs
      if (!idle && this.#readers.size < this.#options.readersMax) return
      this.#readers.delete(who)
    }
  }

  #headers(limit: number, remaining: number, resetMs: number, wallMs: number): Record<string, string> {
    const { policy, windowMs } = this.#options
    return {
      'RateLimit-Policy': `"${policy}";q=${limit};w=${windowMs / 1_000}`,
      RateLimit: `"${policy}";r=${remaining};t=${Math.ceil(resetMs / 1_000)}`,
      'X-RateLimit-Limit': `${limit}`,
      'X-RateLimit-Remaining': `${remaining}`,
      'X-RateLimit-Reset': `${Math.ceil((wallMs + resetMs) / 1_000)}`,
    }
  }
}

/** Reads are counted by key where one is sent, else by address. */
export const readerOf = (caller: Caller | null, ip: () => string): string =>
  caller === null ? `ip ${ip()}` : `key ${caller.keyHash}`
