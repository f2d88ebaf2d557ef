// In: nothing. Out: every bound of the HTTP layer, with what happens at it. Never read from the environment.
import { HOUR_MS } from '../lib/time.ts'

/** A submission or any other JSON body; one byte more is 413. */
export const BODY_BYTES_MAX = 64 * 1024
/** A push of market events. */
export const INGEST_BODY_BYTES_MAX = 16 * 1024 * 1024
/** Bodies of agents and of clients without a key that are under way at once, over all connections: one more is 503. */
export const BODIES_BYTES_MAX = 16 * 1024 * 1024
/** The same for one key, or one address without a key, so that nobody fills it alone. */
export const CLIENT_BODIES_BYTES_MAX = 1024 * 1024
/** Bodies of feeds and operators under way at once: whoever fills this has a key from the server's owner. */
export const OPERATOR_BODIES_BYTES_MAX = 64 * 1024 * 1024
/** What a body is charged from the moment that its head is there: it is also the first size of its buffer. */
export const BODY_BYTES_CHARGED_MIN = 4 * 1024
/** A body that is not whole by then is 408. Less than the eight to twelve seconds after which the HTTP engine closes a
 *  connection that sent less than 16 KiB a second, without an answer. */
export const BODY_MS_MAX = 7_000
export const INGEST_BODY_MS_MAX = 60_000
/** How often bodies are looked at for their time. */
export const BODY_SWEEP_MS = 250
/** Of a refused request that closes its connection so much is read before the answer: a connection that is closed while
 *  its peer still sends is reset, and the answer lost. */
export const DISCARDED_BYTES_MAX = 256 * 1024
/** A query string longer than this is 400. The engine itself answers 431 to a request line and headers over 16 KiB in all
 *  (scripts/start.mjs), 4 KiB where it is not told: this leaves the headers the larger part. */
export const QUERY_CHARACTERS_MAX = 2_048
/** Queries whose parameters are remembered; at the maximum the oldest is forgotten, and parsed again. */
export const QUERIES_READ_MAX = 1_024
/** Bodies from here on are sent as the socket takes them: a slow reader holds the bytes that all share, or the rows. Of a
 *  smaller one the HTTP engine copies what the socket does not take, which costs less than being called back for it. */
export const STREAMED_BYTES_MIN = 256 * 1024
/** So much of a large page is joined at a time: few calls, and it stays in the processor's cache. */
export const BODY_CHUNK_BYTES = 256 * 1024
/** Pages up to here are joined, and answers kept to be given again; a larger page is sent from its rows. */
export const CACHED_RESPONSE_BYTES_MAX = 1024 * 1024
/** Rows of a large page that are made in one turn of the event loop, a few milliseconds; others are served in between. */
export const ROWS_PER_TURN = 250
/** Large pages that wait while another is made; one more is refused. */
export const LARGE_PAGES_WAITING_MAX = 64
/** Answers that are reused within MINTLAKE_PAGE_AGE_MS, and their bytes; at the maximum all are forgotten. */
export const CACHED_RESPONSES_MAX = 4_096
export const RESPONSE_CACHE_BYTES_MAX = 32 * 1024 * 1024
/** Bodies whose compressed forms are kept, all together; at the maximum the one asked for longest ago is forgotten. */
export const COMPRESSED_FORMS_BYTES_MAX = 32 * 1024 * 1024
/** Of larger bodies one is compressed at a time, for all who ask for those very bytes; others are sent plain meanwhile. */
export const COMPRESSED_KEPT_BYTES_MAX = 1024 * 1024
/** Smaller bodies that are compressed at once, each by a thread that the store may want, and those that wait for it; one
 *  more is sent plain. */
export const COMPRESSIONS_AT_ONCE = 2
export const COMPRESSIONS_WAITING_MAX = 32
/** How long the compressed form of a large body is kept for others who ask for the same. */
export const COMPRESSED_LARGE_KEPT_MS = 5_000
/** Clients whose reads are counted at once, by IP or key; at the maximum the longest idle are forgotten. */
export const READERS_MAX = 100_000
/** Peers of which it is remembered whether they are trusted proxies; at the maximum the oldest is forgotten. */
export const ADDRESSES_REMEMBERED_MAX = 4_096
export const READ_WINDOW_MS = 60_000
export const REGISTER_WINDOW_MS = HOUR_MS
export const MARKET_LIMIT_DEFAULT = 50
export const MARKET_LIMIT_MAX_JSON = 500
/** How long a cursor is good for: the contract's 30 s, and a second for its way to the client and back. */
export const CURSOR_KEPT_MS = 31_000
/** Frozen lists that are kept: with so many, a first page freezes none of its own where its tab and sort have a list of
 *  the last LISTS_SHARED_MS, but shares that one's order. */
export const LISTS_FRESH_MAX = 400
/** With so many, it shares the last list of its tab and sort, however old, as long as that is kept. */
export const LISTS_KEPT_MAX = 800
/** As old as `Cache-Control` lets a page be. */
export const LISTS_SHARED_MS = 1_000
export const BARS_LIMIT_DEFAULT = 100
export const BARS_LIMIT_MAX = 1_000
/** Templates of Arrow streams of bars, about 2 KB each, one for each number of rows and shape; at the maximum the oldest is
 *  forgotten, and made again when it is needed. */
export const ARROW_TEMPLATES_MAX = 2_048
/** Rows of one export of the training set; a larger table takes several, each from where the last one ended. */
export const EXPORT_LIMIT_DEFAULT = 100_000
export const EXPORT_LIMIT_MAX = 500_000
export const BATCH_MINTS_MAX = 10
export const LEADERBOARD_LIMIT_DEFAULT = 50
export const LEADERBOARD_LIMIT_MAX = 200
export const REQUEST_ID_CHARACTERS_MAX = 128
/** A frame of a held feed connection; a larger one closes it. */
export const FRAME_BYTES_MAX = 1024 * 1024
/** Answers that a feed has not read; beyond it the connection is closed. */
export const SOCKET_BACKPRESSURE_BYTES_MAX = 1024 * 1024
export const SOCKET_IDLE_SECONDS_MAX = 120
/** Followers at once, over HTTP and WebSocket together; one more is 429. */
export const FOLLOWERS_MAX = 10_000
/** How long a change may wait for others to be sent with it, unless the settings say otherwise. */
export const FOLLOW_FLUSH_MS_DEFAULT = 5
export const FOLLOW_HEARTBEAT_MS = 15_000
/** A follower whose socket took nothing for this long is too slow: it gets `bye`. Less than the eight seconds after which
 *  the HTTP engine gives up a response that nobody reads, and cuts it. */
export const FOLLOW_STALLED_MS_MAX = 5_000
/** After this a stream ends with `bye`, so that load can move between servers. */
export const FOLLOW_AGE_MS_MAX = HOUR_MS
/** Rows in one write to a follower: with the length of a row, what a reader that stops can hold of the server. */
export const FOLLOW_ROWS_MAX = 128
/** Writes to one follower in one flush; more wait for the next, so that one who catches up does not hold up the others. */
export const FOLLOW_WRITES_MAX = 8
/** Pieces of one channel that followers at different places share; at the maximum all are forgotten. */
export const FOLLOW_CHUNKS_MAX = 64
/** Subscriptions of one WebSocket; one more is refused. So many channels, each once, cost no read beside the opening. */
export const SUBSCRIPTIONS_MAX = 100
/** What a client may send in one WebSocket message of the stream; a larger one closes it. */
export const STREAM_MESSAGE_BYTES_MAX = 16 * 1024
