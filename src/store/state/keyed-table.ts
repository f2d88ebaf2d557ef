// In: entries by key. Out: the same, in order of their last write, and which of them changed since they were last saved.
// Never copies a value: whoever changes one sets it again.
import { assert } from '../../lib/assert.ts'
import { PlainValues, type ValueList } from './value-list.ts'

/** Fewer entries are not worth moving. */
const TIDIED_MIN = 64

/**
 * A map that knows what has to be saved. Iterates from the entry written longest ago to the one written last. Not a Map alone:
 * that keeps the places of entries which were deleted or written again, and passes over them each time the oldest is asked for.
 */
export class KeyedTable<Value> {
  /** Where an entry lies in the two lists. */
  readonly #places = new Map<string, number>()
  /** In order of the last write; undefined: nothing is there any more. */
  #keys: (string | undefined)[] = []
  readonly #values: ValueList<Value>
  /** Before it nothing is there. */
  #first = 0
  /** Null where nothing of it will be saved. */
  #changed: Set<string> | null

  constructor(isSaved: boolean, values: ValueList<Value> = new PlainValues()) {
    this.#values = values
    this.#changed = isSaved ? new Set() : null
  }

  get size(): number {
    return this.#places.size
  }

  get(key: string): Value | undefined {
    const place = this.#places.get(key)
    return place === undefined ? undefined : this.#values.at(place)
  }

  has(key: string): boolean {
    return this.#places.has(key)
  }

  /** Writes an entry; it becomes the last one. */
  set(key: string, value: Value): void {
    const place = this.#places.get(key)
    if (place !== undefined) this.#empty(place)
    this.#append(key, value)
    if (this.#changed === null) return
    this.#changed.delete(key)
    this.#changed.add(key)
  }

  /** Writes an entry where it stands: for sums, whose order means nothing. */
  replace(key: string, value: Value): void {
    this.#put(key, value)
    this.#changed?.add(key)
  }

  delete(key: string): void {
    const place = this.#places.get(key)
    if (place === undefined) return
    this.#empty(place)
    this.#places.delete(key)
    this.#changed?.add(key)
  }

  /** Deletes entries from the oldest on while `isOver` holds of them. */
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

  /** Entries may be deleted meanwhile. */
  *entries(): IterableIterator<[string, Value]> {
    for (let place = this.#first; place < this.#keys.length; place++) {
      const key = this.#keys[place]
      if (key !== undefined) yield [key, this.#values.at(place)]
    }
  }

  /** Fills the table with what was saved: nothing of it counts as changed. */
  load(entries: Iterable<readonly [string, Value]>): void {
    for (const [key, value] of entries) this.#put(key, value)
  }

  /** What changed since the last call, in order of the last write: a value, or undefined for an entry that is gone. */
  takeChanges(): [key: string, value: Value | undefined][] {
    const changed = this.#changed
    assert(changed !== null, 'this state is not saved')
    this.#changed = new Set()
    return Array.from(changed, (key) => [key, this.get(key)])
  }

  #put(key: string, value: Value): void {
    const place = this.#places.get(key)
    if (place === undefined) this.#append(key, value)
    else this.#values.put(place, value)
  }

  #append(key: string, value: Value): void {
    if (this.#keys.length > TIDIED_MIN && this.#keys.length > 2 * this.size) this.#tidy()
    this.#places.set(key, this.#keys.length)
    this.#keys.push(key)
    this.#values.push(value)
  }

  #empty(place: number): void {
    this.#keys[place] = undefined
    this.#values.release(place)
  }

  /** Moves the entries together. */
  #tidy(): void {
    const kept: number[] = []
    for (let place = this.#first; place < this.#keys.length; place++)
      if (this.#keys[place] !== undefined) kept.push(place)
    this.#keys = kept.map((place) => this.#keys[place])
    this.#values.keep(kept)
    this.#first = 0
    this.#keys.forEach((key, place) => {
      this.#places.set(key as string, place)
    })
  }
}
