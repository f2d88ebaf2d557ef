// Every bound of the cluster.
import { HOUR_MS } from '../lib/time.ts'

/** How long events stay on the bus, unless a setting says otherwise. */
export const BUS_MAX_AGE_MS_DEFAULT = HOUR_MS
export const BUS_MAX_MB_DEFAULT = 2_048
/** A reader that is further behind refuses reads until it has caught up. NATS servers that lose the one that leads take four to nine seconds
 *  to agree on another, and the stream has nothing until then. */
export const LAG_MAX_MS_DEFAULT = 10_000
/** A reader has caught up once it is less far behind. */
export const READY_LAG_MS_MAX = 1_000
/** How often the writer tells its market time. */
export const TICK_MS = 100
/** The least `max_payload` of NATS, which is its default. */
export const PAYLOAD_BYTES_MIN = 1024 * 1024
/** Of a message's frame. Larger ones are cut. As much again is for what the message has besides: the submissions of TOLD_SUBMISSIONS_MAX. */
export const PART_BYTES = PAYLOAD_BYTES_MIN / 2
/** Frames that wait for the bus. Beyond it they are read back from the journal. */
export const WAITING_BYTES_MAX = 32 * 1024 * 1024
/** How long a call to the bus may take. */
export const BUS_CALL_MS_MAX = 5_000
/** How long it is told that the bus has denied something, unless it does so again. */
export const DENIED_MS = 60_000
/** Things that the bus has denied that are remembered. */
export const DENIED_MAX = 16
/** How often a subscription that the bus has denied is tried again. */
export const DENIED_RETRY_MS = 5_000
/** How long a process that starts does not tell the log that it has not reached the others yet. */
export const START_TROUBLE_MS = 10_000
/** The delay before a bus that failed is tried again. It doubles each time, up to the maximum. */
export const RETRY_MS = 100
export const RETRY_MS_MAX = 2_000
/** Messages that are on their way to the bus at once, and their bytes. */
export const TURN_MESSAGES_MAX = 64
export const TURN_BYTES_MAX = 4 * 1024 * 1024
/** A stream that gets no message for so long has no writer. */
export const SILENT_MS = 1_000
/** How long a writer that starts is not ready because requests of readers do not reach it, where the bus does not tell why. */
export const REACHABLE_MS_MAX = 10_000
/** How long the stream has to be silent before a standby takes over. */
export const STANDBY_SILENT_MS = 3_000
/** How often a standby looks whether the data folder is free. */
export const STANDBY_LOOK_MS = 50
/** How often it is looked whether a stream is still silent. */
export const SILENT_LOOK_MS = 100
/** A writer acknowledges commits while the bus has taken a message of it that is not older. Less than STANDBY_SILENT_MS. */
export const LEASE_MS = 1_500
/** How long a commit waits for the bus, and an acknowledgement. */
export const CONFIRM_MS_MAX = 5_000
/** Of the stream. The writer does not use it; its default would be longer than the shortest max-age-ms of --bus-stream. */
export const DUPLICATES_MS = 1_000
/** Submissions that wait to be told on the bus; the oldest are forgotten. */
export const TOLD_SUBMISSIONS_MAX = 1_000
/** How long a stop in order waits for the bus to take the last events. */
export const LAST_EVENTS_MS_MAX = 2_000
/** Checkpoints in the object store of the bus: the newest ones. */
export const CHECKPOINTS_ON_BUS = 2
/** Of the process that brings a checkpoint to the bus. */
export const UPLOAD_NICENESS = 10
export const UPLOAD_HEAP_MB = 256
export const UPLOAD_TIMEOUT_MS = 1_800_000
/** The delay before a failed upload is tried again. It doubles each time, up to the maximum. */
export const UPLOAD_RETRY_MS = 1_000
export const UPLOAD_RETRY_MS_MAX = 60_000
