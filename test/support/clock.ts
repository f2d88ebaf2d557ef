// Clocks that the test sets.
import type { Clock } from '../../src/lib/clock.ts'

/** A clock whose wall time and monotonic time are both `nowMs()`. */
export const clockOf = (nowMs: () => number): Clock => ({ now: nowMs, monotonicMs: nowMs })

/** A clock whose wall time can be set, as an operator or a time server does. */
export class SteppedClock implements Clock {
  wallMs: number
  elapsedMs = 0

  constructor(wallMs: number) {
    this.wallMs = wallMs
  }

  now(): number {
    return this.wallMs
  }

  monotonicMs(): number {
    return this.elapsedMs
  }

  /** Advances both times. */
  pass(ms: number): void {
    this.wallMs += ms
    this.elapsedMs += ms
  }

  /** Sets the wall time back or ahead without any time passing. */
  step(ms: number): void {
    this.wallMs += ms
  }
}
