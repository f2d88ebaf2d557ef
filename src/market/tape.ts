// In: the slot of every row that changes, in order. Out: which rows changed since a sequence number. One ring that all
// followers read: a follower is a number, not a queue. At its maximum the oldest entries are overwritten, and who was
// further behind is told so. Never holds a row: rows are read when they are sent, at their newest.

export class Tape {
  #slots: Uint32Array
  #mask: number
  #seq = 0

  /** @param entriesMax a power of two. */
  constructor(entriesMax: number) {
    if ((entriesMax & (entriesMax - 1)) !== 0)
      throw new Error('assertion failed: the tape is a power of two long')
    this.#slots = new Uint32Array(entriesMax)
    this.#mask = entriesMax - 1
  }

  /** Number of the newest change; 0 before the first. */
  get seq(): number {
    return this.#seq
  }

  /** The lowest number from which `since` still finds every change. */
  get oldestSince(): number {
    return Math.max(0, this.#seq - this.#slots.length)
  }

  /** Records a change. @returns its number. */
  append(slot: number): number {
    this.#slots[++this.#seq & this.#mask] = slot
    return this.#seq
  }

  /** Visits the slots that changed after `since`, oldest first, repeats included, until `visit` returns false. */
  since(since: number, visit: (slot: number, seq: number) => boolean): void {
    for (let seq = since + 1; seq <= this.#seq; seq++) {
      if (!visit(this.#slots[seq & this.#mask], seq)) return
    }
  }
}
