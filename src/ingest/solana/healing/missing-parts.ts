// What of a gap could not be had: from the last event that was, to the next one.
import type { MissingPart } from '../../../schema/event.ts'

export type MissingReason = MissingPart['reason']

export class MissingParts {
  parts: MissingPart[] = []
  /** Nothing is missing until this time but for the parts, Unix ms. */
  #wholeToMs: number
  #open: MissingReason | null = null
  #toldCount = 0
  readonly #sinceMs: number

  /** @param sinceMs when the gap began */
  constructor(sinceMs: number) {
    this.#sinceMs = sinceMs
    this.#wholeToMs = sinceMs
  }

  /** Something could not be had that comes next. @returns whether something was had before it */
  begin(reason: MissingReason): boolean {
    const isNew = this.#open === null
    this.#open ??= reason
    return isNew
  }

  /** What is of this time was had. */
  had(timeMs: number): void {
    this.close(timeMs)
    this.#wholeToMs = Math.max(this.#wholeToMs, timeMs)
  }

  /** What is missing at present is so until this time. */
  close(toMs: number): void {
    if (this.#open === null) return
    const fromMs = this.#wholeToMs
    this.parts.push({ fromMs, toMs: Math.max(fromMs, toMs), reason: this.#open })
    this.#open = null
  }

  /** Nothing of the gap was had in time. */
  all(toMs: number, reason: MissingReason): void {
    this.parts = [{ fromMs: this.#sinceMs, toMs, reason }]
  }

  /** The parts that have ended since this was asked for last. */
  takeUntold(): readonly MissingPart[] {
    const untold = this.parts.slice(this.#toldCount)
    this.#toldCount = this.parts.length
    return untold
  }
}
