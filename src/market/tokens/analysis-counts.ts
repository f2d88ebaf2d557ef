import { BoundedMap } from '../../lib/collections/bounded-map.ts'
import type { Saved, Section, SectionReader } from '../../lib/sections/sections.ts'
import { readMintNumbers, saveMintNumbers } from './mint-numbers.ts'

/**
 * How often each mint was analysed, whether it is held or not. It holds a bounded number of mints; at the maximum the one whose
 * count changed longest ago is forgotten, and counts 0 until its next analysis.
 */
export class AnalysisCounts implements Saved {
  /** The mint whose count changed longest ago is the oldest. */
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

  /** @returns the mint that was forgotten to make room, or null. */
  set(mint: string, count: number): string | null {
    this.#forgotten = null
    this.#counts.set(mint, count)
    return this.#forgotten
  }

  entries(): Iterable<{ key: string; value: number }> {
    return this.#counts.entries()
  }

  *save(): Iterable<Section> {
    yield* saveMintNumbers('analyses', this.#counts.entries())
  }

  restore(sections: SectionReader): void {
    for (const { key, value } of readMintNumbers('analyses', sections)) this.#counts.set(key, value)
  }
}
