// In: names that are wanted, some of them again and again. Out: each once, the one that was wanted last first. Never holds
// more than its maximum: the one that was wanted longest ago gives way.
import { assert } from '../lib/assert.ts'

export class RecencyQueue {
  /** In order of wanting, the latest last. */
  private readonly names = new Set<string>()
  private readonly namesMax: number

  constructor(namesMax: number) {
    assert(namesMax >= 1, 'a queue holds at least one name')
    this.namesMax = namesMax
  }

  get size(): number {
    return this.names.size
  }

  has(name: string): boolean {
    return this.names.has(name)
  }

  /** Wants a name, or wants it anew. @returns the name that gave way to it, or null. */
  want(name: string): string | null {
    this.names.delete(name)
    this.names.add(name)
    if (this.names.size <= this.namesMax) return null
    const [oldest] = this.names
    this.names.delete(oldest)
    return oldest
  }

  /** The name that was wanted last, which is no longer waiting then; null where none is. */
  take(): string | null {
    let latest: string | null = null
    for (const name of this.names) latest = name
    if (latest !== null) this.names.delete(latest)
    return latest
  }
}
