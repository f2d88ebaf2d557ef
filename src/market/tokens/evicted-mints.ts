// In: mints that gave way to others, and when. Out: until when a mint that comes was held before: its bars of then are gone,
// and a bar of that time is not whole. Holds a bounded number of mints; of those beyond it knows only the latest time, and
// takes every newcomer for one of them. Never holds a token.
import { BoundedMap } from '../../lib/bounded-map.ts'

export class EvictedMints {
  /** By mint. */
  readonly #evictedAtMs: BoundedMap<string, number>
  /** When the latest of those that were forgotten had gone; 0: none was. */
  #forgottenToMs = 0

  constructor(entriesMax: number) {
    const onEvict = (_mint: string, evictedAtMs: number) => {
      this.#forgottenToMs = evictedAtMs
    }
    this.#evictedAtMs = new BoundedMap({ entriesMax, onEvict })
  }

  note(mint: string, nowMs: number): void {
    this.#evictedAtMs.set(mint, nowMs)
  }

  /** A mint is held from now on. @returns when it was last held before, at the latest; 0: never. */
  take(mint: string): number {
    const evictedAtMs = this.#evictedAtMs.get(mint)
    this.#evictedAtMs.delete(mint)
    return evictedAtMs ?? this.#forgottenToMs
  }
}
