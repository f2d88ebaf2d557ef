// In: nothing. Out: every limit of the feeds, units last, with what happens at each. Never reads the environment:
// what an operator may change comes in as options.
import { assert } from '../lib/assert.ts'
import { INGEST_BODY_BYTES_MAX, INGEST_FRAME_BYTES_MAX } from '../schema/media-types.ts'

export { INGEST_BODY_BYTES_MAX, INGEST_FRAME_BYTES_MAX }
/** A record above this, a line of NDJSON or a value of msgpack, is refused unparsed: the largest that is valid, a patch with
 *  fifty holders, has some 10 KiB. */
export const INGEST_RECORD_BYTES_MAX = 256 * 1024
/** Faults listed in an answer; the rest are counted. */
export const INGEST_ERRORS_MAX = 100
/** No valid NDJSON record is shorter; such lines are refused unparsed once the list of faults is full. */
export const INGEST_LINE_CHARS_MIN = 30
/** Records taken in one turn of the event loop, so that readers are never held up for long. */
export const INGEST_SLICE_RECORDS = 4_096
/** A record whose source time lies further ahead of its receipt is refused: `ts_in_future`. */
export const TS_AHEAD_MS_MAX = 60_000
/** Mints known to be well formed (60 bytes each, with room for twice as many tokens as a market holds); one that is
 *  forgotten is checked anew. */
export const MINT_CACHE_ENTRIES_MAX = 262_144

/** Simulated tokens that can be asked for at the start. */
export const SIMULATOR_TOKENS_MAX = 50_000
/** Simulated trades per second that can be asked for. */
export const SIMULATOR_RATE_MAX = 20_000
/** Further behind the wall clock than this (a sleeping machine), the simulator leaves a gap and says so. */
export const SIMULATOR_LAG_MS_MAX = 60_000
/** Events of the simulator applied in one turn of the event loop. */
export const SIMULATOR_SLICE_EVENTS = 4_096
/** How often the simulator catches up with the wall clock. */
export const SIMULATOR_TICK_MS = 40

/** Rows of a replay applied in one turn of the event loop. */
export const REPLAY_SLICE_ROWS = 4_096
/** Symbols of one replay; rows of further symbols are counted and dropped. */
export const REPLAY_SYMBOLS_MAX = 1_000_000
/** Longest single wait for the next recorded trade, so that stop and progress stay prompt. */
export const REPLAY_WAIT_MS_MAX = 250
export const REPLAY_PROGRESS_MS = 1_000

/** A frame of an upstream above this is not taken in: the connection is ended and begun anew. */
export const UPSTREAM_FRAME_BYTES_MAX = 256 * 1024
/** An upstream that leaves so much unread is given up: the connection is ended and begun anew. */
export const UPSTREAM_BACKLOG_BYTES_MAX = 1024 * 1024
/** Signatures remembered so that no frame counts twice; at the maximum the one seen longest ago is forgotten. */
export const UPSTREAM_SIGNATURES_MAX = 200_000
/** A connection that is not open by then is given up. */
export const UPSTREAM_CONNECT_MS_MAX = 10_000
/** An upstream is pinged so often; a ping that is unanswered when the next is due ends the connection. */
export const UPSTREAM_PING_MS = 15_000
/** A connection on which no data came for so long is taken for dead. */
export const UPSTREAM_SILENCE_MS_MAX = 60_000
/** A connection that lasted so long was a good one: the next wait is the shortest again. */
export const UPSTREAM_STEADY_MS = 30_000
/** A log line about an upstream that says the same again comes at most so often. */
export const UPSTREAM_LOG_EVERY_MS = 30_000
/** Tokens whose trades are subscribed to at once; at the maximum the oldest is unsubscribed. */
export const UPSTREAM_TRADE_KEYS_MAX = 2_000
/** Tokens named in one subscription. */
export const UPSTREAM_KEYS_PER_MESSAGE_MAX = 200
/** Waits between attempts to reconnect grow from the one to the other. */
export const RECONNECT_MS_MIN = 250
export const RECONNECT_MS_MAX = 30_000

/** An answer of the security provider above this is refused. */
export const PROVIDER_ANSWER_BYTES_MAX = 1024 * 1024
export const PROVIDER_TIMEOUT_MS = 5_000
/** An answer is good for at least this long; so is a failure. */
export const PROVIDER_TTL_MS_MIN = 60_000
/** Requests open at once. */
export const PROVIDER_CONCURRENCY = 64
/** The largest plan. */
export const PROVIDER_REQUESTS_PER_SECOND_MAX = 100
/** Tokens waiting for their turn; one more displaces the one that was traded longest ago, which the next trade wants anew. */
export const PROVIDER_WAITING_MAX = 4_096
/** Tokens whose answer is remembered as fresh; at the maximum the one needed longest ago is forgotten. */
export const PROVIDER_FRESH_MAX = 50_000
/** A provider that refuses for its rate is left alone for so long, or as long as it says, up to the second. */
export const PROVIDER_PAUSE_MS = 2_000
export const PROVIDER_PAUSE_MS_MAX = 60_000
/** A log line that says the same of the provider again comes at most so often. */
export const PROVIDER_LOG_EVERY_MS = 30_000
/** The reader of trade files: its own small database in memory. */
export const TRADE_FILE_THREADS = 2
export const TRADE_FILE_MEMORY_LIMIT = '1GB'
/** Rows of one batch of trades, unless told otherwise. */
export const TRADE_BATCH_ROWS = 65_536
export const TRADE_BATCH_ROWS_MAX = 1_048_576
/** Distinct symbols of one trade file; beyond it reading fails. */
export const TRADE_SYMBOLS_MAX = 1_000_000
/** Rows looked at to tell the unit of an integer time. */
export const TIME_SAMPLE_ROWS = 10_000

assert(INGEST_RECORD_BYTES_MAX <= INGEST_FRAME_BYTES_MAX, 'a record is never larger than a frame')
assert(INGEST_FRAME_BYTES_MAX <= INGEST_BODY_BYTES_MAX, 'a frame is never larger than a body')
assert(SIMULATOR_TICK_MS < SIMULATOR_LAG_MS_MAX, 'the simulator ticks more often than it gives up')
assert(RECONNECT_MS_MIN < RECONNECT_MS_MAX, 'waits between attempts grow')
assert(UPSTREAM_KEYS_PER_MESSAGE_MAX <= UPSTREAM_TRADE_KEYS_MAX, 'a message never names more than are held')
assert(TRADE_BATCH_ROWS <= TRADE_BATCH_ROWS_MAX, 'the usual batch must be allowed')
