// Every limit of the HTTP layer that is no setting, and what happens when it is reached.

import { HOUR_MS } from '../lib/time.ts'
import { CURSOR_VALID_S } from '../schema/api/market.ts'

/** Sessions of consoles that are open at once, in all and of one address; the oldest gives way to a new one. */
export const CONSOLE_SESSIONS_MAX = 10_000
export const CONSOLE_SESSIONS_PER_ADDRESS_MAX = 64
/** How long a session lasts unless its page asks again, as it does each half hour. */
export const CONSOLE_SESSION_MS = 2 * HOUR_MS
/** How long one text of /metrics serves all who ask, since anybody may ask as often as they like. */
export const METRICS_TTL_MS = 1_000
/** What /health/history has: samples of the last hour; the oldest gives way. */
export const HISTORY_EVERY_MS = 10_000
export const HISTORY_SAMPLES_MAX = 360
/** Largest body of a submission or any other JSON request; a larger one is 413. */
export const BODY_BYTES_MAX = 64 * 1024
/** Memory of the bodies that are being received from agents and clients without a key; beyond it the answer is 503. */
export const BODIES_BYTES_MAX = 16 * 1024 * 1024
/** The same for one key, or for one address without a key, so that no client fills it alone. */
export const CLIENT_BODIES_BYTES_MAX = 1024 * 1024
/** The same for feeds and operators, which have memory of their own: their keys come from the server's owner. */
export const OPERATOR_BODIES_BYTES_MAX = 64 * 1024 * 1024
/** What a body is charged at least, from the arrival of its headers on. Also the first size of its buffer. */
export const BODY_BYTES_CHARGED_MIN = 4 * 1024
/** A body that takes longer to arrive is 408. Shorter than the 8 to 12 s after which the HTTP engine closes a connection that
 *  sends less than 16 KiB/s, without an answer. */
export const BODY_MS_MAX = 7_000
export const INGEST_BODY_MS_MAX = 60_000
/** How often the deadlines of bodies are checked. */
export const BODY_SWEEP_MS = 250
/** How much of a refused body is read before the answer, if the connection is closed after it: closing while the client still
 *  sends would reset the connection, and the answer would be lost. */
export const DISCARDED_BYTES_MAX = 256 * 1024
/** A longer query string is 400. The engine answers 431 if the request line and the headers take more than 16 KiB together
 *  (set in scripts/start.mjs; 4 KiB otherwise), so this leaves a third of that to the headers. */
export const QUERY_CHARACTERS_MAX = 10_240
/** Bodies of at least this size are sent as the socket takes them, so that a slow reader holds no copy. The rest of a smaller
 *  one is copied by the HTTP engine, which costs less than a callback. */
export const STREAMED_BYTES_MIN = 256 * 1024
/** Bytes of a large page that are copied together for one write: few calls, and they stay in the processor's cache. */
export const BODY_CHUNK_BYTES = 256 * 1024
/** Largest answer that the response cache takes. A larger NDJSON page is sent from its rows, in chunks. */
export const CACHED_RESPONSE_BYTES_MAX = 1024 * 1024
/** Rows of a large page that are encoded in one turn of the event loop, a few milliseconds. */
export const ROWS_PER_TURN = 250
/** Large pages that may wait while another is made; one more is 503. */
export const LARGE_PAGES_WAITING_MAX = 64
/** Answers in each of the two generations of the response cache, and their bytes; the older one is dropped when the newer one
 *  has either. MINTLAKE_PAGE_AGE_MS is their age. */
export const CACHED_RESPONSES_MAX = 2_048
export const RESPONSE_CACHE_BYTES_MAX = 16 * 1024 * 1024
/** How long a response is kept at least, for the case that it stays the newest. */
export const RESPONSE_KEPT_MS_MIN = 50
/** Bodies whose compressed forms are cached, in uncompressed bytes; beyond it the least recently used is dropped. */
export const COMPRESSED_FORMS_BYTES_MAX = 32 * 1024 * 1024
/** Of larger bodies one is compressed at a time, for all who ask for the same; others are sent plain meanwhile. */
export const COMPRESSED_CACHED_BYTES_MAX = 1024 * 1024
/** Smaller bodies that are compressed at once, on threads that the store uses too, and those that may wait; one more is sent
 *  plain. */
export const COMPRESSIONS_AT_ONCE = 2
export const COMPRESSIONS_WAITING_MAX = 32
/** How long the compressed form of a large body is cached. */
export const COMPRESSED_LARGE_TTL_MS = 5_000
/** Readers, by address or key, whose reads are counted; at the maximum the one with the oldest window gives way. */
export const READERS_MAX = 100_000
/** Addresses for which it is cached whether they are trusted proxies; beyond it the oldest is dropped. */
export const PROXY_CHECKS_CACHED_MAX = 4_096
/** How long the download of a file of the lake may take, a slow client's time included; the connection is cut then. */
export const LAKE_DOWNLOAD_MS_MAX = 600_000
export const READ_WINDOW_MS = 60_000
/** Rows of market lists for each read that the limit allows: 30 reads may take 300 000 rows. */
export const ROWS_PER_READ = 10_000
export const REGISTER_WINDOW_MS = HOUR_MS
/** How long a cursor is valid: what is promised, and a second for its way to the client and back. */
export const CURSOR_TTL_MS = (CURSOR_VALID_S + 1) * 1_000
/** Frozen lists from which on a first page shares the latest list of its tab and sort if that is younger than
 *  FROZEN_LIST_SHARED_MS, instead of freezing another. */
export const FROZEN_LISTS_UNSHARED_MAX = 400
/** Frozen lists from which on it shares the latest list of any age. */
export const FROZEN_LISTS_MAX = 800
/** Rows of all filtered lists that are kept for cursors, four bytes each, from which on a first page shares the latest list of the
 *  same filter if that is younger than FROZEN_LIST_SHARED_MS. */
export const FILTERED_ROWS_UNSHARED_MAX = 8_000_000
/** Rows from which on it shares one of any age; without one, its answer is 503 unless it has all rows of the list. */
export const FILTERED_ROWS_MAX = 16_000_000
/** Rows that a filtered list counts as at least. */
export const FILTERED_LIST_ROWS_MIN = 1_000
/** The age that `Cache-Control` allows a page. */
export const FROZEN_LIST_SHARED_MS = 1_000
/** Templates of Arrow streams of bars, about 2 KB each, one for each number of rows and shape; at the maximum the oldest is
 *  forgotten, and made again when it is needed. */
export const ARROW_TEMPLATES_MAX = 2_048
/** How long a leaderboard waits for what became of the agents’ analyses, before it says what was known a minute ago. */
export const AGENT_HITS_WAIT_MS = 1_000
/** How long one calibration serves all who ask. */
export const CALIBRATION_TTL_MS = 60_000
/** Records of agents that are kept as long; the one that was not asked for longest gives way. */
export const AGENT_RECORDS_CACHED_MAX = 500
/** Submissions of this run that streams can still be sent, and those that a stream begins with. */
export const SUBMISSIONS_STREAMED_MAX = 1_000
export const SUBMISSIONS_SNAPSHOT_ROWS = 50
export const REQUEST_ID_CHARACTERS_MAX = 128
/** Bytes that a WebSocket client has not read yet; beyond it the connection is closed. */
export const SOCKET_BACKPRESSURE_BYTES_MAX = 1024 * 1024
export const SOCKET_IDLE_SECONDS_MAX = 120
/** Streams at once, over HTTP and WebSocket together; one more is 429. */
export const FOLLOWERS_MAX = 10_000
/** How long a change may wait so that others are sent with it. */
export const FOLLOW_FLUSH_MS_DEFAULT = 2
export const FOLLOW_HEARTBEAT_MS = 15_000
/** A stream whose socket has been full for this long is ended with `bye`. Shorter than the 8 s after which the HTTP engine cuts
 *  a response that nobody reads. */
export const FOLLOW_STALLED_MS_MAX = 5_000
/** A stream is ended with `bye` at this age, so that load can move between servers. */
export const FOLLOW_AGE_MS_MAX = HOUR_MS
/** How long compressed streams refer back to what was sent before, and for how many bytes of all: then they begin anew, so that those
 *  who came later share what is compressed. */
export const GZIP_EPOCH_MS_MAX = 1_000
export const GZIP_EPOCH_BYTES_MAX = 1024 * 1024
/** WebSockets whose rows are compressed, each on its own; further ones are not. */
export const COMPRESSED_SOCKETS_MAX = 200
/** Smaller messages are not compressed. */
export const COMPRESSED_MESSAGE_BYTES_MIN = 512
/** Rows of a window that a stream follows. */
export const WINDOW_ROWS_MAX = 200
/** How often a window is looked at while somebody follows it. */
export const WINDOW_EVERY_MS = 1_000
/** Different windows that are followed at once; one more is 429. Each holds its rows. */
export const WINDOWS_MAX = 1_000
/** Of those, the ones that one client follows, so that no client takes all. */
export const WINDOWS_OF_CLIENT_MAX = 100
/** Unknown names of fields that an error tells. */
export const FIELD_ERRORS_MAX = 8
/** Rows in one write to a stream: this bounds the memory that a stalled reader holds. */
export const FOLLOW_ROWS_MAX = 128
/** How often writes of a rapid sequence make dear cached answers invalid, and how many writes at once do; see Route.changesDear. */
export const DEAR_INVALIDATIONS_PER_SECOND = 20
export const DEAR_INVALIDATIONS_AT_ONCE = 40
/** Writes to one stream in one flush; the rest waits for the next, so that one that catches up does not delay the others. */
export const FOLLOW_WRITES_MAX = 8
/** Encoded chunks that a channel caches for followers at different positions; the cache is cleared at this number. */
export const FOLLOW_CHUNKS_MAX = 64
/** Subscriptions of one WebSocket; one more is refused. The first subscription to each of so many channels costs no read. */
export const SUBSCRIPTIONS_MAX = 100
/** Largest message of a client on a streaming WebSocket; a larger one closes the connection. */
export const STREAM_MESSAGE_BYTES_MAX = 16 * 1024
/** Requests that wait for market time at once; one more is 503. How long one waits at most, and how often the time is looked at. */
export const TIME_WAITS_MAX = 1_000
export const TIME_WAIT_MS_MAX = 10_000
export const TIME_WAIT_LOOK_MS = 50
/** A server is overloaded once work has waited longer than this for its thread in every turn of the event loop, for so long and in so
 *  many turns at least (overload.ts). */
export const OVERLOAD_WAIT_MS_MAX = 60
export const OVERLOAD_MS_MIN = 1_000
export const OVERLOAD_TURNS_MIN = 3
/** The wait that it is brought back to by refusing requests; how often the share is set anew; how it rises where the wait is twice as
 *  long, and falls where nothing waits: within four seconds from the largest one to none. Less where the wait is nearer to what is aimed at. */
export const OVERLOAD_WAIT_MS = 30
export const OVERLOAD_STEP_MS = 250
export const OVERLOAD_CHANGE_PER_SECOND = 0.5
/** Some are always served, however many come: how long they take is what the share follows. */
export const OVERLOAD_SHARE_MAX = 0.9
/** When whoever was refused should try again, spread between the two. */
export const OVERLOAD_RETRY_MS_MIN = 1_000
export const OVERLOAD_RETRY_MS_MAX = 4_000
/** Streams that are ended in one step, those that began last, where refusing requests is not enough; at least one. */
export const OVERLOAD_STREAMS_SHARE = 0.1
