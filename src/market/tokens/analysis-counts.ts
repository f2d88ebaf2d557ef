/**
 * How often each mint was analysed, whether it is held or not. It holds a bounded number of mints; at the maximum the one whose
 * count changed longest ago is forgotten, and counts 0 until its next analysis.
 */
export class AnalysisCounts {
  readonly #entriesMax: number
  /** The mint whose count changed longest ago comes first. */
  readonly #counts = new Map<string, number>()

  constructor(entriesMax: number) {
    this.#entriesMax = entriesMax
  }

  get(mint: string): number {
    return this.#counts.get(mint) ?? 0
  }

  /** @returns the mint that was forgotten to make room, or null. */
  set(mint: string, count: number): string | null {
    this.#counts.delete(mint)
    this.#counts.set(mint, count)
    if (this.#counts.size <= this.#entriesMax) return null
    const [oldest] = this.#counts.keys()
    this.#counts.delete(oldest)
    return oldest
  }
}
