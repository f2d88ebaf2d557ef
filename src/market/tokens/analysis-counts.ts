// In: how often a mint was analysed, each time it was. Out: the count of a mint, held or not. Keeps a bounded number of
// mints; at the maximum the one whose count changed longest ago is forgotten, and counts as not analysed until its next
// analysis. Never counts itself.

export class AnalysisCounts {
  readonly #entriesMax: number
  /** The one that changed longest ago first. */
  readonly #counts = new Map<string, number>()

  constructor(entriesMax: number) {
    this.#entriesMax = entriesMax
  }

  get(mint: string): number {
    return this.#counts.get(mint) ?? 0
  }

  /** @returns the mint that was forgotten for it, null: none. */
  set(mint: string, count: number): string | null {
    this.#counts.delete(mint)
    this.#counts.set(mint, count)
    if (this.#counts.size <= this.#entriesMax) return null
    const [oldest] = this.#counts.keys()
    this.#counts.delete(oldest)
    return oldest
  }
}
