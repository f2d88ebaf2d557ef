// When recorded events are due: at the recorded speed, a multiple of it, or at once.
import { REPLAY_WAIT_MS_MAX } from '../limits.ts'

/** A multiple of the recorded speed, or as fast as possible. */
export type ReplaySpeed = number | 'max'

export class Pace {
  readonly #speed: ReplaySpeed
  readonly #nowMs: () => number
  /** Recorded time of the first event, and when it was delivered; null until then. */
  #begun: { recordedMs: number; atMs: number } | null = null

  constructor(speed: ReplaySpeed, nowMs: () => number) {
    this.#speed = speed
    this.#nowMs = nowMs
  }

  /** The first event is due now. Later calls do nothing. @param recordedMs its recorded time, Unix ms */
  begin(recordedMs: number): void {
    this.#begun ??= { recordedMs, atMs: this.#nowMs() }
  }

  /** The recorded time up to which events are due now; infinite before the first one. */
  dueMs(): number {
    if (this.#speed === 'max' || this.#begun === null) return Number.POSITIVE_INFINITY
    return this.#begun.recordedMs + (this.#nowMs() - this.#begun.atMs) * this.#speed
  }

  /** How long to wait for an event of this recorded time, ms; at most REPLAY_WAIT_MS_MAX, since the clock may be set. */
  waitMs(recordedMs: number): number {
    if (this.#speed === 'max') return 0
    return Math.min(Math.ceil((recordedMs - this.dueMs()) / this.#speed), REPLAY_WAIT_MS_MAX)
  }
}
