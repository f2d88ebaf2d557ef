// The writing end of the journal: collects events in batches and hands them to the writer. What cannot be written in time is lost
// and counted, since the market must never wait for the disk.
import { nodeDisk } from '../lib/disk/disk.ts'
import type { MarketEvent } from '../schema/event.ts'
import { BatchEncoder } from './batch/batch-encoder.ts'
import { BATCH_MS_MAX, CLOSE_MS_MAX, SEAL_MS_MAX, WAITING_BYTES_MAX } from './limits.ts'
import { findEnd, type JournalEnd } from './reader.ts'
import type { EventJournal, JournalOptions, JournalStats, LostInterval } from './types.ts'
import { BatchWriter } from './writer/batch-writer.ts'

/** Opens the journal for writing. Rejects where its newest segment has a newer format, or the folder cannot be read. */
export async function openJournal(options: JournalOptions): Promise<EventJournal> {
  const { disk = nodeDisk, folder, folderId } = options
  return new Journal(options, await findEnd(disk, folder, folderId))
}

class Journal implements EventJournal {
  lastEventNo: number
  readonly originEventNo: number
  readonly #options: JournalOptions
  readonly #encoder = new BatchEncoder()
  readonly #writer: BatchWriter
  #recorded = 0
  #lost = 0
  /** Too much waits for the disk: events are lost until half of it is written. */
  #isFull = false
  #lostInterval: LostInterval | null = null
  #batchTimer: NodeJS.Timeout | null = null
  #isClosed = false
  /** Resolve when everything that was appended before is written. */
  readonly #waiting: { eventNo: number; resolve(): void }[] = []

  constructor(options: JournalOptions, end: JournalEnd) {
    this.#options = options
    this.lastEventNo = Math.max(end.lastEventNo, options.afterEventNo)
    this.originEventNo = options.originEventNo ?? this.lastEventNo + 1
    this.#writer = new BatchWriter(options, end, this.originEventNo, () => this.#onWritten())
  }

  get isLosing(): boolean {
    return this.#isFull || this.#isClosed
  }

  append(event: MarketEvent, atMs: number, receivedAtMs: number, feed: string, solPriceUsd: number): void {
    if (this.isLosing) {
      this.#lose(event, atMs)
      return
    }
    this.#encoder.add(event, atMs, receivedAtMs, feed, solPriceUsd)
    this.lastEventNo++
    this.#recorded++
    if (this.#encoder.isFull) this.#endBatch()
    else this.#batchTimer ??= setTimeout(() => this.#endBatch(), BATCH_MS_MAX)
  }

  async written(timeoutMs: number): Promise<boolean> {
    this.#endBatch()
    const eventNo = this.lastEventNo
    if (this.#writer.writtenEventNo >= eventNo) return true
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#waiting.push({ eventNo, resolve })
    const timer = setTimeout(resolve, timeoutMs)
    await promise
    clearTimeout(timer)
    return this.#writer.writtenEventNo >= eventNo
  }

  async seal(): Promise<{ throughEventNo: number }> {
    const eventNo = this.lastEventNo
    if (!this.#isClosed) await within(SEAL_MS_MAX, this.#sealNow())
    return { throughEventNo: Math.min(eventNo, this.#writer.syncedEventNo) }
  }

  async removeThrough(eventNo: number): Promise<void> {
    await this.#writer.removeThrough(eventNo)
  }

  stats(): JournalStats {
    const { bytes, segmentCount, syncedEventNo, trouble, waitingBytes, writtenEventNo } = this.#writer
    return {
      ...{ recorded: this.#recorded, lost: this.#lost, segments: segmentCount },
      trouble: trouble ?? (this.#isFull ? 'the disk is too slow' : null),
      ...{ bytes, waitingBytes, writtenEventNo, syncedEventNo },
    }
  }

  async close(): Promise<void> {
    await within(CLOSE_MS_MAX, this.#sealNow())
    this.#isClosed = true
    await within(CLOSE_MS_MAX, this.#writer.close())
    const { lastEventNo } = this
    const notWritten = lastEventNo - this.#writer.writtenEventNo
    if (this.#lost + notWritten > 0)
      this.#options.log.warn({ lost: this.#lost, notWritten }, 'market events of this run are not recorded')
  }

  async #sealNow(): Promise<void> {
    this.#endBatch()
    await this.#writer.endSegment()
    await this.#writer.sync()
  }

  #endBatch(): void {
    if (this.#batchTimer !== null) clearTimeout(this.#batchTimer)
    this.#batchTimer = null
    const { count } = this.#encoder
    if (count === 0) return
    const { lastEventNo } = this
    const firstEventNo = lastEventNo - count + 1
    const frame = this.#encoder.encode(firstEventNo, this.#writer.syncedEventNo)
    this.#writer.add({ firstEventNo, lastEventNo, frame })
    this.#isFull = this.#writer.waitingBytes > this.#waitingBytesMax
  }

  get #waitingBytesMax(): number {
    return this.#options.waitingBytesMax ?? WAITING_BYTES_MAX
  }

  #lose(event: MarketEvent, atMs: number): void {
    this.#lost++
    const { fromMs, toMs } = this.#lostInterval ?? { fromMs: Infinity, toMs: 0 }
    // A trade belongs to the bar of its own time, which may lie before market time.
    const belongsToMs = event.type === 'trade' ? Math.min(atMs, event.ts) : atMs
    this.#lostInterval = { fromMs: Math.min(fromMs, belongsToMs), toMs: Math.max(toMs, atMs) }
  }

  #onWritten(): void {
    const { writtenEventNo, waitingBytes } = this.#writer
    while ((this.#waiting[0]?.eventNo ?? Infinity) <= writtenEventNo) this.#waiting.shift()?.resolve()
    if (!this.#isFull || waitingBytes > this.#waitingBytesMax / 2) return
    this.#isFull = false
    const interval = this.#lostInterval
    this.#lostInterval = null
    if (interval !== null && !this.#isClosed) this.#options.onLost(interval)
  }
}

/** Resolves when the work is done, or after the time. */
async function within(timeoutMs: number, work: Promise<unknown>): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, timeoutMs)
  await Promise.race([work, promise])
  clearTimeout(timer)
}
