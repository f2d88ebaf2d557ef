// Market times that may be told: each with the last event that happened before it.

/** While the bus is away the oldest are forgotten: events tell the time as well. */
const MARKS_MAX = 64

export class MarketTimes {
  readonly #marks: { eventNo: number; timeMs: number }[] = []

  /** Market time is `timeMs`, and the last event so far is `eventNo`. */
  note(eventNo: number, timeMs: number): void {
    const last = this.#marks.at(-1)
    if (last?.eventNo === eventNo) last.timeMs = timeMs
    else this.#marks.push({ eventNo, timeMs })
    if (this.#marks.length > MARKS_MAX) this.#marks.shift()
  }

  /**
   * The market time in effect once all events up to this one are applied, before any later one happened; 0: it is not known. What was
   * asked before does not matter: a message that did not arrive is made again, with fewer events perhaps.
   */
  at(eventNo: number): number {
    return this.#marks.findLast((mark) => mark.eventNo <= eventNo)?.timeMs ?? 0
  }
}
