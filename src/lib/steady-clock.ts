import type { Clock } from './clock.ts'

/** A smaller correction of the wall clock is followed at once. */
export const CLOCK_JUMP_MS_MIN = 10_000
/** A jump that has lasted this long is followed. */
export const CLOCK_JUMP_LASTS_MS = 10_000

/**
 * Follows a wall clock, but ignores jumps of 10 s or more until they have lasted 10 s; meanwhile it counts on by the monotonic
 * clock. The market needs this because its time never goes back: with a wall clock that was wrong for a few seconds, every
 * later trade would be too old.
 */
export class SteadyClock implements Clock {
  readonly #clock: Clock
  readonly #onJump: (jumpMs: number, isFollowed: boolean) => void
  /** The latest wall time that was followed, and when, on the monotonic clock. */
  #wallMs: number
  #followedAtMs: number
  /** When the current jump was first seen, on the monotonic clock; null when there is none. */
  #jumpSeenAtMs: number | null = null

  /** @param onJump called once when a jump is seen and once when it is followed; `jumpMs` is negative for a jump back. */
  constructor(clock: Clock, onJump: (jumpMs: number, isFollowed: boolean) => void) {
    this.#clock = clock
    this.#onJump = onJump
    this.#wallMs = clock.now()
    this.#followedAtMs = clock.monotonicMs()
  }

  now(): number {
    const nowMs = this.#clock.now()
    const monotonicMs = this.#clock.monotonicMs()
    const expectedMs = Math.round(this.#wallMs + (monotonicMs - this.#followedAtMs))
    const jumpMs = nowMs - expectedMs
    if (Math.abs(jumpMs) < CLOCK_JUMP_MS_MIN) return this.#follow(nowMs, monotonicMs)
    if (this.#jumpSeenAtMs === null) this.#onJump(jumpMs, false)
    this.#jumpSeenAtMs ??= monotonicMs
    if (monotonicMs - this.#jumpSeenAtMs < CLOCK_JUMP_LASTS_MS) return expectedMs
    this.#onJump(jumpMs, true)
    return this.#follow(nowMs, monotonicMs)
  }

  monotonicMs(): number {
    return this.#clock.monotonicMs()
  }

  #follow(wallMs: number, monotonicMs: number): number {
    this.#wallMs = wallMs
    this.#followedAtMs = monotonicMs
    this.#jumpSeenAtMs = null
    return wallMs
  }
}
