// The slots of all rows that changed, in order, in one ring that all followers read: a follower is a position in it, not a
// queue of its own. It holds no rows; they are read when they are sent.
import { assert } from '../../lib/assert.ts'

/** A token that was evicted. Its slot may belong to another by now, so it is named by its mint. */
export interface Eviction {
  mint: string
  /** By a tab's index in TABS: the position at which the token was in the tab last; 0: never. */
  lastSeqByTab: readonly number[]
}

/** An entry from here on is an eviction's index plus this; a lower one is a slot. */
const EVICTION = 2 ** 31

export interface ChangeLogOptions {
  /** Changes held, a power of two; at the maximum the oldest is overwritten. */
  entriesMax: number
  /** Evictions held, a power of two; at the maximum the oldest is forgotten, and with it all positions before it. */
  evictionsMax: number
  /** The position before the first change. */
  firstSeq: number
}

const isPowerOfTwo = (length: number): boolean => (length & (length - 1)) === 0

export class ChangeLog {
  #firstSeq: number
  readonly #entries: Uint32Array
  readonly #mask: number
  #seq: number
  /** A ring, as long as `#evictionSeqs`. */
  readonly #evictions: Eviction[] = []
  readonly #evictionSeqs: Float64Array
  #evictionCount = 0
  /** Positions below this are before an eviction that was forgotten. */
  #forgottenSeq = 0

  constructor({ entriesMax, evictionsMax, firstSeq }: ChangeLogOptions) {
    assert(
      isPowerOfTwo(entriesMax) && isPowerOfTwo(evictionsMax),
      'the rings of the change log are powers of two',
    )
    this.#entries = new Uint32Array(entriesMax)
    this.#mask = entriesMax - 1
    this.#evictionSeqs = new Float64Array(evictionsMax)
    this.#firstSeq = firstSeq
    this.#seq = firstSeq
  }

  /** The position at which this log began; what a lower one stood for is not known here. */
  get firstSeq(): number {
    return this.#firstSeq
  }

  /** Position of the newest change; `firstSeq` before the first. */
  get seq(): number {
    return this.#seq
  }

  /** The lowest position from which `since` still finds every change. */
  get oldestSince(): number {
    return Math.max(this.#firstSeq, this.#forgottenSeq, this.#seq - this.#entries.length)
  }

  /** A run begins: all changes are forgotten. The next one gets a position above `firstSeq`, and above all that were given. */
  beginAnew(firstSeq: number): void {
    this.#seq = Math.max(this.#seq, firstSeq)
    this.#firstSeq = this.#seq
  }

  /** Records a change. @returns its position. */
  append(slot: number): number {
    this.#entries[++this.#seq & this.#mask] = slot
    return this.#seq
  }

  /**
   * Records that a token was evicted. The entries at its last position in each tab name the eviction from now on, since the row
   * they stood for is gone: a follower of that tab who reads such an entry is told of the eviction instead.
   */
  recordEviction(eviction: Eviction): void {
    const evictedSeq = this.append(0)
    const index = this.#evictionCount++ & (this.#evictionSeqs.length - 1)
    this.#forgottenSeq = this.#evictionSeqs[index]
    this.#evictionSeqs[index] = evictedSeq
    this.#evictions[index] = eviction
    const oldest = this.#seq - this.#entries.length
    for (const seq of [evictedSeq, ...eviction.lastSeqByTab])
      if (seq > oldest && seq > this.#firstSeq) this.#entries[seq & this.#mask] = EVICTION + index
  }

  /**
   * Visits the changes after `since`, oldest first, repeats included, until `visit` returns false. A change is a slot and no
   * eviction, or an eviction and -1.
   */
  since(since: number, visit: (slot: number, seq: number, eviction: Eviction | null) => boolean): void {
    for (let seq = since + 1; seq <= this.#seq; seq++) {
      const entry = this.#entries[seq & this.#mask]
      const isGoing =
        entry < EVICTION ? visit(entry, seq, null) : visit(-1, seq, this.#evictions[entry - EVICTION])
      if (!isGoing) return
    }
  }
}
