// Market times that may be told: each with the last event that happened before it.

interface Mark {
  eventNo: number
  timeMs: number
}

/** While the bus is away the oldest are forgotten: events tell the time as well. */
const MARKS_MAX = 64

export class MarketTimes {
  #marks: Mark[] = []
  #toldMs = 0

  /** Market time is `timeMs`, and the last event so far is `eventNo`. */
  note(eventNo: number, timeMs: number): void {
    const last = this.#marks.at(-1)
    if (last?.eventNo === eventNo) last.timeMs = timeMs
    else this.#marks.push({ eventNo, timeMs })
    if (this.#marks.length > MARKS_MAX) this.#marks.shift()
  }

  /** The market time in effect once all events up to this one are applied, before any later one happened. */
  at(eventNo: number): number {
    let mark = this.#marks[0]
    while (mark !== undefined && mark.eventNo <= eventNo) {
      this.#toldMs = Math.max(this.#toldMs, mark.timeMs)
      // The newest one stays: it is told again while nothing happens.
      if (this.#marks.length === 1) break
      this.#marks.shift()
      mark = this.#marks[0]
    }
    return this.#toldMs
  }
}
