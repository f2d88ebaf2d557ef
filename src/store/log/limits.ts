// In: nothing. Out: every bound of the log, units last, and the asserts on their relations. Never reads a setting.
import { assert } from '../../lib/assert.ts'

/** Payload of one record. Part of the format: it bounds the memory of a scan. */
export const RECORD_BYTES_MAX = 4 * 1024 * 1024
/** A segment that has grown so long is ended, and the next commit begins a new one. */
export const SEGMENT_BYTES = 64 * 1024 * 1024
/** Payload bytes of one group, unless a single commit is larger; and its commits, which bound the time that encoding
 *  takes from everything else in the process. */
export const GROUP_BYTES_MAX = 4 * 1024 * 1024
export const GROUP_COMMITS_MAX = 1_024
/** What may wait for the disk; beyond it `append` is refused. */
export const WAITING_BYTES_MAX = 64 * 1024 * 1024
export const WAITING_COMMITS_MAX = 65_536
/** An operation that takes longer is overdue: its callers are answered, and its segment is never written again. */
export const OPERATION_TIMEOUT_MS = 10_000
/** How long until a failed attempt to settle what is in doubt is repeated: doubled each time, up to the second. */
export const SETTLE_RETRY_MS = 100
export const SETTLE_RETRY_MAX_MS = 5_000
/** Look-ups by position that wait; beyond it they are refused. */
export const READS_WAITING_MAX = 1_024
/** Read at once by a scan; a longer record makes its buffer grow. Each read is waited for, and a log may
 *  have two gigabytes. */
export const SCAN_CHUNK_BYTES = 1024 * 1024
/** Read at once where only the first records of a segment are wanted. */
export const BEGINNING_BYTES = 8 * 1024
/** Copied at once when a segment is written anew. */
export const COPY_CHUNK_BYTES = 1024 * 1024
/** Findings of one reading that are kept; beyond it they are counted. */
export const FINDINGS_KEPT_MAX = 1_000
/** Failures of the disk are told in the server's own log no oftener. */
export const LINE_EVERY_MS = 1_000
/** Durations of operations that `status` tells. */
export const DURATIONS_KEPT = 128

assert(GROUP_BYTES_MAX <= WAITING_BYTES_MAX, 'a group must fit the queue')
assert(RECORD_BYTES_MAX <= WAITING_BYTES_MAX, 'a record must fit the queue')
