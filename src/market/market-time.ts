/** The market's own time, Unix ms: the highest time that an event or `advanceTo` has carried. It goes back by a `rewind` only. */
export class MarketTime {
  nowMs = 0
  /** The first time that was carried: bars that start before it may lack trades. */
  sinceMs = 0
  /** The market's time at the first event that it took, whoever told it the time before; 0: it took none. */
  firstEventAtMs = 0

  /** @returns whether the time moved. */
  advanceTo(timeMs: number): boolean {
    if (timeMs <= this.nowMs) return false
    if (this.nowMs === 0) this.sinceMs = timeMs
    this.nowMs = timeMs
    return true
  }

  rewindTo(timeMs: number): void {
    this.nowMs = timeMs
    this.sinceMs = Math.min(this.sinceMs, timeMs)
    this.firstEventAtMs = Math.min(this.firstEventAtMs, timeMs)
  }
}
