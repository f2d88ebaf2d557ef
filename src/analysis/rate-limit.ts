// In: who, and when. Out: whether one more is allowed, exactly, over the half-open window (now - window, now], and the
// figures for the headers. Never awaits and never reads a clock. Holds at most `max` stamps for each key seen within
// the window; older keys are forgotten as time passes.

export interface RateState {
  allowed: boolean
  limit: number
  remaining: number
  /** Until one more becomes free, ms: 0 when nothing is used. */
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
  /** Stamps in order of taking; keys in order of their latest taking, so that the idle ones stand first. */
  const stampsByKey = new Map<string, number[]>()

  /** A stamp more than a window ahead means that the clock was set back: it no longer counts. */
  const inWindow = (stamp: number, nowMs: number) => stamp > nowMs - windowMs && stamp < nowMs + windowMs

  const live = (key: string, nowMs: number): number[] =>
    (stampsByKey.get(key) ?? []).filter((stamp) => inWindow(stamp, nowMs))

  function forgetIdle(nowMs: number): void {
    for (const [key, stamps] of stampsByKey) {
      if (stamps.some((stamp) => inWindow(stamp, nowMs))) return
      stampsByKey.delete(key)
    }
  }

  return {
    enabled: max > 0,
    state(key, nowMs) {
      const stamps = live(key, nowMs)
      const remaining = Math.max(0, max - stamps.length)
      const resetMs = stamps.length === 0 ? 0 : Math.min(...stamps) + windowMs - nowMs
      return { allowed: max === 0 || remaining > 0, limit: max, remaining, resetMs: Math.max(0, resetMs) }
    },
    take(key, nowMs) {
      if (max === 0) return
      const stamps = live(key, nowMs)
      stamps.push(nowMs)
      stampsByKey.delete(key)
      stampsByKey.set(key, stamps)
      forgetIdle(nowMs)
    },
    release(key, atMs) {
      const stamps = stampsByKey.get(key)
      const index = stamps?.lastIndexOf(atMs) ?? -1
      if (stamps && index >= 0) stamps.splice(index, 1)
      if (stamps?.length === 0) stampsByKey.delete(key)
    },
    get size() {
      return stampsByKey.size
    },
  }
}

const toSeconds = (ms: number) => Math.ceil(ms / 1_000)

/**
 * `RateLimit-Policy` and `RateLimit` (draft-ietf-httpapi-ratelimit-headers), and the older `X-RateLimit-*`, whose
 * Reset is the Unix second at which one more is free. Empty when the limit is off.
 */
export function rateHeaders(
  policy: string,
  state: RateState,
  windowMs: number,
  nowMs: number,
): Record<string, string> {
  if (state.limit === 0) return {}
  return {
    'RateLimit-Policy': `"${policy}";q=${state.limit};w=${toSeconds(windowMs)}`,
    RateLimit: `"${policy}";r=${state.remaining};t=${toSeconds(state.resetMs)}`,
    'X-RateLimit-Limit': String(state.limit),
    'X-RateLimit-Remaining': String(state.remaining),
    'X-RateLimit-Reset': String(toSeconds(nowMs + state.resetMs)),
  }
}
