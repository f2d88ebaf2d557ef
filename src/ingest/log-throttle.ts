/** Limits how often a repeated log line is written: at once the first time, then at most once per interval. */
export class LogThrottle {
  readonly #everyMs: number
  #loggedAtMs = Number.NEGATIVE_INFINITY
  #suppressed = 0

  constructor(everyMs: number) {
    this.#everyMs = everyMs
  }

  /**
   * Whether the line is to be written now.
   * @param nowMs monotonic time.
   * @returns how many were suppressed since the last one; null where this one is suppressed too.
   */
  due(nowMs: number): number | null {
    if (nowMs - this.#loggedAtMs < this.#everyMs) {
      this.#suppressed++
      return null
    }
    const suppressed = this.#suppressed
    this.#loggedAtMs = nowMs
    this.#suppressed = 0
    return suppressed
  }
}
