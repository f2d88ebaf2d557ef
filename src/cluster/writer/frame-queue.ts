// Batches that wait for the bus, oldest first. Beyond a bound the oldest are dropped: they are in the journal, and are read back from
// there.
import type { WrittenBatch } from '../../journal/types.ts'

export class FrameQueue {
  /** Of all frames that wait. */
  bytes = 0
  readonly #bytesMax: number
  readonly #batches: WrittenBatch[] = []

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  /** The first event that is here; Infinity where there is none. */
  get firstEventNo(): number {
    return this.#batches[0]?.firstEventNo ?? Infinity
  }

  add(batch: WrittenBatch): void {
    this.#batches.push(batch)
    this.bytes += batch.frame.length
    // The newest one stays, however large it is.
    while (this.bytes > this.#bytesMax && this.#batches.length > 1) this.#drop()
  }

  /** The batches behind an event, as many as fit. They stay here. At least one, if there is one. */
  after(eventNo: number, countMax: number, bytesMax: number): WrittenBatch[] {
    const taken: WrittenBatch[] = []
    let bytes = 0
    for (const batch of this.#batches) {
      if (batch.lastEventNo <= eventNo) continue
      bytes += batch.frame.length
      if (taken.length === countMax || (bytes > bytesMax && taken.length > 0)) break
      taken.push(batch)
    }
    return taken
  }

  /** Forgets the batches that have no event behind this one. */
  dropThrough(eventNo: number): void {
    while ((this.#batches[0]?.lastEventNo ?? Infinity) <= eventNo) this.#drop()
  }

  #drop(): void {
    this.bytes -= this.#batches.shift()?.frame.length ?? 0
  }
}
