// Every bound of the log.
import { assert } from '../../lib/assert.ts'
import { SCAN_CHUNK_BYTES } from '../../lib/segments/limits.ts'

/** Payload of one record. Part of the format, because it bounds the memory of a reader. */
export const RECORD_BYTES_MAX = 4 * 1024 * 1024
/** Zeros that are written ahead of the lines: as many as the segment has bytes, within these bounds. Less than what a start reads
 *  of the end of the log, where it looks for the last line. */
export const ZEROS_BYTES_MIN = 16 * 1024
export const ZEROS_BYTES_MAX = 512 * 1024
/** Only for groups up to this size: a larger one would be written twice for little. */
export const WRITE_AHEAD_FOR_BYTES_MAX = 32 * 1024
/** Of the usual file systems. */
export const BLOCK_BYTES = 4096
/** Payload bytes of one group. A single larger commit forms a group of its own. */
export const GROUP_BYTES_MAX = 4 * 1024 * 1024
/** Commits of one group: bounds how long encoding it blocks the event loop. */
export const GROUP_COMMITS_MAX = 1_024
/** Commits that may wait for the disk, and their bytes. Beyond that `append` refuses. */
export const QUEUED_BYTES_MAX = 64 * 1024 * 1024
export const QUEUED_COMMITS_MAX = 65_536
/** A disk operation that takes longer is overdue: its callers are answered, and its segment is never written again. */
export const OPERATION_TIMEOUT_MS = 10_000
/** The delay before a failed recovery is tried again. It doubles with each attempt, up to the maximum. */
export const RECOVERY_RETRY_MS = 100
export const RECOVERY_RETRY_MAX_MS = 5_000
/** Reads by position that may wait. Beyond that they are refused. */
export const READS_QUEUED_MAX = 1_024
/** Entries in each list of a read report. */
export const REPORT_ENTRIES_MAX = 1_000
/** At most one log line about disk failures in this time. */
export const FAILURE_LINE_INTERVAL_MS = 1_000
/** Group durations that `status` reports. */
export const GROUP_DURATIONS_KEPT = 128

assert(ZEROS_BYTES_MAX + BLOCK_BYTES < SCAN_CHUNK_BYTES, 'the end of a log must be found beyond its zeros')
assert(GROUP_BYTES_MAX <= QUEUED_BYTES_MAX, 'a group must fit the queue')
assert(RECORD_BYTES_MAX <= QUEUED_BYTES_MAX, 'a record must fit the queue')
