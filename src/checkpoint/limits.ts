// Every bound of checkpoints and of the restart from them.

/** How often a checkpoint is made. A start then has at most so much to apply again. */
export const CHECKPOINT_INTERVAL_MS_DEFAULT = 300_000
/** The next checkpoint waits so many times as long as the last one took: making them takes at most a fifth of the time. */
export const CHECKPOINT_PAUSE_FACTOR = 4
/** The newest ones are kept, and behind the older of them the journal: one of them may turn out to be damaged. */
export const CHECKPOINTS_KEPT = 2
export const CHECKPOINT_TIMEOUT_MS = 1_800_000
/** The delay before a failed checkpoint is tried again. It doubles each time, up to the maximum. */
export const CHECKPOINT_RETRY_MS = 10_000
export const CHECKPOINT_RETRY_MS_MAX = 600_000
export const CHECKPOINT_NICENESS = 10
export const CHECKPOINT_HEAP_MB = 4_096
/** How long a stop in order may take to write the last checkpoint. */
export const LAST_CHECKPOINT_MS_MAX = 6_000
/** The same where it is the only one: less than what a stop has in all, of which the rest takes some seconds. */
export const ONLY_CHECKPOINT_MS_MAX = 14_000
/** About what a machine does in a second. Where the events behind the newest checkpoint are applied sooner than another is written, a
 *  stop leaves them to the next start. */
export const WRITTEN_BYTES_PER_S = 150_000_000
export const APPLIED_EVENTS_PER_S = 100_000
/** A checkpoint that takes less time is written in any case. */
export const LAST_CHECKPOINT_MS_FREE = 1_000
/** Of the directory at the end of a checkpoint. */
export const DIRECTORY_BYTES_MAX = 16 * 1024 * 1024
/** Events that are applied again before the event loop has a turn. */
export const REDO_SLICE_EVENTS = 512
/** Events of initial coverage that are recorded before the disk has a turn, and how long it may take for that. */
export const COVERAGE_SLICE_EVENTS = 4_096
export const COVERAGE_WRITE_MS_MAX = 1_000
