// In: entries by key. Out: the same, in order of their last write, and which of them changed since they were last saved.
// Never copies a value: whoever changes one sets it again.
import { assert } from '../../lib/assert.ts'

/** A map that knows what has to be saved. Iterates from the entry written longest ago to the one written last. */
export class KeyedTable<Value> {
  readonly #values = new Map<string, Value>()
  /** Null where nothing of it will be saved. */
  #changed: Set<string> | null

  constructor(isSaved: boolean) {
    this.#changed = isSaved ? new Set() : null
  }

  get size(): number {
    return this.#values.size
  }

  get(key: string): Value | undefined {
    return this.#values.get(key)
  }

  has(key: string): boolean {
    return this.#values.has(key)
  }

  /** Writes an entry; it becomes the last one. */
  set(key: string, value: Value): void {
    this.#values.delete(key)
    this.#values.set(key, value)
    if (this.#changed === null) return
    this.#changed.delete(key)
    this.#changed.add(key)
  }

  /** Writes an entry where it stands: for sums, whose order means nothing. */
  replace(key: string, value: Value): void {
    this.#values.set(key, value)
    this.#changed?.add(key)
  }

  delete(key: string): void {
    if (this.#values.delete(key)) this.#changed?.add(key)
  }

  /** Deletes entries from the oldest on while `isOver` holds of them. */
  deleteOldest(isOver: (value: Value, size: number) => boolean): void {
    for (const [key, value] of this.#values) {
      if (!isOver(value, this.#values.size)) return
      this.delete(key)
    }
  }

  values(): IterableIterator<Value> {
    return this.#values.values()
  }

  entries(): IterableIterator<[string, Value]> {
    return this.#values.entries()
  }

  /** Fills the table with what was saved: nothing of it counts as changed. */
  load(entries: Iterable<readonly [string, Value]>): void {
    for (const [key, value] of entries) this.#values.set(key, value)
  }

  /** What changed since the last call, in order of the last write: a value, or undefined for an entry that is gone. */
  takeChanges(): [key: string, value: Value | undefined][] {
    const changed = this.#changed
    assert(changed !== null, 'this state is not saved')
    this.#changed = new Set()
    return Array.from(changed, (key) => [key, this.#values.get(key)])
  }
}
