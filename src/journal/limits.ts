// Every bound of the journal.
import { assert } from '../lib/assert.ts'

/** A batch is written when it has so many events, or is so old. What is in it is lost when the process is killed. */
export const BATCH_EVENTS_MAX = 4_096
export const BATCH_MS_MAX = 50
/** UTF-16 units of all texts of a batch; one more event may exceed it. */
export const BATCH_CHARACTERS_MAX = 2 * 1024 * 1024
/** Feeds in a batch: their indexes are bytes. */
export const BATCH_FEEDS_MAX = 255
/** UTF-16 units of a text: lengths have 16 bits, and the largest of them means null. Feeds cut texts long before it. */
export const TEXT_CHARACTERS_MAX = 65_534
/** Of a frame. Part of the format, because it bounds the memory of a reader. */
export const FRAME_BYTES_MAX = 32 * 1024 * 1024
/** Batches that wait for the disk. Feeds that can wait do so beyond half of it. Events beyond it are lost, until half of it is free. */
export const WAITING_BYTES_MAX = 32 * 1024 * 1024
/**
 * Batches that wait are written together until they have so many bytes; one more batch may exceed it. A thread that has more to do than it
 * can comes back to a write once in some two turns, of 0.1 s each: this is all that it writes meanwhile. A disk that takes less than
 * this in STALLED_MS counts as stalled.
 */
export const WRITE_BYTES_MAX = 4 * 1024 * 1024
/** A disk that has taken nothing for this long is not waited for. */
export const STALLED_MS = 5_000
/** A segment that is this old is sealed, as one that is large (lib/segments/limits.ts). */
export const SEGMENT_MS = 60_000
/** All segments together. Nothing is recorded beyond it: the lake or the checkpoints are far behind. */
export const JOURNAL_BYTES_MAX = 8 * 1024 * 1024 * 1024
/** How often what was written is synced: what a power cut may take. */
export const SYNC_EVERY_MS = 1_000
/** How often the writer looks whether the disk has room again. */
export const LOOK_EVERY_MS = 500
/** The delay before a disk that failed is tried again. It doubles each time, up to the maximum. */
export const RETRY_MS = 100
export const RETRY_MS_MAX = 5_000
/** How long `seal` and `close` wait for a disk that hangs. */
export const SEAL_MS_MAX = 10_000
export const CLOSE_MS_MAX = 3_000

assert(BATCH_CHARACTERS_MAX * 4 < FRAME_BYTES_MAX, 'a frame holds a batch')
