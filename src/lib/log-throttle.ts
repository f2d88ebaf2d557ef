import type { Clock } from './clock.ts'

/** Limits how often log lines of one kind are written: at once the first time, then at most once per interval. */
export class LogThrottle {
  readonly #everyMs: number
  readonly #clock: Clock
  /** By kind, of which there are only as many as the program has. */
  readonly #latest = new Map<string, { writtenAtMs: number; suppressed: number }>()

  constructor(everyMs: number, clock: Clock) {
    this.#everyMs = everyMs
    this.#clock = clock
  }

  /**
   * Whether a line of this kind is to be written now.
   * @returns how many were suppressed since the last one; null where this one is suppressed too.
   */
  due(kind: string): number | null {
    const nowMs = this.#clock.monotonicMs()
    const latest = this.#latest.get(kind)
    if (latest !== undefined && nowMs - latest.writtenAtMs < this.#everyMs) {
      latest.suppressed++
      return null
    }
    this.#latest.set(kind, { writtenAtMs: nowMs, suppressed: 0 })
    return latest?.suppressed ?? 0
  }
}
