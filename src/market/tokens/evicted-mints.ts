// In: mints that gave way to others, and when. Out: until when a mint that comes was held before: its bars of then are gone,
// and a bar of that time is not whole. Holds a bounded number of mints; of those beyond it knows only the latest time, and
// takes every newcomer for one of them. Never holds a token.

export class EvictedMints {
  readonly #entriesMax: number
  /** Oldest eviction first. */
  readonly #evictedAtMs = new Map<string, number>()
  /** When the latest of those that were forgotten had gone; 0: none was. */
  #forgottenToMs = 0

  constructor(entriesMax: number) {
    this.#entriesMax = entriesMax
  }

  note(mint: string, nowMs: number): void {
    this.#evictedAtMs.delete(mint)
    this.#evictedAtMs.set(mint, nowMs)
    if (this.#evictedAtMs.size <= this.#entriesMax) return
    const [[oldest, evictedAtMs]] = this.#evictedAtMs
    this.#evictedAtMs.delete(oldest)
    this.#forgottenToMs = evictedAtMs
  }

  /** A mint is held from now on. @returns when it was last held before, at the latest; 0: never. */
  take(mint: string): number {
    const evictedAtMs = this.#evictedAtMs.get(mint)
    this.#evictedAtMs.delete(mint)
    return evictedAtMs ?? this.#forgottenToMs
  }
}
