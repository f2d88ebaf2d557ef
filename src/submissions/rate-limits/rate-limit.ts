// In: who, and when, on the monotonic clock. Out: whether one more is allowed, exactly, over the half-open window
// (now - window, now], and the figures for the headers. Never awaits and never reads a clock.
import type { Instant } from '../../lib/clock.ts'
import { rateLimitHeaders } from '../../lib/rate-limit-headers.ts'
import { SlidingLog } from './sliding-log.ts'

export interface RateState {
  allowed: boolean
  limit: number
  remaining: number
  /** Until one more becomes free, whole ms: 0 when nothing is used. */
  resetMs: number
}

export interface RateLimiter {
  /** False when the limit is switched off. */
  readonly enabled: boolean
  /** Figures as of `nowMs`, taking nothing. */
  state(key: string, nowMs: number): RateState
  /** Takes one; the caller has asked `state` first, in the same turn. */
  take(key: string, nowMs: number): void
  /** Gives back one taken at `atMs`. */
  release(key: string, atMs: number): void
  /** Keys held, for tests and metrics. */
  readonly size: number
}

/** A sliding window log. `max` 0 switches it off. */
export function createRateLimiter(max: number, windowMs: number): RateLimiter {
  const taken = new SlidingLog(windowMs, max)
  return {
    enabled: max > 0,
    state(key, nowMs) {
      const times = taken.timesOf(key, nowMs)
      const remaining = Math.max(0, max - times.length)
      const resetMs = times.length === 0 ? 0 : Math.ceil(Math.min(...times) + windowMs - nowMs)
      return { allowed: max === 0 || remaining > 0, limit: max, remaining, resetMs }
    },
    take(key, nowMs) {
      if (max > 0) taken.add(key, nowMs)
    },
    release: (key, atMs) => taken.remove(key, atMs),
    get size() {
      return taken.size
    },
  }
}

/** The headers that describe the limit; none if it is off. */
export function rateHeaders(
  policy: string,
  state: RateState,
  windowMs: number,
  { wallMs }: Instant,
): Record<string, string> {
  if (state.limit === 0) return {}
  const { limit, remaining, resetMs } = state
  return rateLimitHeaders(policy, windowMs, limit, remaining, resetMs, wallMs)
}
