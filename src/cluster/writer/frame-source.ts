// The written batches behind any event: from memory as long as they are there, else from the journal's files.
import { readFrames } from '../../journal/reader.ts'
import type { WrittenBatch } from '../../journal/types.ts'
import { TURN_BYTES_MAX, TURN_MESSAGES_MAX, WAITING_BYTES_MAX } from '../limits.ts'
import { FrameQueue } from './frame-queue.ts'

export interface FrameSourceOptions {
  journalFolder: string
  /** Identity of the data folder. */
  folderId: string
  waitingBytesMax?: number | undefined
}

export class FrameSource {
  /** The last event that a kill of this process would not lose. */
  writtenEventNo = 0
  readonly #options: FrameSourceOptions
  readonly #queue: FrameQueue
  /** What is being read from the journal, and the event behind which it goes on. */
  #reading: { frames: AsyncGenerator<WrittenBatch, void>; afterEventNo: number } | null = null

  constructor(options: FrameSourceOptions) {
    this.#options = options
    this.#queue = new FrameQueue(options.waitingBytesMax ?? WAITING_BYTES_MAX)
  }

  get waitingBytes(): number {
    return this.#queue.bytes
  }

  add(batch: WrittenBatch): void {
    this.#queue.add(batch)
    this.writtenEventNo = batch.lastEventNo
  }

  /** These are on the bus. */
  dropThrough(eventNo: number): void {
    this.#queue.dropThrough(eventNo)
  }

  /** Some batches behind an event, in order; none where there are none yet. Rejects where the journal cannot be read. */
  async after(eventNo: number): Promise<WrittenBatch[]> {
    if (eventNo >= this.writtenEventNo) return []
    if (this.#queue.firstEventNo <= eventNo + 1) {
      await this.stopReading()
      return this.#queue.after(eventNo, TURN_MESSAGES_MAX, TURN_BYTES_MAX)
    }
    return this.#read(eventNo)
  }

  /** Closes the file that is being read. */
  async stopReading(): Promise<void> {
    const reading = this.#reading
    this.#reading = null
    await reading?.frames.return()
  }

  async #read(eventNo: number): Promise<WrittenBatch[]> {
    if (this.#reading?.afterEventNo !== eventNo) await this.stopReading()
    const reading = this.#reading ?? { frames: this.#open(eventNo), afterEventNo: eventNo }
    this.#reading = reading
    const batches: WrittenBatch[] = []
    for (let bytes = 0; bytes < TURN_BYTES_MAX && batches.length < TURN_MESSAGES_MAX; ) {
      const next = await reading.frames.next()
      if (next.done === true) {
        this.#reading = null
        break
      }
      batches.push(next.value)
      bytes += next.value.frame.length
      reading.afterEventNo = next.value.lastEventNo
    }
    if (batches.length > 0) return batches
    // The files have none of the events before those in memory, or the last ones are lost with them.
    return this.#queue.after(eventNo, TURN_MESSAGES_MAX, TURN_BYTES_MAX)
  }

  #open(eventNo: number): AsyncGenerator<WrittenBatch, void> {
    const { journalFolder, folderId } = this.#options
    const throughEventNo = Math.min(this.writtenEventNo, this.#queue.firstEventNo - 1)
    return readFrames(journalFolder, eventNo, { folderId, throughEventNo })
  }
}
