import { assert } from '../lib/assert.ts'

/** A bounded queue of distinct names that gives out the most recently requested name first. When full it drops the oldest. */
export class RecencyQueue {
  /** In the order of requests, the most recent last. */
  readonly #names = new Set<string>()
  readonly #namesMax: number

  constructor(namesMax: number) {
    assert(namesMax >= 1, 'a queue holds at least one name')
    this.#namesMax = namesMax
  }

  get size(): number {
    return this.#names.size
  }

  has(name: string): boolean {
    return this.#names.has(name)
  }

  /** Adds a name, or makes it the most recent one. @returns the name that was dropped for it, or null. */
  add(name: string): string | null {
    this.#names.delete(name)
    this.#names.add(name)
    if (this.#names.size <= this.#namesMax) return null
    const [oldest] = this.#names
    this.#names.delete(oldest)
    return oldest
  }

  /** Removes and returns the most recent name; null where there is none. */
  take(): string | null {
    let latest: string | null = null
    for (const name of this.#names) latest = name
    if (latest !== null) this.#names.delete(latest)
    return latest
  }
}
