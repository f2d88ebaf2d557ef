// The writing end of the journal: collects events in batches and hands them to the writer. Feeds that can wait do so while the disk is
// behind; what cannot be written in time all the same is lost, counted and told, since the market must never wait for the disk.

import { nodeDisk } from '../lib/disk/disk.ts'
import { within } from '../lib/wait.ts'
import { Waiters } from '../lib/waiters.ts'
import type { MarketEvent } from '../schema/event.ts'
import { BatchEncoder } from './batch/batch-encoder.ts'
import { BATCH_MS_MAX, CLOSE_MS_MAX, SEAL_MS_MAX, STALLED_MS, WAITING_BYTES_MAX } from './limits.ts'
import { findEnd, type JournalEnd } from './reader.ts'
import type { JournalOptions, JournalStats, LostInterval } from './types.ts'
import { BatchWriter } from './writer/batch-writer.ts'

/** Opens the journal for writing. Rejects where its newest segment has a newer format, or the folder cannot be read. */
export async function openJournal(options: JournalOptions): Promise<EventJournal> {
  return new EventJournal(options, await findEnd(options, options.lakeEventNo(), options.disk ?? nodeDisk))
}

const TOO_SLOW = 'the disk is too slow'
const NO_ANSWER = 'the disk does not answer'

/** The writing end. One process owns the folder; the store has the lock. */
export class EventJournal {
  /** Number of the last event appended, in this run or an earlier one; 0: none ever was. */
  lastEventNo: number
  /** Number of the `run` event with which this market began as an empty one. */
  readonly originEventNo: number
  readonly #options: JournalOptions
  readonly #encoder = new BatchEncoder()
  readonly #writer: BatchWriter
  #recorded = 0
  #lost = 0
  /** Too much waits for the disk: events are lost until half of it is written. */
  #isFull = false
  #lostInterval: LostInterval | null = null
  /** How many were lost before that interval. */
  #lostBefore = 0
  #batchTimer: NodeJS.Timeout | null = null
  /** When the first event of the batch in memory was appended, on the monotonic clock. */
  #batchBeganMs = 0
  /** Resolves when the disk has caught up, or stalls; null: nobody waits for room. */
  #room: PromiseWithResolvers<void> | null = null
  #stallTimer: NodeJS.Timeout | null = null
  /** The disk has taken nothing for STALLED_MS: nobody waits for it until it does. */
  #isStalled = false
  #isClosed = false
  /** Those who wait until what was appended is written. */
  readonly #waiters = new Waiters()

  constructor(options: JournalOptions, end: JournalEnd) {
    this.#options = options
    this.lastEventNo = Math.max(end.lastEventNo, options.afterEventNo)
    this.originEventNo = options.originEventNo ?? this.lastEventNo + 1
    this.#writer = new BatchWriter(options, end, this.originEventNo, () => this.#onWritten())
  }

  /** Whether an event that is appended now would be lost. */
  get isLosing(): boolean {
    return this.#isFull || this.#isClosed
  }

  /**
   * Records an event that the engine has taken. Never waits and never throws: what the disk cannot take is counted as lost, and
   * `onLost` is called as soon as recording works again.
   * @param atMs market time in effect, Unix ms
   * @param receivedAtMs time of receipt, Unix ms
   * @param solPriceUsd the engine's price of SOL for an event of this time (`Market.solPriceUsdAt`); NaN: none, or too old
   */
  append(event: MarketEvent, atMs: number, receivedAtMs: number, feed: string, solPriceUsd: number): void {
    if (this.isLosing) {
      this.#lose(event, atMs)
      return
    }
    if (this.#encoder.count === 0) this.#batchBeganMs = this.#options.clock.monotonicMs()
    this.#encoder.add(event, atMs, receivedAtMs, feed, solPriceUsd)
    this.lastEventNo++
    this.#recorded++
    if (this.#encoder.isFull) this.#endBatch()
    else this.#batchTimer ??= setTimeout(() => this.#endBatch(), BATCH_MS_MAX)
  }

  /**
   * To be asked before more is appended, by whoever can wait: null where there is room; otherwise resolves when to ask again. Nobody
   * waits for a disk that refuses, or that has taken nothing for STALLED_MS.
   */
  room(): Promise<void> | null {
    if (!this.#isBehind || this.#isStalled || this.#isClosed || this.#writer.isRefused) return null
    this.#stallTimer ??= setTimeout(() => this.#stall(), STALLED_MS)
    this.#room ??= Promise.withResolvers()
    return this.#room.promise
  }

  /** Resolves when everything appended so far is with the disk, or when it has refused for `timeoutMs`. @returns whether it is */
  written(timeoutMs: number): Promise<boolean> {
    this.#endBatch()
    const eventNo = this.lastEventNo
    return this.#waiters.until(() => this.#writer.writtenEventNo >= eventNo, timeoutMs)
  }

  /**
   * Ends the current segment. Resolves when everything appended so far is durable, with the number of the last durable event,
   * which is lower where the disk has refused for SEAL_MS_MAX. Never rejects.
   */
  async seal(): Promise<{ throughEventNo: number }> {
    const eventNo = this.lastEventNo
    if (!this.#isClosed) await within(SEAL_MS_MAX, this.#sealNow())
    return { throughEventNo: Math.min(eventNo, this.#writer.syncedEventNo) }
  }

  /** Deletes the segments whose events all have numbers up to this one. */
  async removeThrough(eventNo: number): Promise<void> {
    await this.#writer.removeThrough(eventNo)
  }

  stats(): JournalStats {
    const { bytes, isHanging, segmentCount, syncedEventNo, trouble, waitingBytes, writtenEventNo } =
      this.#writer
    const overdue = isHanging ? NO_ANSWER : null
    return {
      recorded: this.#recorded,
      lost: this.#lost,
      segments: segmentCount,
      trouble: trouble ?? (this.#isFull ? TOO_SLOW : overdue),
      bytes,
      waitingBytes,
      unwrittenMs: this.#unwrittenMs,
      writtenEventNo,
      syncedEventNo,
    }
  }

  /** How old the oldest event is that a kill of the process would lose, ms; 0: there is none. */
  get #unwrittenMs(): number {
    const beganMs = this.#writer.oldestBeganMs ?? (this.#encoder.count > 0 ? this.#batchBeganMs : null)
    return beganMs === null ? 0 : Math.max(0, Math.floor(this.#options.clock.monotonicMs() - beganMs))
  }

  /**
   * Writes what waits, in the reserve of the disk too, for at most CLOSE_MS_MAX, seals, and closes. What could not be written counts as
   * lost. @returns whether that ended in time
   */
  async close(): Promise<boolean> {
    this.#writer.useReserve()
    const isSealed = await within(CLOSE_MS_MAX, this.#sealAll())
    this.#isClosed = true
    this.#endWaiting()
    const { lastEventNo } = this
    const notWritten = lastEventNo - this.#writer.writtenEventNo
    this.#lost += notWritten
    // A disk that hangs is not waited for twice.
    await within(isSealed ? CLOSE_MS_MAX : 0, this.#writer.close())
    if (this.#lost > 0)
      this.#options.log.warn({ lost: this.#lost, notWritten }, 'market events of this run are not recorded')
    return isSealed
  }

  /** Also what is appended meanwhile: once the disk has caught up, the gap of what was lost. */
  async #sealAll(): Promise<void> {
    do await this.#sealNow()
    while (this.#writer.writtenEventNo < this.lastEventNo)
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
    this.#writer.add({ firstEventNo, lastEventNo, frame }, this.#batchBeganMs)
    this.#isFull = this.#writer.waitingBytes > this.#waitingBytesMax
  }

  get #isBehind(): boolean {
    return this.#writer.waitingBytes > this.#waitingBytesMax / 2
  }

  get #waitingBytesMax(): number {
    return this.#options.waitingBytesMax ?? WAITING_BYTES_MAX
  }

  #lose(event: MarketEvent, atMs: number): void {
    this.#lost++
    if (this.#lostInterval === null) {
      this.#lostBefore = this.#lost - 1
      const reason = this.#isClosed ? 'the journal is closed' : (this.#writer.trouble ?? TOO_SLOW)
      this.#options.log.error({ reason }, 'market events are being lost')
    }
    const { fromMs, toMs } = this.#lostInterval ?? { fromMs: Infinity, toMs: 0 }
    // A trade belongs to the bar of its own time, which may lie before market time.
    const belongsToMs = event.type === 'trade' ? Math.min(atMs, event.ts) : atMs
    this.#lostInterval = { fromMs: Math.min(fromMs, belongsToMs), toMs: Math.max(toMs, atMs) }
  }

  #onWritten(): void {
    this.#waiters.check()
    this.#isStalled = false
    if (!this.#isBehind) this.#endWaiting()
    else this.#stallTimer?.refresh()
    if (!this.#isFull || this.#isBehind) return
    this.#isFull = false
    const interval = this.#lostInterval
    this.#lostInterval = null
    if (interval === null || this.#isClosed) return
    this.#options.log.error({ lost: this.#lost - this.#lostBefore, ...interval }, 'market events were lost')
    this.#options.onLost(interval)
  }

  #stall(): void {
    this.#isStalled = true
    this.#options.log.warn(
      { waitingBytes: this.#writer.waitingBytes },
      'the disk takes no market events: feeds go on',
    )
    this.#endWaiting()
  }

  #endWaiting(): void {
    if (this.#stallTimer !== null) clearTimeout(this.#stallTimer)
    this.#stallTimer = null
    this.#room?.resolve()
    this.#room = null
  }
}
