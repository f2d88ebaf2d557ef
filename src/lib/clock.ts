// The two clocks of the server. They are passed in wherever time is needed, so that tests can set them.

export interface Clock {
  /** Wall time, Unix ms. May jump when the machine's clock is set. For what is shown, stored or compared with outside times. */
  now(): number
  /** Milliseconds since some moment of this process. Never jumps. For every limit, age and time-out. */
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

/** The monotonic time of an event that was stored with the wall time `storedMs`. A stored time in the future counts as now. */
export const toMonotonicMs = (storedMs: number, now: Instant): number =>
  now.monotonicMs - Math.max(0, now.wallMs - storedMs)

/**
 * The monotonic time at which a stored span of wall time ends. Never further ahead than the span is long, also when the wall
 * clock was set back since it was stored.
 */
export const toMonotonicDeadlineMs = (fromMs: number, untilMs: number, now: Instant): number =>
  toMonotonicMs(fromMs, now) + (untilMs - fromMs)
