// In: nothing. Out: the time, on two clocks: the wall's, which may be set back or ahead at any moment, and a monotonic one,
// which only runs. Passed in wherever time is needed, so that tests own it.

export interface Clock {
  /** Wall time, Unix milliseconds: what is shown, stored, or compared with what others say. */
  now(): number
  /** Milliseconds since some moment of this process; never goes back, never jumps: every limit, age and time-out. */
  monotonicMs(): number
}

export const systemClock: Clock = { now: () => Date.now(), monotonicMs: () => performance.now() }

/** One moment on both clocks. */
export interface Instant {
  wallMs: number
  monotonicMs: number
}

export const readClock = (clock: Clock): Instant => ({
  wallMs: clock.now(),
  monotonicMs: clock.monotonicMs(),
})

/** When something happened, on the monotonic clock, that bears the wall time `storedMs`; never later than `now`. */
export const monotonicOf = (storedMs: number, now: Instant): number =>
  now.monotonicMs - Math.max(0, now.wallMs - storedMs)

/** When a span that is stored by its two ends is over, on the monotonic clock: never further ahead than it is long. */
export const deadlineOf = (fromMs: number, untilMs: number, now: Instant): number =>
  monotonicOf(fromMs, now) + (untilMs - fromMs)
