// What the writer and the readers of the journal take and give.
import type { Clock } from '../lib/clock.ts'
import type { Disk } from '../lib/disk/disk.ts'
import type { SegmentDamage } from '../lib/segments/types.ts'
import type { EngineSettings } from '../schema/event.ts'
import type { EventBatch } from './event-batch.ts'

export interface ReadJournalOptions {
  /** The last event wanted; the caller knows that it was recorded. Batches are never divided: later events may come with it. */
  throughEventNo?: number
  /** Events up to this one are known to have been durable, whatever the segments say. */
  knownEventNo?: number
  /** Identity of the data folder (store.json), so that segments of another one are not read; null: any. */
  folderId?: string | null
  /** Called for each damaged part, in the order in which they are found. */
  onDamage?(damage: SegmentDamage): void
}

/**
 * Reads whole batches in order, beginning with the first that has an event behind `afterEventNo`: earlier events of that batch
 * are to be skipped by the caller. What was not written completely at the end of the newest segment is left out silently;
 * everything else that is not whole goes to `onDamage`, and reading goes on behind it. Rejects with SegmentError for a segment
 * of a newer format, and for one that is removed meanwhile.
 */
export type ReadJournal = (
  folder: string,
  afterEventNo: number,
  options?: ReadJournalOptions,
) => AsyncIterable<EventBatch>

/** An interval of market time, Unix ms, of which events were not recorded. */
export interface LostInterval {
  fromMs: number
  toMs: number
}

/** The part of a logger that the journal uses. */
export interface JournalLog {
  info(details: object, message: string): void
  warn(details: object, message: string): void
  error(details: object, message: string): void
}

export interface JournalOptions {
  folder: string
  /** Identity of the data folder. */
  folderId: string
  runId: string
  /** What the engine of this run depends on besides the events. */
  settings: EngineSettings
  /** Number of the `run` event with which this market began as an empty one; null: it begins with the next event. */
  originEventNo: number | null
  simulated: boolean
  /** Numbers up to this one are used already, by checkpoints or by the lake. */
  afterEventNo: number
  clock: Clock
  log: JournalLog
  /** The last event that the lake has. */
  lakeEventNo(): number
  /** Where it is noted how far the journal went; see lib/disk/high-water-mark.ts. Default: nowhere. */
  markPath?: string | undefined
  /**
   * Whether the disk has room to record more, with so many bytes that the lake does not have. Nothing is written otherwise.
   * @param usesReserve of what is free nothing has to stay free: false only where the folder may not be written at all
   */
  mayRecord(unflushedBytes: number, usesReserve: boolean): boolean
  /** Called for each batch, in order, as soon as a kill of the process would not lose it. Its bytes must not be changed. */
  onBatch?(batch: WrittenBatch): void
  /** Events of this interval were lost and recording works again. May append. */
  onLost(interval: LostInterval): void
  /** For tests. */
  disk?: Disk
  segmentBytes?: number
  bytesMax?: number
  waitingBytesMax?: number | undefined
}

/** Consecutive events as the bytes that the journal has of them. */
export interface WrittenBatch {
  firstEventNo: number
  lastEventNo: number
  frame: Buffer
}

export interface JournalStats {
  /** Events appended in this run, and those that could not be recorded. */
  recorded: number
  lost: number
  /** Why events are not recorded, or not synced, at present; null while they are. */
  trouble: string | null
  segments: number
  bytes: number
  /** Bytes in memory that wait for the disk. */
  waitingBytes: number
  /** Age of the oldest event that a kill of the process would lose, ms; 0: there is none. */
  unwrittenMs: number
  /** Number of the newest event that a crash of the process would not lose, and of the newest that a power cut would not. */
  writtenEventNo: number
  syncedEventNo: number
}
