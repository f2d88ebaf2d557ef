// The one bounded map for caches and remembered keys: it evicts the oldest entry first.
//
// Why not a plain Map: its oldest key is behind the holes that deleted keys leave, so an eviction takes time that grows with
// the map (10 µs at 50 000 entries). Why not lru-cache: it is as fast as this, but allocates all its memory when it is made
// (20 MB for the maps of a default server), where this one grows with its entries.
import { assert } from '../assert.ts'

export interface Entry<Key, Value> {
  readonly key: Key
  readonly value: Value
}

interface Link<Key, Value> {
  readonly key: Key
  value: Value
  older: Link<Key, Value> | null
  newer: Link<Key, Value> | null
}

export interface Bounds<Key, Value> {
  /** Entries held at most. */
  entriesMax?: number
  /** The most that all entries may weigh together. One entry that alone weighs more is held, but no other beside it. */
  weightMax?: number
  /** What an entry weighs, in the unit of `weightMax`. Must not change while the entry is held. */
  weigh?: (value: Value, key: Key) => number
  /** Called with each entry that gives way to another; not for `delete` and `clear`. Must not change the map. */
  onEvict?: (key: Key, value: Value) => void
}

/** Entries are in the order of their last `set` or `renew`. */
export class BoundedMap<Key, Value> {
  readonly #links = new Map<Key, Link<Key, Value>>()
  readonly #entriesMax: number
  readonly #weightMax: number
  readonly #weigh: (value: Value, key: Key) => number
  readonly #onEvict: (key: Key, value: Value) => void
  #oldest: Link<Key, Value> | null = null
  #newest: Link<Key, Value> | null = null
  #weight = 0

  constructor({
    entriesMax = Number.POSITIVE_INFINITY,
    weightMax = Number.POSITIVE_INFINITY,
    weigh = () => 0,
    onEvict = () => {},
  }: Bounds<Key, Value>) {
    assert(entriesMax >= 1, 'a bounded map holds at least one entry')
    this.#entriesMax = entriesMax
    this.#weightMax = weightMax
    this.#weigh = weigh
    this.#onEvict = onEvict
  }

  get size(): number {
    return this.#links.size
  }

  /** What all entries weigh together. */
  get weight(): number {
    return this.#weight
  }

  /** The entry that is evicted next. */
  get oldest(): Entry<Key, Value> | null {
    return this.#oldest
  }

  /** The entry that was set or renewed last. */
  get newest(): Entry<Key, Value> | null {
    return this.#newest
  }

  /** All entries, oldest first. */
  *entries(): Iterable<Entry<Key, Value>> {
    for (let link = this.#oldest; link !== null; link = link.newer) yield link
  }

  has(key: Key): boolean {
    return this.#links.has(key)
  }

  /** The value of a key. The order stays. */
  get(key: Key): Value | undefined {
    return this.#links.get(key)?.value
  }

  /** The value of a key, which becomes the newest entry. */
  renew(key: Key): Value | undefined {
    const link = this.#links.get(key)
    if (link === undefined) return undefined
    this.#moveToNewest(link)
    return link.value
  }

  /** Sets an entry, as the newest, and evicts the oldest ones until the bounds hold. */
  set(key: Key, value: Value): void {
    let link = this.#links.get(key)
    if (link === undefined) {
      link = { key, value, older: null, newer: null }
      this.#links.set(key, link)
      this.#append(link)
    } else {
      this.#weight -= this.#weigh(link.value, key)
      link.value = value
      this.#moveToNewest(link)
    }
    this.#weight += this.#weigh(value, key)
    this.#evict(link)
  }

  delete(key: Key): boolean {
    const link = this.#links.get(key)
    if (link === undefined) return false
    this.#remove(link)
    return true
  }

  clear(): void {
    this.#links.clear()
    this.#oldest = null
    this.#newest = null
    this.#weight = 0
  }

  /** Evicts the oldest entries until the bounds hold, but never `kept`. */
  #evict(kept: Link<Key, Value>): void {
    while (this.#links.size > this.#entriesMax || this.#weight > this.#weightMax) {
      const oldest = this.#oldest
      if (oldest === null || oldest === kept) return
      this.#remove(oldest)
      this.#onEvict(oldest.key, oldest.value)
    }
  }

  #remove(link: Link<Key, Value>): void {
    this.#links.delete(link.key)
    this.#weight -= this.#weigh(link.value, link.key)
    this.#unlink(link)
  }

  #moveToNewest(link: Link<Key, Value>): void {
    if (link === this.#newest) return
    this.#unlink(link)
    this.#append(link)
  }

  #append(link: Link<Key, Value>): void {
    const newest = this.#newest
    link.older = newest
    link.newer = null
    if (newest === null) this.#oldest = link
    else newest.newer = link
    this.#newest = link
  }

  #unlink({ older, newer }: Link<Key, Value>): void {
    if (older === null) this.#oldest = newer
    else older.newer = newer
    if (newer === null) this.#newest = older
    else newer.older = older
  }
}
