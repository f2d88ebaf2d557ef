// Finds duplicates among closed bars, which arrive in order of time for each token and timeframe, but for those of a token that came
// back after its eviction, and until market time goes back. Remembers the last bar of up to SEEN_BARS_TOKENS_MAX tokens; bars up to the last
// one of a token, and those of a forgotten one, are uncertain.
import { TIMEFRAMES } from '../../schema/timeframe.ts'
import { SEEN_BARS_TOKENS_MAX } from '../limits.ts'

/** `uncertain`: the lake may have it already. */
export type BarStatus = 'new' | 'duplicate' | 'uncertain'

const STRIDE = TIMEFRAMES.length
/** Room at first, which doubles as tokens come: a server of a small market does without 19 MB. */
const TOKENS_AT_FIRST = 1_024

export class SeenBars {
  readonly #slots = new Map<string, number>()
  readonly #mints: string[] = []
  /** Start of the last bar, by slot and timeframe, Unix ms; 0: none. */
  #lastMs = new Float64Array(TOKENS_AT_FIRST * STRIDE)
  #nextSlot = 0
  readonly #earlierToMs: number
  #forgottenToMs = 0

  /** @param earlierToMs start of the youngest bar of earlier runs */
  constructor(earlierToMs: number) {
    this.#earlierToMs = earlierToMs
  }

  /** Compares a bar with those before it, and remembers it. @param timeframe index in TIMEFRAMES */
  note(mint: string, timeframe: number, tMs: number): BarStatus {
    const at = this.#findSlot(mint) * STRIDE + timeframe
    const lastMs = this.#lastMs[at]
    if (lastMs !== 0 && tMs === lastMs) return 'duplicate'
    if (tMs < lastMs) return 'uncertain'
    this.#lastMs[at] = tMs
    const uncertainToMs = lastMs === 0 ? Math.max(this.#earlierToMs, this.#forgottenToMs) : this.#earlierToMs
    return tMs > uncertainToMs ? 'new' : 'uncertain'
  }

  /** The slot of a token; a new token takes that of the oldest where all are in use. */
  #findSlot(mint: string): number {
    const known = this.#slots.get(mint)
    if (known !== undefined) return known
    const slot = this.#nextSlot++ % SEEN_BARS_TOKENS_MAX
    if (this.#mints[slot] !== undefined) this.#forget(slot)
    else if (slot * STRIDE === this.#lastMs.length) this.#grow()
    this.#mints[slot] = mint
    this.#slots.set(mint, slot)
    return slot
  }

  #grow(): void {
    const grown = new Float64Array(Math.min(SEEN_BARS_TOKENS_MAX * STRIDE, 2 * this.#lastMs.length))
    grown.set(this.#lastMs)
    this.#lastMs = grown
  }

  #forget(slot: number): void {
    this.#slots.delete(this.#mints[slot])
    for (let at = slot * STRIDE; at < (slot + 1) * STRIDE; at++) {
      this.#forgottenToMs = Math.max(this.#forgottenToMs, this.#lastMs[at])
      this.#lastMs[at] = 0
    }
  }
}
