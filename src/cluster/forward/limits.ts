// Bounds of what nodes ask of each other.

/** Of an answer or a body in one message; less where the bus takes smaller messages. */
export const CHUNK_BYTES = 512 * 1024
/** What a message needs besides its chunk: path, query and headers, which HTTP limits to 16 KiB. */
export const ENVELOPE_BYTES = 64 * 1024
/** How long a node works on a request before it says that the answer is not there yet. */
export const HOLD_MS = 1_000
/** A message without a reply for this long is lost, or the node that it went to. */
export const REPLY_MS_MAX = 3_000
/** The same for what must not be done twice: it is not tried again. */
export const UNREPEATABLE_REPLY_MS_MAX = 10_000
/** How long a request is tried again in all, while it is not known whether it was carried out. */
export const RETRY_MS_TOTAL = 10_000
/** How long a request with a cursor of a list that is not kept here is tried elsewhere: in all, for a node that keeps the list, for
 *  that node's page, and the pause where none keeps it yet. */
export const LIST_MS_MAX = 2_000
export const FIND_MS_MAX = 1_000
export const LIST_REPLY_MS_MAX = 1_500
export const FIND_PAUSE_MS = 100
/** Lists for which nobody answers, of which is remembered since when. */
export const SILENT_LISTS_MAX = 1_024
/** The pause before it is tried again. */
export const RETRY_PAUSE_MS = 200
/** A writer that has told nothing for so long has ended: what it had not answered by then is not answered any more. */
export const WRITER_GONE_MS = 2_000
/** Requests wait for a writer that has told nothing for less than this. Afterwards they are answered at once that there is none. */
export const WRITER_HOLD_MS = 8_000
/** How often it is looked whether a writer is there. */
export const ABSENCE_LOOK_MS = 100
/** Requests that one node keeps waiting for a writer; one more is 503. */
export const HELD_MAX = 1_024
/** What clients are told to wait while there is no writer. */
export const RETRY_AFTER_MS = 2_000
/** Requests in one message. */
export const GROUP_REQUESTS_MAX = 64
/** Requests of other nodes that one process carries out at once; one more is 503. */
export const CALLS_MAX = 2_048
/** Answers of which a part is still to be sent, such as exports; one more is 503. */
export const OPEN_ANSWERS_MAX = 64
/** Memory of the bodies of those requests; beyond it the answer is 503. */
export const CALL_BODIES_BYTES_MAX = 64 * 1024 * 1024
/** An answer that nobody has asked for during this time is given up. */
export const CALL_IDLE_MS_MAX = 30_000
/** How often a node says that its client is slow, so that the answer is kept. */
export const KEEP_MS = 10_000
/** How often calls are looked at that nobody asks for. */
export const CALL_SWEEP_MS = 5_000
/** Requests that one node has forwarded and that are not answered yet; one more is 503. */
export const FORWARDED_MAX = 4_096
/** How long an answer waits until this node has applied what it changed. */
export const APPLIED_WAIT_MS_MAX = 500
/** How long a writer waits until the bus has an account that a request changed. */
export const ACCOUNTS_WAIT_MS_MAX = 250
/** How long a writer that stops waits for requests of other nodes that run, and for the last accounts. */
export const CALLS_LAST_MS_MAX = 5_000
export const ACCOUNTS_LAST_MS_MAX = 1_000
