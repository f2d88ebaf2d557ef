// In: the slot of every row that changes, and every token that goes, in order. Out: what changed since a position. One ring
// that all followers read: a follower is a number, not a queue. At its maximum the oldest entries are overwritten, and who
// was further behind is told so. Never holds a row: rows are read when they are sent, at their newest.

/** A token that was evicted: its slot is another's by now, so that its entries name it by this. */
export interface Departure {
  mint: string
  /** By a tab's place in TABS: the position at which the token was in the tab last; 0: never. */
  lastIn: readonly number[]
}

/** Marks an entry that names a departure, not a slot. */
const DEPARTED = 2 ** 31

export interface ChangeLogOptions {
  /** Entries held: a power of two. */
  entriesMax: number
  /** Departures held: a power of two; at the maximum the oldest is forgotten, and positions before it with it. */
  departuresMax: number
  /** The position before the first change. */
  firstSeq: number
}

export class ChangeLog {
  /** The position at which this change log began: what a position below it stood for is not known here. */
  readonly firstSeq: number
  #entries: Uint32Array
  #mask: number
  #seq: number
  /** A ring: the n-th departure stands at n modulo its length. */
  #departures: (Departure | undefined)[] = []
  #departureSeqs: Float64Array
  #departureCount = 0
  /** Positions below this are before a departure that was forgotten. */
  #forgottenSeq = 0

  constructor({ entriesMax, departuresMax, firstSeq }: ChangeLogOptions) {
    for (const length of [entriesMax, departuresMax])
      if ((length & (length - 1)) !== 0)
        throw new Error('assertion failed: the rings of the tape are a power of two long')
    this.#entries = new Uint32Array(entriesMax)
    this.#mask = entriesMax - 1
    this.#departureSeqs = new Float64Array(departuresMax)
    this.firstSeq = firstSeq
    this.#seq = firstSeq
  }

  /** Position of the newest change; `firstSeq` before the first. */
  get seq(): number {
    return this.#seq
  }

  /** The lowest position from which `since` still finds every change. */
  get oldestSince(): number {
    return Math.max(this.firstSeq, this.#forgottenSeq, this.#seq - this.#entries.length)
  }

  /** Records a change. @returns its position. */
  append(slot: number): number {
    this.#entries[++this.#seq & this.#mask] = slot
    return this.#seq
  }

  /**
   * Records that a token is gone. The entry at each position where it was in a tab last names the departure from now on:
   * a reader of that tab who comes by there learns of it, as the row that stood for it is no more.
   */
  depart(departure: Departure): void {
    const entry = this.append(0)
    const index = this.#departureCount++ & (this.#departureSeqs.length - 1)
    this.#forgottenSeq = this.#departureSeqs[index]
    this.#departureSeqs[index] = entry
    this.#departures[index] = departure
    const oldest = this.#seq - this.#entries.length
    for (const seq of [entry, ...departure.lastIn])
      if (seq > oldest && seq > this.firstSeq) this.#entries[seq & this.#mask] = DEPARTED + index
  }

  /**
   * Visits the changes after `since`, oldest first, repeats included, until `visit` returns false: the slot that changed,
   * or -1 and what departed.
   */
  since(since: number, visit: (slot: number, seq: number, departed: Departure | null) => boolean): void {
    for (let seq = since + 1; seq <= this.#seq; seq++) {
      const entry = this.#entries[seq & this.#mask]
      const isGoing =
        entry < DEPARTED ? visit(entry, seq, null) : visit(-1, seq, this.#departures[entry - DEPARTED]!)
      if (!isGoing) return
    }
  }
}
