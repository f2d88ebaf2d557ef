// In: closed bars, token by token ascending in time. Out: for each whether it is new, comes again, or may be in the lake
// from an earlier run. Knows the last bar of so many tokens; of one that it forgot it says that it does not know.
// Never reads a file.
import { TIMEFRAMES } from '../../schema/timeframe.ts'
import { BAR_MARKS_MAX } from '../limits.ts'

/** `doubtful`: the lake must be asked. */
export type Freshness = 'new' | 'again' | 'doubtful'

const STRIDE = TIMEFRAMES.length

export class BarMarks {
  #slots = new Map<string, number>()
  #owners: string[] = []
  #marks: Float64Array
  #marksMax: number
  #next = 0
  #earlierToMs: number
  #forgottenToMs = 0

  /** @param earlierToMs start of the youngest bar of earlier runs. */
  constructor(earlierToMs: number, marksMax = BAR_MARKS_MAX) {
    this.#earlierToMs = earlierToMs
    this.#marksMax = marksMax
    this.#marks = new Float64Array(marksMax * STRIDE)
  }

  /** Says what the bar is, and remembers it. `timeframe` is its place among TIMEFRAMES. */
  note(mint: string, timeframe: number, tMs: number): Freshness {
    const at = this.#slotOf(mint) * STRIDE + timeframe
    const mark = this.#marks[at]
    if (mark !== 0 && tMs <= mark) return 'again'
    this.#marks[at] = tMs
    const doubtToMs = mark === 0 ? Math.max(this.#earlierToMs, this.#forgottenToMs) : this.#earlierToMs
    return tMs > doubtToMs ? 'new' : 'doubtful'
  }

  #slotOf(mint: string): number {
    const known = this.#slots.get(mint)
    if (known !== undefined) return known
    const slot = this.#next++ % this.#marksMax
    if (this.#owners[slot] !== undefined) this.#forget(slot)
    this.#owners[slot] = mint
    this.#slots.set(mint, slot)
    return slot
  }

  /** From here on bars of tokens without a mark are in doubt up to its youngest. */
  #forget(slot: number): void {
    this.#slots.delete(this.#owners[slot])
    for (let at = slot * STRIDE; at < (slot + 1) * STRIDE; at++) {
      this.#forgottenToMs = Math.max(this.#forgottenToMs, this.#marks[at])
      this.#marks[at] = 0
    }
  }
}
