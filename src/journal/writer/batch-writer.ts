// Writes batches to segments, one write at a time, while what was written is synced in the background. A disk that refuses is tried
// again; meanwhile batches wait, up to a bound that the journal watches.

import { Backoff } from '../../lib/backoff.ts'
import type { Clock } from '../../lib/clock.ts'
import { type Disk, nodeDisk } from '../../lib/disk/disk.ts'
import { HighWaterMark } from '../../lib/disk/high-water-mark.ts'
import { errorMessage } from '../../lib/error-text.ts'
import { whatRefused } from '../../lib/process/open-files.ts'
import { SEGMENT_BYTES } from '../../lib/segments/limits.ts'
import { stateAfter } from '../../lib/states.ts'
import { Pause } from '../../lib/wait.ts'
import {
  JOURNAL_BYTES_MAX,
  LOOK_EVERY_MS,
  RETRY_MS,
  RETRY_MS_MAX,
  SEGMENT_MS,
  STALLED_MS,
  SYNC_EVERY_MS,
  WRITE_BYTES_MAX,
} from '../limits.ts'
import type { JournalEnd } from '../reader.ts'
import type { JournalLog, JournalOptions, WrittenBatch } from '../types.ts'
import { ClosedSegments } from './closed-segments.ts'
import { createSegment, type SegmentFile } from './segment-file.ts'
import { SEGMENT_STATES } from './segment-states.ts'

interface QueuedBatch {
  batch: WrittenBatch
  /** When its first event was appended, on the monotonic clock. */
  beganMs: number
}
/** Written together. */
type Batches = [WrittenBatch, ...WrittenBatch[]]
type QueuedItem = QueuedBatch | { ended: Promise<void>; onEnded(): void }

export class BatchWriter {
  /** Bytes of batches that wait. */
  waitingBytes = 0
  /** The last event that a crash of the process would not lose, and the last that a power cut would not. */
  writtenEventNo: number
  syncedEventNo: number
  readonly #options: JournalOptions
  readonly #disk: Disk
  readonly #clock: Clock
  readonly #log: JournalLog
  readonly #closed: ClosedSegments
  readonly #mark: HighWaterMark | null
  readonly #originEventNo: number
  readonly #onWritten: () => void
  readonly #queue: QueuedItem[] = []
  #open: SegmentFile | null = null
  /** Why nothing is written at present; null while batches are. */
  #trouble: string | null = null
  #syncTrouble: string | null = null
  /** When the write, and the sync, that run began, on the monotonic clock; null: none runs. */
  #writeBeganMs: number | null = null
  #syncBeganMs: number | null = null
  readonly #backoff = new Backoff(RETRY_MS, RETRY_MS_MAX)
  #isPumping = false
  /** Whether nothing of the disk has to stay free any more. */
  #usesReserve = false
  #isClosed = false
  #syncing: Promise<void> | null = null
  readonly #pause = new Pause()
  readonly #syncTimer: NodeJS.Timeout

  /** @param onWritten called after each group of batches that are written together */
  constructor(options: JournalOptions, end: JournalEnd, originEventNo: number, onWritten: () => void) {
    const { disk = nodeDisk, clock, folder, folderId, log, markPath } = options
    this.#options = options
    this.#mark = markPath === undefined ? null : new HighWaterMark(disk, markPath, folderId)
    this.#disk = disk
    this.#clock = clock
    this.#log = log
    this.#onWritten = onWritten
    this.#originEventNo = originEventNo
    this.#closed = new ClosedSegments({
      disk,
      folder,
      end,
      onUnreadable: (error) =>
        log.error({ error: errorMessage(error) }, 'a part of the journal can neither be synced nor read'),
    })
    this.writtenEventNo = Math.max(end.lastEventNo, options.afterEventNo)
    // What others have beyond the journal is durable, although the journal lacks it. Else it would look like a gap behind which nothing
    // counts: a power cut may bring back a deleted segment without the one behind it.
    const isDurable = end.lastEventNo <= end.syncedEventNo || end.lastEventNo < options.afterEventNo
    this.syncedEventNo = isDurable ? this.writtenEventNo : end.syncedEventNo
    this.#syncTimer = setInterval(() => this.#syncIfNeeded(), SYNC_EVERY_MS)
    this.#syncTimer.unref()
  }

  /** Why events are not written, or not synced; null while they are. */
  get trouble(): string | null {
    return this.#trouble ?? this.#syncTrouble
  }

  /** Whether a write or a sync does not end: a disk that hangs refuses nothing. */
  get isHanging(): boolean {
    const sinceMs = Math.min(this.#writeBeganMs ?? Infinity, this.#syncBeganMs ?? Infinity)
    return this.#clock.monotonicMs() - sinceMs >= STALLED_MS
  }

  get bytes(): number {
    return this.#closed.bytes + (this.#open?.bytes ?? 0)
  }

  get segmentCount(): number {
    return this.#closed.count + (this.#open === null ? 0 : 1)
  }

  /** Whether the disk, or its lack of room, keeps batches from being written at present. */
  get isRefused(): boolean {
    return this.#trouble !== null
  }

  /** When the oldest event that waits was appended, on the monotonic clock; null: none waits. */
  get oldestBeganMs(): number | null {
    for (const item of this.#queue) if ('batch' in item) return item.beganMs
    return null
  }

  /** @param beganMs when its first event was appended, on the monotonic clock */
  add(batch: WrittenBatch, beganMs: number): void {
    this.waitingBytes += batch.frame.length
    this.#queue.push({ batch, beganMs })
    void this.#pump()
  }

  /** Ends the open segment once everything that waits is written. */
  endSegment(): Promise<void> {
    const last = this.#queue.at(-1)
    if (last !== undefined && 'ended' in last) return last.ended
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#queue.push({ ended: promise, onEnded: resolve })
    void this.#pump()
    return promise
  }

  /** Makes durable what has been written so far, if the disk does. Never rejects. */
  async sync(): Promise<void> {
    await this.#syncing
    this.#syncing ??= this.#syncNow()
    await this.#syncing
  }

  removeThrough(eventNo: number): Promise<void> {
    return this.#closed.removeThrough(eventNo)
  }

  /** What waits is the last: it may use the room that is kept for others, and is tried at once. */
  useReserve(): void {
    this.#usesReserve = true
    this.#pause.end()
  }

  /** Nothing is written afterwards; what waits is given up. */
  async close(): Promise<void> {
    this.#isClosed = true
    clearInterval(this.#syncTimer)
    this.#pause.end()
    await this.#syncing
    await this.#mark?.close()
    await this.#closed.close()
    await this.#open?.file.close().catch(() => undefined)
  }

  /** Writes what waits. Never rejects. One call does the work at a time. */
  async #pump(): Promise<void> {
    if (this.#isPumping) return
    this.#isPumping = true
    for (let item = this.#queue[0]; item !== undefined && !this.#isClosed; item = this.#queue[0]) {
      const reason = 'ended' in item ? null : this.#whyNotNow()
      if (reason !== null) {
        this.#noteTrouble(reason)
        await this.#pause.forMs(LOOK_EVERY_MS)
        continue
      }
      this.#writeBeganMs = this.#clock.monotonicMs()
      await this.#writeItem(item)
      this.#writeBeganMs = null
    }
    this.#isPumping = false
  }

  async #writeItem(item: QueuedItem): Promise<void> {
    let written: Batches
    try {
      if ('ended' in item) {
        this.#setOpenAside()
        item.onEnded()
        this.#queue.shift()
        return
      }
      written = this.#nextBatches(item.batch)
      await this.#writeBatches(written)
    } catch (error) {
      this.#setOpenAside()
      this.#noteTrouble(`${whatRefused(error, 'the disk refuses to write')}: ${errorMessage(error)}`)
      await this.#pause.forMs(this.#backoff.nextMs())
      return
    }
    this.#noteTrouble(null)
    this.#backoff.reset()
    for (const batch of written) {
      this.#queue.shift()
      this.waitingBytes -= batch.frame.length
      this.#options.onBatch?.(batch)
    }
    this.#onWritten()
  }

  /**
   * The first batch that waits, and those behind it that are written with it: a thread that has much to do comes back to a write seldom.
   * A segment begins with one batch, and ends with the one that fills it.
   */
  #nextBatches(first: WrittenBatch): Batches {
    const batches: Batches = [first]
    if (this.#open === null) return batches
    const room = (this.#options.segmentBytes ?? SEGMENT_BYTES) - this.#open.bytes
    const bytesMax = Math.min(WRITE_BYTES_MAX, room)
    let bytes = first.frame.length
    for (const item of this.#queue.values().drop(1)) {
      if ('ended' in item || bytes >= bytesMax) break
      batches.push(item.batch)
      bytes += item.batch.frame.length
    }
    return batches
  }

  async #writeBatches(batches: Batches): Promise<void> {
    const [batch] = batches
    const open = this.#open
    const nowMs = this.#clock.monotonicMs()
    if (open !== null) await open.append(batches)
    else {
      const { folder, folderId, runId, simulated, settings } = this.#options
      const originEventNo = this.#originEventNo
      await this.#disk.makeFolder(folder)
      await this.#closed.removeVoid()
      const { syncedEventNo } = this
      const header = { folderId, runId, originEventNo, simulated, settings, syncedEventNo }
      this.#open = await createSegment(this.#disk, folder, header, batch, nowMs)
    }
    this.writtenEventNo = batches.at(-1)!.lastEventNo
    // What an earlier process left becomes durable beside what is written, and soon: what follows is of use only with it.
    if (open === null && this.syncedEventNo < batch.firstEventNo - 1) this.#syncIfNeeded()
    const { bytes = 0, openedMs = nowMs } = this.#open ?? {}
    if (bytes >= (this.#options.segmentBytes ?? SEGMENT_BYTES) || nowMs - openedMs >= SEGMENT_MS)
      this.#setOpenAside()
  }

  /** To be called while nothing is being written to it. */
  #setOpenAside(): void {
    const open = this.#open
    if (open === null) return
    const { name, lastEventNo, bytes, file } = open
    const state = stateAfter(SEGMENT_STATES, open.state, 'ended')
    this.#closed.add({ name, lastEventNo, bytes, file, state })
    this.#open = null
  }

  #whyNotNow(): string | null {
    const { lakeEventNo, mayRecord, bytesMax = JOURNAL_BYTES_MAX } = this.#options
    const unflushedBytes = this.#closed.bytesBehind(lakeEventNo()) + (this.#open?.bytes ?? 0)
    if (!mayRecord(unflushedBytes, this.#usesReserve)) return 'the disk is nearly full'
    if (this.bytes >= bytesMax && !this.#usesReserve)
      return 'the journal has its largest size: the lake or the checkpoints are far behind'
    return null
  }

  #noteTrouble(trouble: string | null): void {
    if (trouble === null && this.#trouble !== null) this.#log.info({}, 'market events are recorded again')
    else if (trouble !== null && this.#trouble === null)
      this.#log.error({ reason: trouble }, 'market events are not being recorded')
    this.#trouble = trouble
  }

  #syncIfNeeded(): void {
    if (this.syncedEventNo < this.writtenEventNo) this.#syncing ??= this.#syncNow()
  }

  async #syncNow(): Promise<void> {
    const writtenEventNo = this.writtenEventNo
    const open = this.#open
    this.#syncBeganMs = this.#clock.monotonicMs()
    try {
      await this.#closed.syncFiles()
      if (open !== null) await this.#syncOpen(open)
      await this.#disk.syncFolder(this.#options.folder)
      await this.#closed.becomeDurable()
      this.syncedEventNo = Math.max(this.syncedEventNo, writtenEventNo)
      this.#mark?.note(this.syncedEventNo)
      if (this.#syncTrouble !== null) this.#log.info({}, 'the journal is synced again')
      this.#syncTrouble = null
    } catch (error) {
      if (this.#syncTrouble === null)
        this.#log.error({ error: errorMessage(error) }, 'the journal cannot be synced; trying again')
      this.#syncTrouble = `the journal cannot be synced: ${errorMessage(error)}`
    } finally {
      this.#syncing = null
      this.#syncBeganMs = null
    }
  }

  async #syncOpen(open: SegmentFile): Promise<void> {
    if (open.state === 'openFailed') throw new Error('it has to be written anew')
    try {
      await open.file.sync()
    } catch (error) {
      if (this.#open === open) open.state = stateAfter(SEGMENT_STATES, open.state, 'syncFailed')
      else this.#closed.markFailed(open.name)
      void this.endSegment()
      throw error
    }
  }
}
