// When recorded events are due: at the recorded speed, a multiple of it, at once, or in steps.

import { unlessAborted } from '../../lib/wait.ts'
import { REPLAY_WAIT_MS_MAX } from '../limits.ts'
import { wait } from '../wait.ts'

/** A multiple of the recorded speed, or as fast as possible. */
export type ReplaySpeed = number | 'max'

/** An event's place in what was recorded. */
interface Recorded {
  eventNo: number
  /** Unix ms. */
  atMs: number
}

export interface Pace {
  /** The first event is due now. Later calls do nothing. @param recordedMs its recorded time, Unix ms */
  begin(recordedMs: number): void
  /** The recorded time up to which events are due now. */
  dueMs(): number
  /** The number up to which recorded events are due now, whatever their time. */
  dueNo(): number
  /** Resolves when to ask again whether an event, which is not due, has become due; or when the signal is aborted. */
  untilDue(event: Recorded, signal: AbortSignal): Promise<void>
  /** No further event will come. @param error why, where the source has failed */
  end(error?: unknown): void
}

/** Follows the monotonic clock: setting the machine's neither holds up what is due nor makes it due at once. */
export class SpeedPace implements Pace {
  readonly #speed: ReplaySpeed
  readonly #nowMs: () => number
  /** Recorded time of the first event, and when it was delivered, on the monotonic clock; null until then. */
  #begun: { recordedMs: number; atMs: number } | null = null

  /** @param nowMs the monotonic clock */
  constructor(speed: ReplaySpeed, nowMs: () => number) {
    this.#speed = speed
    this.#nowMs = nowMs
  }

  begin(recordedMs: number): void {
    this.#begun ??= { recordedMs, atMs: this.#nowMs() }
  }

  /** Infinite before the first one. */
  dueMs(): number {
    if (this.#speed === 'max' || this.#begun === null) return Number.POSITIVE_INFINITY
    return this.#begun.recordedMs + (this.#nowMs() - this.#begun.atMs) * this.#speed
  }

  dueNo(): number {
    return 0
  }

  untilDue({ atMs }: Recorded, signal: AbortSignal): Promise<void> {
    return wait(this.waitMs(atMs), signal)
  }

  /** How long to wait for an event of this recorded time, ms; at most REPLAY_WAIT_MS_MAX. */
  waitMs(recordedMs: number): number {
    if (this.#speed === 'max') return 0
    return Math.min(Math.ceil((recordedMs - this.dueMs()) / this.#speed), REPLAY_WAIT_MS_MAX)
  }

  end(): void {}
}

/** Goes on in steps, each of which somebody asks for. */
export class StepPace implements Pace {
  #dueMs = Number.NEGATIVE_INFINITY
  #dueNo = 0
  #isEnded = false
  #error: unknown
  /** Resolved when all events that are due were applied. */
  #applied = Promise.withResolvers<void>()
  #next = Promise.withResolvers<void>()

  /** Resolves when every event of a recorded time up to this one is applied; rejects where they cannot be. @returns whether there are more */
  stepTo(timeMs: number): Promise<boolean> {
    this.#dueMs = Math.max(this.#dueMs, timeMs)
    return this.#step()
  }

  /** Resolves when every event up to this number is applied, and none behind it that is not due by its time. */
  stepToEvent(eventNo: number): Promise<boolean> {
    this.#dueNo = Math.max(this.#dueNo, eventNo)
    return this.#step()
  }

  async #step(): Promise<boolean> {
    if (!this.#isEnded) {
      this.#applied = Promise.withResolvers()
      this.#next.resolve()
      this.#next = Promise.withResolvers()
      await this.#applied.promise
    }
    if (this.#error !== undefined) throw this.#error
    return !this.#isEnded
  }

  begin(): void {}

  dueMs(): number {
    return this.#dueMs
  }

  dueNo(): number {
    return this.#dueNo
  }

  async untilDue({ eventNo, atMs }: Recorded, signal: AbortSignal): Promise<void> {
    while (atMs > this.#dueMs && eventNo > this.#dueNo && !signal.aborted) {
      const next = this.#next.promise
      this.#applied.resolve()
      await unlessAborted(next, signal)
    }
  }

  end(error?: unknown): void {
    this.#isEnded = true
    this.#error = error
    this.#applied.resolve()
  }
}
