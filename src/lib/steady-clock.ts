// In: a clock whose wall time may be set ahead or back at any moment. Out: one whose wall time goes on as time passes, and
// follows a jump of the other only once it has lasted. For whoever never takes a time back: a market that was told of
// next month for three seconds would find every trade late until it is there. Never hides a clock that stays set.
import type { Clock } from './clock.ts'

/** A wall clock that is corrected by less is followed at once. */
export const CLOCK_JUMP_MS_MIN = 10_000
/** A jump that has lasted so long is where the clock stands now. */
export const CLOCK_JUMP_LASTS_MS = 10_000

/** @param onJump told once of each jump, in milliseconds, below zero where it goes back; and once it is followed. */
export function steadyClock(clock: Clock, onJump: (jumpMs: number, isFollowed: boolean) => void): Clock {
  let wallMs = clock.now()
  let atMs = clock.monotonicMs()
  /** When, on the monotonic clock, the jump was first seen. */
  let jumpedAtMs: number | null = null

  function follow(nowMs: number, monotonicMs: number): number {
    wallMs = nowMs
    atMs = monotonicMs
    jumpedAtMs = null
    return nowMs
  }

  function now(): number {
    const nowMs = clock.now()
    const monotonicMs = clock.monotonicMs()
    const expectedMs = Math.round(wallMs + (monotonicMs - atMs))
    const jumpMs = nowMs - expectedMs
    if (Math.abs(jumpMs) < CLOCK_JUMP_MS_MIN) return follow(nowMs, monotonicMs)
    if (jumpedAtMs === null) onJump(jumpMs, false)
    jumpedAtMs ??= monotonicMs
    if (monotonicMs - jumpedAtMs < CLOCK_JUMP_LASTS_MS) return expectedMs
    onJump(jumpMs, true)
    return follow(nowMs, monotonicMs)
  }

  return { now, monotonicMs: () => clock.monotonicMs() }
}
