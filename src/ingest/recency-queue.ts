import { BoundedMap } from '../lib/collections/bounded-map.ts'

/** A bounded queue of distinct names that gives out the most recently requested name first. When full it drops the oldest. */
export class RecencyQueue {
  readonly #names: BoundedMap<string, true>
  /** By the last `add`. */
  #dropped: string | null = null

  constructor(namesMax: number) {
    const onEvict = (name: string) => {
      this.#dropped = name
    }
    this.#names = new BoundedMap({ entriesMax: namesMax, onEvict })
  }

  get size(): number {
    return this.#names.size
  }

  has(name: string): boolean {
    return this.#names.has(name)
  }

  /** Adds a name, or makes it the most recent one. @returns the name that was dropped for it, or null. */
  add(name: string): string | null {
    this.#dropped = null
    this.#names.set(name, true)
    return this.#dropped
  }

  /** Removes and returns the most recent name; null where there is none. */
  take(): string | null {
    const { newest } = this.#names
    if (newest === null) return null
    this.#names.delete(newest.key)
    return newest.key
  }
}
