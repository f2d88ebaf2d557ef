// Others see the labels of a submission only after a delay, so that nobody earns by copying. Submissions of this run, and the
// recent ones that were recovered, are timed by the monotonic clock; for older ones the stored wall time decides.
import type { Instant } from '../../lib/clock.ts'
import { BoundedMap } from '../../lib/collections/bounded-map.ts'
import { LABELS_WITHHELD_MAX, WALL_CLOCK_STEP_MS } from '../limits.ts'
import type { TokenLabels } from '../types.ts'

interface Withheld {
  /** When it was submitted, on the monotonic clock. */
  atMs: number
  /** The same by the wall clock of then. */
  receivedAtMs: number
  /** What the coverage of its token shows after the delay; null for a rejected submission. */
  labels: TokenLabels | null
}

export class WithheldLabels {
  readonly #delayMs: number
  readonly #show: (labels: TokenLabels) => void
  /** By analysis, the oldest first. At the maximum the oldest is dropped: the coverage of its token never shows its labels. */
  readonly #withheld: BoundedMap<string, Withheld>
  /** When the newest of those that were shown came, Unix ms: with it all before it are, also where the clock has gone back since. */
  #shownToMs = Number.NEGATIVE_INFINITY

  /**
   * @param show called with labels when their delay has passed, in the order in which they were added
   * @param onForgotten called for each submission whose labels are never shown, since too many wait
   */
  constructor(delayMs: number, show: (labels: TokenLabels) => void, onForgotten: () => void = () => {}) {
    this.#delayMs = delayMs
    this.#show = show
    this.#withheld = new BoundedMap({ entriesMax: LABELS_WITHHELD_MAX, onEvict: onForgotten })
  }

  /** @param at when it was submitted. */
  add(analysisId: string, labels: TokenLabels | null, { wallMs, monotonicMs: atMs }: Instant): void {
    this.release(atMs)
    if (this.#delayMs > 0) this.#withheld.set(analysisId, { atMs, receivedAtMs: wallMs, labels })
    else if (labels !== null) this.#show(labels)
  }

  /** Shows what has been withheld long enough. Call it before the coverage is read. */
  release(nowMs: number): void {
    for (let { oldest } = this.#withheld; oldest !== null; { oldest } = this.#withheld) {
      const { atMs, labels, receivedAtMs } = oldest.value
      if (atMs + this.#delayMs > nowMs) return
      this.#withheld.delete(oldest.key)
      this.#shownToMs = Math.max(this.#shownToMs, receivedAtMs)
      if (labels !== null) this.#show(labels)
    }
  }

  /** Others may see the labels of all submissions that were received by this time, Unix ms; null: of all. */
  shownToMs(now: Instant): number | null {
    if (this.#delayMs === 0) return null
    this.release(now.monotonicMs)
    let shownToMs = Math.max(now.wallMs - this.#delayMs, this.#shownToMs)
    for (const { value } of this.#withheld.entries()) shownToMs = Math.min(shownToMs, value.receivedAtMs - 1)
    return shownToMs
  }

  /** When others may see the labels of a submission, Unix ms; null: they may now. @param submittedAtMs by the wall clock. */
  availableAtMs(analysisId: string, submittedAtMs: number, now: Instant): number | null {
    if (this.#delayMs === 0) return null
    const announcedMs = submittedAtMs + this.#delayMs
    const atMs = this.#withheld.get(analysisId)?.atMs
    if (atMs === undefined && submittedAtMs <= this.#shownToMs) return null
    const untilMs = atMs === undefined ? announcedMs : now.wallMs + atMs + this.#delayMs - now.monotonicMs
    if (untilMs <= now.wallMs) return null
    // The same time in every answer, unless the wall clock was set since.
    return Math.abs(untilMs - announcedMs) > WALL_CLOCK_STEP_MS ? Math.ceil(untilMs) : announcedMs
  }
}
