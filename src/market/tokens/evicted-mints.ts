/**
 * Remembers when mints were evicted, so that the bars of a token that comes back can be marked as incomplete. It holds a bounded
 * number of mints; once one is forgotten, every newcomer might be that one, and counts as held until then.
 */
export class EvictedMints {
  readonly #entriesMax: number
  /** Oldest eviction first. */
  readonly #evictedAtMs = new Map<string, number>()
  /** The latest eviction that was forgotten, market time; 0: none. */
  #forgottenToMs = 0

  constructor(entriesMax: number) {
    this.#entriesMax = entriesMax
  }

  add(mint: string, evictedAtMs: number): void {
    this.#evictedAtMs.delete(mint)
    this.#evictedAtMs.set(mint, evictedAtMs)
    if (this.#evictedAtMs.size <= this.#entriesMax) return
    const [[oldest, oldestEvictedAtMs]] = this.#evictedAtMs
    this.#evictedAtMs.delete(oldest)
    this.#forgottenToMs = oldestEvictedAtMs
  }

  /** A mint is held from now on. @returns the latest time at which it may have been evicted before; 0: never. */
  take(mint: string): number {
    const evictedAtMs = this.#evictedAtMs.get(mint)
    this.#evictedAtMs.delete(mint)
    return evictedAtMs ?? this.#forgottenToMs
  }
}
