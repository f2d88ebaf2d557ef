// Bounds of what nodes ask of each other, and of requests that are passed on.
import { CONFIRM_MS_MAX } from '../limits.ts'

/** A question on the bus without an answer for this long is lost, or the node that it went to. */
export const ASK_MS_MAX = 3_000
/** Connections of a node to all others together; one more request waits for one. */
export const SOCKETS_MAX = 512
/** How long a connection is kept that nobody uses: shorter than the HTTP engine keeps it. */
export const IDLE_SOCKET_MS_MAX = 4_000
/** A connection that is not there after so long is not made. */
export const CONNECT_MS_MAX = 2_000
/** How long another node takes at most until its answer begins; a submission, which is sent again with its key: the writer has the time to
 *  refuse it where the bus does not confirm that writer; exports and queries, which that node bounds; a copy or a check of the whole
 *  store, for which commands wait as long. */
export const ANSWER_MS_MAX = 10_000
export const KEYED_ANSWER_MS_MAX = CONFIRM_MS_MAX + 1_000
export const RESEARCH_ANSWER_MS_MAX = 660_000
export const LONG_ANSWER_MS_MAX = 1_800_000
/** An answer that has begun and of which nothing more comes for so long is cut. */
export const STALLED_ANSWER_MS_MAX = 60_000
/** An answer up to this size is sent on once it is whole. */
export const WHOLE_ANSWER_BYTES_MAX = 64 * 1024
/** Larger answers that one node sends on at once; one more is 503. */
export const OPEN_ANSWERS_MAX = 64
/** How long a request is tried again in all, while it is not known whether it was carried out. */
export const RETRY_MS_TOTAL = 10_000
/** The pause before it is tried again, at most: all who try again do so together. */
export const RETRY_PAUSE_MS = 200
/** How long a request is tried again where the writer says on the bus that it is there, and cannot be reached at its address. */
export const UNREACHABLE_MS_MAX = 1_000
/** How long a request with a cursor of a list that is not kept here is tried elsewhere: in all, for a node that keeps the list, for
 *  that node's page, and the pause where none keeps it yet. */
export const LIST_MS_MAX = 2_000
export const FIND_MS_MAX = 1_000
export const LIST_ANSWER_MS_MAX = 1_500
export const FIND_PAUSE_MS = 100
/** Lists for which nobody answers, of which is remembered since when. */
export const SILENT_LISTS_MAX = 1_024
/** A writer that has told nothing for so long has ended: what it had not answered by then is not answered any more. */
export const WRITER_GONE_MS = 2_000
/** Requests wait for a writer that has told nothing for less than this. Afterwards they are answered at once that there is none,
 *  but those with a key of which nobody knows whether they were carried out: they are tried for as long as any request may be. */
export const WRITER_HOLD_MS = 8_000
/** How often it is looked whether the writer has ended. */
export const ABSENCE_LOOK_MS = 100
/** What clients are told to wait while there is no writer. */
export const RETRY_AFTER_MS = 2_000
/** Requests that one node has passed on and that are not answered yet, those that wait for a writer included; one more is 503. */
export const PASSED_ON_MAX = 4_096
/** How long an answer waits until this node has applied what it changed. */
export const APPLIED_WAIT_MS_MAX = 500
/** How long a writer waits until the bus has an account that a request changed. */
export const ACCOUNTS_WAIT_MS_MAX = 250
/** How long a writer that stops waits until the bus knows that it takes no more requests, and for the last accounts. */
export const LEAVE_MS_MAX = 1_000
export const ACCOUNTS_LAST_MS_MAX = 1_000
/** How often a reader looks whether it reaches the writer. */
export const LOOK_MS = 5_000
