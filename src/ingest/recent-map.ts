// In: keys and values. Out: the values of recently used keys. Never holds more than its maximum: the less recently used
// half is forgotten at once, which costs nothing per entry (two generations instead of a linked list).
import { assert } from '../lib/assert.ts'

/** A bounded map that keeps at least the latest `entriesMax / 2` used keys. */
export class RecentMap<Value> {
  private young = new Map<string, Value>()
  private old = new Map<string, Value>()
  private readonly generationMax: number

  constructor(entriesMax: number) {
    assert(entriesMax >= 2, 'a recent map holds at least two entries')
    this.generationMax = entriesMax >> 1
  }

  get size(): number {
    return this.young.size + this.old.size
  }

  /** The value of a key, which counts as use; undefined when it is not, or no longer, known. */
  get(key: string): Value | undefined {
    const young = this.young.get(key)
    if (young !== undefined) return young
    const old = this.old.get(key)
    if (old === undefined) return undefined
    this.old.delete(key)
    this.set(key, old)
    return old
  }

  set(key: string, value: Value): void {
    if (this.young.size >= this.generationMax && !this.young.has(key)) {
      this.old = this.young
      this.young = new Map()
    }
    this.old.delete(key)
    this.young.set(key, value)
  }

  delete(key: string): void {
    this.young.delete(key)
    this.old.delete(key)
  }
}
