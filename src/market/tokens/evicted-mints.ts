import { z } from 'zod'
import { BoundedMap } from '../../lib/collections/bounded-map.ts'
import { jsonSection, type Saved, type Section, type SectionReader } from '../../lib/sections/sections.ts'
import { readMintNumbers, saveMintNumbers } from './mint-numbers.ts'

const savedSchema = z.object({ forgottenToMs: z.number() })

/**
 * Remembers when mints were evicted, so that the bars of a token that comes back can be marked as incomplete. It holds a bounded
 * number of mints; once one is forgotten, every newcomer might be that one, and counts as held until then.
 */
export class EvictedMints implements Saved {
  /** By mint, oldest eviction first. */
  readonly #evictedAtMs: BoundedMap<string, number>
  /** The latest eviction that was forgotten, market time; 0: none. */
  #forgottenToMs = 0

  constructor(entriesMax: number) {
    const onEvict = (_mint: string, evictedAtMs: number) => {
      this.#forgottenToMs = Math.max(this.#forgottenToMs, evictedAtMs)
    }
    this.#evictedAtMs = new BoundedMap({ entriesMax, onEvict })
  }

  add(mint: string, evictedAtMs: number): void {
    this.#evictedAtMs.set(mint, evictedAtMs)
  }

  /** A mint is held from now on. @returns the latest time at which it may have been evicted before; 0: never. */
  take(mint: string): number {
    const evictedAtMs = this.#evictedAtMs.get(mint)
    this.#evictedAtMs.delete(mint)
    return evictedAtMs ?? this.#forgottenToMs
  }

  /** Market time has gone back. */
  rewindTo(timeMs: number): void {
    this.#forgottenToMs = Math.min(this.#forgottenToMs, timeMs)
    for (const { key, value } of [...this.#evictedAtMs.entries()])
      if (value > timeMs) this.#evictedAtMs.set(key, timeMs)
  }

  *save(): Iterable<Section> {
    yield jsonSection('evicted', { forgottenToMs: this.#forgottenToMs })
    yield* saveMintNumbers('evicted', this.#evictedAtMs.entries())
  }

  restore(sections: SectionReader): void {
    this.#forgottenToMs = sections.json('evicted', savedSchema).forgottenToMs
    for (const { key, value } of readMintNumbers('evicted', sections)) this.#evictedAtMs.set(key, value)
  }
}
