// A map in the order of the last writes that records which entries changed since they were last saved. Values are not copied:
// to change one, set it again.
import { assert } from '../../lib/assert.ts'
import { PlainValues, type ValueList } from './value-list.ts'

/** Shorter lists are not compacted. */
const COMPACT_MIN = 64

/**
 * Iterates from the entry written longest ago to the one written last. A plain Map would be slow here: it keeps slots of
 * deleted and rewritten entries and skips them each time the oldest entry is read.
 */
export class KeyedTable<Value> {
  /** The index of each entry in the two lists. */
  readonly #indexes = new Map<string, number>()
  /** In the order of the last write; undefined: the entry was deleted or written again. */
  #keys: (string | undefined)[] = []
  readonly #values: ValueList<Value>
  /** All indexes before this one are empty. */
  #first = 0
  /** Null where the table is not saved. */
  #changed: Set<string> | null

  constructor(isSaved: boolean, values: ValueList<Value> = new PlainValues()) {
    this.#values = values
    this.#changed = isSaved ? new Set() : null
  }

  get size(): number {
    return this.#indexes.size
  }

  get(key: string): Value | undefined {
    const index = this.#indexes.get(key)
    return index === undefined ? undefined : this.#values.at(index)
  }

  has(key: string): boolean {
    return this.#indexes.has(key)
  }

  /** Writes an entry and makes it the last one. */
  set(key: string, value: Value): void {
    const index = this.#indexes.get(key)
    if (index !== undefined) this.#empty(index)
    this.#append(key, value)
    if (this.#changed === null) return
    this.#changed.delete(key)
    this.#changed.add(key)
  }

  /**
   * Writes an entry without moving it, for sums, whose order does not matter: with a value made of the earlier one, or of `initial`
   * where there is none. The key is looked up once.
   */
  update(key: string, initial: Value, change: (value: Value) => Value): void {
    const index = this.#indexes.get(key)
    if (index === undefined) this.#append(key, change(initial))
    else this.#values.put(index, change(this.#values.at(index)))
    this.#changed?.add(key)
  }

  delete(key: string): void {
    const index = this.#indexes.get(key)
    if (index === undefined) return
    this.#empty(index)
    this.#indexes.delete(key)
    this.#changed?.add(key)
  }

  /** Deletes entries, oldest first, while `isOver` is true of them. */
  deleteOldest(isOver: (value: Value, size: number) => boolean): void {
    for (; this.#first < this.#keys.length; this.#first++) {
      const key = this.#keys[this.#first]
      if (key === undefined) continue
      if (!isOver(this.#values.at(this.#first), this.size)) return
      this.delete(key)
    }
  }

  *values(): IterableIterator<Value> {
    for (const [, value] of this.entries()) yield value
  }

  /** Entries may be deleted while this iterates. */
  *entries(): IterableIterator<[string, Value]> {
    for (let index = this.#first; index < this.#keys.length; index++) {
      const key = this.#keys[index]
      if (key !== undefined) yield [key, this.#values.at(index)]
    }
  }

  /** Adds saved entries, the latest of each key. They do not count as changed. */
  load(entries: Iterable<readonly [string, Value]>): void {
    for (const [key, value] of entries) {
      const index = this.#indexes.get(key)
      if (index !== undefined) this.#empty(index)
      this.#append(key, value)
    }
  }

  /** Whether entries changed since `takeChanges`. */
  get hasChanges(): boolean {
    return this.#changed !== null && this.#changed.size > 0
  }

  /** Entries that changed since `takeChanges`, in the order of the last write; undefined: the entry was deleted. Read them before the
   *  table changes again. */
  changes(): Iterable<[key: string, value: Value | undefined]> {
    assert(this.#changed !== null, 'this state is not saved')
    return this.#valuesOf(this.#changed)
  }

  /** The same; from then on they do not count as changed. */
  takeChanges(): Iterable<[key: string, value: Value | undefined]> {
    const changes = this.changes()
    this.#changed = new Set()
    return changes
  }

  /** Drops all entries, as if they had never been set: not a change. */
  clear(): void {
    this.#indexes.clear()
    this.#keys = []
    this.#values.keep([])
    this.#first = 0
  }

  *#valuesOf(keys: Iterable<string>): IterableIterator<[key: string, value: Value | undefined]> {
    for (const key of keys) yield [key, this.get(key)]
  }

  #append(key: string, value: Value): void {
    if (this.#keys.length > COMPACT_MIN && this.#keys.length > 2 * this.size) this.#compact()
    this.#indexes.set(key, this.#keys.length)
    this.#keys.push(key)
    this.#values.push(value)
  }

  #empty(index: number): void {
    this.#keys[index] = undefined
    this.#values.release(index)
  }

  /** Removes the empty slots. */
  #compact(): void {
    const kept: number[] = []
    for (let index = this.#first; index < this.#keys.length; index++)
      if (this.#keys[index] !== undefined) kept.push(index)
    this.#keys = kept.map((index) => this.#keys[index])
    this.#values.keep(kept)
    this.#first = 0
    this.#keys.forEach((key, index) => {
      if (key !== undefined) this.#indexes.set(key, index)
    })
  }
}
