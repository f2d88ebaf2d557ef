// In: how often a mint was analysed, each time it was. Out: the count of a mint, held or not. Keeps a bounded number of
// mints; at the maximum the one whose count changed longest ago is forgotten, and counts as not analysed until its next
// analysis. Never counts itself.
import { BoundedMap } from '../../lib/bounded-map.ts'

export class AnalysisCounts {
  readonly #counts: BoundedMap<string, number>
  #forgotten: string | null = null

  constructor(entriesMax: number) {
    const onEvict = (mint: string) => {
      this.#forgotten = mint
    }
    this.#counts = new BoundedMap({ entriesMax, onEvict })
  }

  get(mint: string): number {
    return this.#counts.get(mint) ?? 0
  }

  /** @returns the mint that was forgotten for it, null: none. */
  set(mint: string, count: number): string | null {
    this.#forgotten = null
    this.#counts.set(mint, count)
    return this.#forgotten
  }
}
