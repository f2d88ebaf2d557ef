// Submissions that were judged and are still to be told on the bus, each with the last event before it.
import { TOLD_SUBMISSIONS_MAX } from '../limits.ts'
import type { ToldSubmission } from '../messages.ts'

export interface WaitingSubmission {
  /** It is told with a message that has this event, or a later one. */
  eventNo: number
  submission: ToldSubmission
}

export class ToldSubmissions {
  #waiting: WaitingSubmission[] = []

  add(waiting: WaitingSubmission): void {
    this.#waiting.push(waiting)
    if (this.#waiting.length > TOLD_SUBMISSIONS_MAX) this.#waiting.shift()
  }

  /** Takes those that may be told once readers have this event. */
  take(eventNo: number): WaitingSubmission[] {
    const taken = this.#waiting.filter((waiting) => waiting.eventNo <= eventNo)
    if (taken.length > 0) this.#waiting = this.#waiting.filter((waiting) => waiting.eventNo > eventNo)
    return taken
  }

  /** What was taken did not arrive. */
  putBack(taken: readonly WaitingSubmission[]): void {
    this.#waiting = [...taken, ...this.#waiting].slice(-TOLD_SUBMISSIONS_MAX)
  }
}
