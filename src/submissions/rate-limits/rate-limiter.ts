import type { Instant } from '../../lib/clock.ts'
import type { Quota } from '../types.ts'
import { SlidingWindow } from './sliding-window.ts'

/**
 * A rate limit by key over a sliding window, exact. `max` 0 switches it off. One that was taken counts for `jitterMs` less than the
 * window, so that who keeps to the limit does not exceed it because a message was on its way for longer than a later one.
 */
export class RateLimiter {
  readonly #max: number
  readonly #windowMs: number
  readonly #taken: SlidingWindow

  constructor(max: number, windowMs: number, jitterMs = 0) {
    this.#max = max
    this.#windowMs = windowMs
    this.#taken = new SlidingWindow(windowMs - jitterMs, max)
  }

  /** False when the limit is switched off. */
  get isEnabled(): boolean {
    return this.#max > 0
  }

  /** What is left for a key now. Null: the limit is switched off. Takes nothing. */
  quota(key: string, { wallMs, monotonicMs }: Instant): Quota | null {
    if (!this.isEnabled) return null
    const earliestMs = this.#taken.earliestMs(key, monotonicMs)
    const resetMs = earliestMs === null ? 0 : Math.ceil(earliestMs + this.#taken.windowMs - monotonicMs)
    const remaining = Math.max(0, this.#max - this.#taken.count(key, monotonicMs))
    return { limit: this.#max, remaining, windowMs: this.#windowMs, resetMs, resetAtMs: wallMs + resetMs }
  }

  /** Takes one. The caller has checked `quota` in the same turn. */
  take(key: string, nowMs: number): void {
    if (this.isEnabled) this.#taken.add(key, nowMs)
  }

  /** Returns one that was taken at `atMs`. */
  release(key: string, atMs: number): void {
    this.#taken.remove(key, atMs)
  }
}
