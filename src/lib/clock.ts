// In: nothing. Out: the time. Passed in wherever time is needed, so that tests own it.

export interface Clock {
  /** Unix milliseconds. */
  now(): number
}

export const systemClock: Clock = { now: () => Date.now() }
