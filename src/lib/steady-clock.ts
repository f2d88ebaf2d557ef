// The machine's clock, judged before it is believed: while the server runs by the monotonic clock, at a start by what earlier runs
// recorded and by how long the machine is up.
import type { Clock, Instant } from './clock.ts'
import { HOUR_MS } from './time.ts'

/** A smaller correction of the machine's clock is followed at once. */
export const CLOCK_JUMP_MS_MIN = 10_000
/** A jump is followed once it has lasted as long as it is far, and at most this long where it is one ahead. One further back than this
 *  is not followed. */
const CLOCK_JUMP_LASTS_MS_MAX = HOUR_MS

/** What an earlier run knew of the time. */
export interface KnownTime {
  /** The time when it was saved: the clock cannot have been earlier since. */
  atMs: number
  /** Of the boot of then, and when it was, by the clock that was believed. */
  boot: { id: string; atMs: number } | null
}

/** @param jumpMs negative for a jump back. @param isFollowed whether the clock is believed from now on */
type OnJump = (jumpMs: number, isFollowed: boolean) => void

const timeAt = ({ wallMs, monotonicMs }: Instant, nowMs: number): number => wallMs + (nowMs - monotonicMs)

const lastsMs = (jumpMs: number): number => {
  if (jumpMs > 0) return Math.min(jumpMs, CLOCK_JUMP_LASTS_MS_MAX)
  return -jumpMs <= CLOCK_JUMP_LASTS_MS_MAX ? -jumpMs : Number.POSITIVE_INFINITY
}

/**
 * Follows the machine's clock, but not a jump of 10 s or more until that has lasted as long as it is far: meanwhile it counts on by
 * the monotonic clock. What was stamped by a clock that was wrong for a moment would be wrong for good: market time never goes back.
 */
export class SteadyClock implements Clock {
  /** When it leapt, by the time that was believed until then: a jump ahead was followed. Of the last leap; 0: there was none. */
  leaptFromMs = 0
  readonly #clock: Clock
  readonly #onJump: OnJump
  /** The latest time that was believed. */
  #believed: Instant
  /** The latest of all that were: a clock that comes back to it is right again. */
  #latest: Instant
  /** The jump that is not believed, and when it was first seen on the monotonic clock; null: there is none. */
  #jump: { ms: number; sinceMs: number } | null = null
  /** The clock has been behind what was recorded since the start, and how long nobody ran is not known. */
  #isBehindSinceStart = false
  /** How long the machine has slept so far; NaN: not known. */
  #sleptMs: number

  constructor(clock: Clock, onJump: OnJump) {
    this.#clock = clock
    this.#onJump = onJump
    this.#believed = { wallMs: clock.now(), monotonicMs: clock.monotonicMs() }
    this.#latest = this.#believed
    this.#sleptMs = this.#readSleptMs()
  }

  now(): number {
    const wallMs = this.#clock.now()
    const monotonicMs = this.#clock.monotonicMs()
    const expectedMs = Math.round(timeAt(this.#believed, monotonicMs))
    const jumpMs = wallMs - expectedMs
    if (Math.abs(jumpMs) < CLOCK_JUMP_MS_MIN) return this.#follow(wallMs, monotonicMs)
    if (this.#jump === null || Math.abs(jumpMs - this.#jump.ms) >= CLOCK_JUMP_MS_MIN) {
      this.#jump = { ms: jumpMs, sinceMs: monotonicMs }
      if (this.#hasSlept(jumpMs)) return this.#follow(wallMs, monotonicMs)
      this.#onJump(jumpMs, false)
    }
    const isProven = monotonicMs - this.#jump.sinceMs >= lastsMs(jumpMs)
    if (!isProven && !this.#isBack(wallMs, monotonicMs)) return expectedMs
    this.#onJump(jumpMs, true)
    return this.#follow(wallMs, monotonicMs)
  }

  monotonicMs(): number {
    return this.#clock.monotonicMs()
  }

  machineMs(): number {
    return this.#clock.now()
  }

  /** How far the machine's clock is ahead of this one, ms; negative: behind; 0: it is believed. */
  get jumpMs(): number {
    this.now()
    return this.#jump?.ms ?? 0
  }

  /** What the next run is to know. */
  known(): KnownTime {
    const atMs = this.now()
    const boot = this.#clock.boot?.() ?? null
    return { atMs, boot: boot && { id: boot.id, atMs: Math.round(atMs - boot.uptimeMs) } }
  }

  /** Goes on from an earlier run. To be called before anything is stamped. */
  goOnFrom({ atMs, boot: then }: KnownTime): void {
    const now = this.#clock.boot?.() ?? null
    const expectedMs = then !== null && now?.id === then.id ? then.atMs + now.uptimeMs : 0
    // In a container the time up may begin anew.
    if (expectedMs >= atMs) this.#expect(expectedMs)
    else this.notBefore(atMs)
  }

  /** This was recorded: where the machine's clock is behind it, it goes on from there. To be called before anything is stamped. */
  notBefore(recordedMs: number): void {
    if (recordedMs - this.now() < CLOCK_JUMP_MS_MIN) return
    this.#expect(recordedMs)
    this.#isBehindSinceStart = true
  }

  /** Believes the machine's clock: an operator has confirmed it. */
  trust(): void {
    const now = { wallMs: this.#clock.now(), monotonicMs: this.#clock.monotonicMs() }
    this.#latest = now
    this.#follow(now.wallMs, now.monotonicMs)
  }

  #expect(wallMs: number): void {
    this.#believed = { wallMs, monotonicMs: this.#clock.monotonicMs() }
    this.#latest = this.#believed
    this.#jump = null
    this.now()
  }

  #isBack(wallMs: number, monotonicMs: number): boolean {
    const aheadMs = wallMs - timeAt(this.#latest, monotonicMs)
    return Math.abs(aheadMs) < CLOCK_JUMP_MS_MIN || (this.#isBehindSinceStart && aheadMs > 0)
  }

  /** Whether the machine has slept since this was last asked, and for as long as the jump is far. */
  #hasSlept(jumpMs: number): boolean {
    const beforeMs = this.#sleptMs
    this.#sleptMs = this.#readSleptMs()
    return Math.abs(this.#sleptMs - beforeMs - jumpMs) < CLOCK_JUMP_MS_MIN
  }

  #readSleptMs(): number {
    return (this.#clock.boot?.()?.uptimeMs ?? Number.NaN) - this.#clock.monotonicMs()
  }

  #follow(wallMs: number, monotonicMs: number): number {
    const expectedMs = Math.round(timeAt(this.#believed, monotonicMs))
    if (wallMs - expectedMs >= CLOCK_JUMP_MS_MIN) this.leaptFromMs = expectedMs
    this.#believed = { wallMs, monotonicMs }
    if (wallMs > timeAt(this.#latest, monotonicMs) - CLOCK_JUMP_MS_MIN) {
      this.#latest = this.#believed
      this.#isBehindSinceStart = false
    }
    this.#jump = null
    return wallMs
  }
}
