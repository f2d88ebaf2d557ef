// Batches that wait for the bus, oldest first. Beyond a bound the oldest are dropped: they are in the journal, and are read back from
// there.
import type { WrittenBatch } from '../../journal/types.ts'

export class FrameQueue {
  /** Of all frames that wait. */
  bytes = 0
  readonly #bytesMax: number
  #batches: WrittenBatch[] = []
  /** Those before this index are gone; they are cut off from time to time. */
  #from = 0

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  /** The first event that is here; Infinity where there is none. */
  get firstEventNo(): number {
    return this.#batches[this.#from]?.firstEventNo ?? Infinity
  }

  add(batch: WrittenBatch): void {
    this.#batches.push(batch)
    this.bytes += batch.frame.length
    // The newest one stays, however large it is.
    while (this.bytes > this.#bytesMax && this.#batches.length - this.#from > 1) this.#drop()
  }

  /** The batches behind an event, as many as fit. They stay here. At least one, if there is one. */
  after(eventNo: number, countMax: number, bytesMax: number): WrittenBatch[] {
    const taken: WrittenBatch[] = []
    let bytes = 0
    for (let index = this.#from; index < this.#batches.length && taken.length < countMax; index++) {
      const batch = this.#batches[index]
      if (batch === undefined || batch.lastEventNo <= eventNo) continue
      bytes += batch.frame.length
      if (bytes > bytesMax && taken.length > 0) break
      taken.push(batch)
    }
    return taken
  }

  /** Forgets the batches that have no event behind this one. */
  dropThrough(eventNo: number): void {
    while ((this.#batches[this.#from]?.lastEventNo ?? Infinity) <= eventNo) this.#drop()
  }

  #drop(): void {
    this.bytes -= this.#batches[this.#from]?.frame.length ?? 0
    this.#from++
    if (2 * this.#from < this.#batches.length) return
    this.#batches = this.#batches.slice(this.#from)
    this.#from = 0
  }
}
