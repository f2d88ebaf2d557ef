// Clocks that the test sets.
import type { Clock } from '../../src/lib/clock.ts'

/** Both clocks show what `nowMs` answers: time passes, and nobody sets the wall's. */
export const clockOf = (nowMs: () => number): Clock => ({ now: nowMs, monotonicMs: nowMs })

/** A clock whose wall may be set, as an operator or a time server does. */
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

  /** Time passes on both. */
  pass(ms: number): void {
    this.wallMs += ms
    this.elapsedMs += ms
  }

  /** The wall's is set back or ahead, and no time passes. */
  step(ms: number): void {
    this.wallMs += ms
  }
}
