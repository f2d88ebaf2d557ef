// What the journal offers: a writer, in the server, and a reader, in any process.
import type { MarketEvent } from '../schema/event.ts'
import type { EventBatch } from './event-batch.ts'

/** Numbers of events, both included. */
export interface EventRange {
  from: number
  to: number
}

export interface JournalDamage {
  /** `unreadable`: the disk refuses to read it; `missing`: events of a deleted or truncated file; `invalid_bytes`: other content
   *  than was written; `foreign_file`: not a segment of this journal. */
  kind: 'unreadable' | 'missing' | 'invalid_bytes' | 'foreign_file'
  /** Name in the folder; null where a whole file is missing. */
  file: string | null
  fromByte: number
  toByte: number
  /** The events that are lost by it; null: none. */
  missing: EventRange | null
}

export interface ReadJournalOptions {
  /** The last event wanted. Batches are never divided: later events may come with it. */
  throughEventNo?: number
  /** Called for each damaged part, in the order in which they are found. */
  onDamage?(damage: JournalDamage): void
}

/**
 * Reads whole batches in order, beginning with the first that has an event behind `afterEventNo`: earlier events of that batch
 * are to be skipped by the caller. What was not written completely at the end of the newest segment is left out silently;
 * everything else that is not whole goes to `onDamage`, and reading goes on behind it. Rejects with JournalError for a segment
 * of a newer format, and for one that is removed meanwhile.
 */
export type ReadJournal = (
  folder: string,
  afterEventNo: number,
  options?: ReadJournalOptions,
) => AsyncIterable<EventBatch>

export interface JournalStats {
  /** Events appended in this run, and those that could not be recorded. */
  recorded: number
  lost: number
  /** Whether events are being recorded at present; false while the disk is slow, full or failing. */
  isRecording: boolean
  /** Why not; null while they are. */
  reason: string | null
  segments: number
  bytes: number
  /** Bytes in memory that wait for the disk. */
  waitingBytes: number
  /** Number of the newest event that a crash of the process would not lose, and one that a power cut would not. */
  writtenEventNo: number
  syncedEventNo: number
}

/** The writing end. One process owns the folder; the store has the lock. */
export interface EventJournal {
  /**
   * Records an event that the engine has taken. Never waits and never throws: what the disk cannot take is counted as lost, and
   * told with a `gap` event as soon as recording works again.
   * @param atMs market time in effect, Unix ms
   * @param receivedAtMs time of receipt, Unix ms
   * @param solPriceUsd the engine's price of SOL for an event of this time (`MarketEngine.solPriceUsdAt`); NaN: none, or too old
   */
  append(event: MarketEvent, atMs: number, receivedAtMs: number, feed: string, solPriceUsd: number): void
  /** Number of the last event appended; 0: none ever was. */
  readonly lastEventNo: number
  /** Ends the current segment. Resolves when everything appended so far is in sealed segments and durable. */
  seal(): Promise<{ throughEventNo: number }>
  /** Deletes the segments whose events all have numbers up to this one. */
  removeThrough(eventNo: number): Promise<void>
  stats(): JournalStats
  /** Writes what waits, seals, and closes. */
  close(): Promise<void>
}
