// Values that end by their age, in the order of their commits: the oldest end first. Nothing looks them up by a key, so that adding
// one costs no entry of a map.
import { assert } from '../../lib/assert.ts'
import { NumberList, type ValueList } from './value-list.ts'

/** Shorter queues are not compacted. */
const COMPACT_MIN = 64

export class AgingQueue<Value> {
  readonly #values: ValueList<Value>
  /** When the commit of each value became durable, Unix ms. */
  readonly #knownAtMs = new NumberList()
  /** All values before this index have ended. */
  #first = 0
  #length = 0
  /** The values from this index on are not saved; null where the queue is not saved at all. */
  #savedTo: number | null

  constructor(isSaved: boolean, values: ValueList<Value>) {
    this.#values = values
    this.#savedTo = isSaved ? 0 : null
  }

  get size(): number {
    return this.#length - this.#first
  }

  push(knownAtMs: number, value: Value): void {
    if (this.#first > COMPACT_MIN && this.#first > this.size) this.#compact()
    this.#values.push(value)
    this.#knownAtMs.push(knownAtMs)
    this.#length++
  }

  /** Deletes the oldest values while they were known by `endedAtMs`, or while there are more than `entriesMax`. */
  deleteEnded(
    endedAtMs: number,
    entriesMax: number,
    onDelete: ((knownAtMs: number, value: Value) => void) | null = null,
  ): void {
    for (; this.#first < this.#length; this.#first++) {
      const knownAtMs = this.#knownAtMs.at(this.#first)
      if (knownAtMs > endedAtMs && this.size <= entriesMax) return
      onDelete?.(knownAtMs, this.#values.at(this.#first))
      this.#values.release(this.#first)
    }
  }

  *entries(): IterableIterator<[knownAtMs: number, value: Value]> {
    yield* this.#entriesFrom(this.#first)
  }

  /** Adds saved entries. They do not count as new. */
  load(entries: Iterable<readonly [number, Value]>): void {
    for (const [knownAtMs, value] of entries) this.push(knownAtMs, value)
    if (this.#savedTo !== null) this.#savedTo = this.#length
  }

  /** The entries that are new since the last call and have not ended. Read them before the queue changes again. */
  takeNew(): Iterable<[knownAtMs: number, value: Value]> {
    assert(this.#savedTo !== null, 'this state is not saved')
    const from = Math.max(this.#savedTo, this.#first)
    this.#savedTo = this.#length
    return this.#entriesFrom(from)
  }

  /** Drops all entries. */
  clear(): void {
    this.#values.keep([])
    this.#knownAtMs.keep([])
    this.#first = 0
    this.#length = 0
    if (this.#savedTo !== null) this.#savedTo = 0
  }

  *#entriesFrom(from: number): IterableIterator<[knownAtMs: number, value: Value]> {
    for (let index = from; index < this.#length; index++)
      yield [this.#knownAtMs.at(index), this.#values.at(index)]
  }

  /** Gives back the places of values that have ended. */
  #compact(): void {
    const first = this.#first
    const kept = Array.from({ length: this.size }, (_, index) => first + index)
    this.#values.keep(kept)
    this.#knownAtMs.keep(kept)
    if (this.#savedTo !== null) this.#savedTo = Math.max(0, this.#savedTo - first)
    this.#length -= first
    this.#first = 0
  }
}
