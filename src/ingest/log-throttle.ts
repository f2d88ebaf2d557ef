// In: something worth a log line, again and again. Out: whether to say it now: at once the first time, then at most once in
// an interval. What was not said is counted, so that the next line can tell. Never logs.

export class LogThrottle {
  private saidAtMs = Number.NEGATIVE_INFINITY
  private unsaid = 0
  private readonly everyMs: number

  constructor(everyMs: number) {
    this.everyMs = everyMs
  }

  /** How often it went unsaid since the last line, where it is to be said now; else null. `nowMs` is monotonic. */
  due(nowMs: number): number | null {
    if (nowMs - this.saidAtMs < this.everyMs) {
      this.unsaid++
      return null
    }
    const { unsaid } = this
    this.saidAtMs = nowMs
    this.unsaid = 0
    return unsaid
  }
}
