// The limits of the feeds, and what happens at each. Values that an operator can change are settings (config/settings.ts).
import { assert } from '../lib/assert.ts'
import { INGEST_BODY_BYTES_MAX, INGEST_FRAME_BYTES_MAX } from '../schema/media-types.ts'

export { INGEST_BODY_BYTES_MAX, INGEST_FRAME_BYTES_MAX }
/** Frames of all WebSockets that wait for the disk. Beyond it they are refused with `overloaded`: whoever sent one sends it again. */
export const INGEST_FRAMES_WAITING_BYTES_MAX = 32 * 1024 * 1024
/** A larger record is rejected unparsed. The largest valid one, a patch with fifty holders, has about 10 KiB. */
export const INGEST_RECORD_BYTES_MAX = 256 * 1024
/** Errors listed in an answer; further ones are only counted. */
export const INGEST_ERRORS_MAX = 100
/** How often a feed writes one kind of log line at most. */
export const FEED_LOG_EVERY_MS = 30_000
/** No valid NDJSON record is shorter. Once the list of errors is full, shorter lines are rejected unparsed. */
export const INGEST_LINE_CHARS_MIN = 30
/** Records, and their bytes, read in one turn of the event loop, so that other requests do not wait long. */
export const INGEST_SLICE_RECORDS = 4_096
export const INGEST_SLICE_BYTES = 1024 * 1024
/** A record whose `ts` is further ahead of its receipt is rejected: `ts_in_future`. */
export const TS_AHEAD_MS_MAX = 60_000

/** A feed that refuses a larger share of what it gets says so in /health and the log. */
export const REFUSAL_SHARE_MAX = 0.1
/** The share is taken over so many spans of this length, the latest ones. */
export const REFUSAL_SPANS = 5
export const REFUSAL_SPAN_MS = 60_000
/** With less input in these spans a feed is not judged. One that has ended is judged by all that it got. */
export const REFUSAL_JUDGED_MIN = 10
/** Distinct reasons counted; further ones show in the sum only. */
export const REFUSAL_REASONS_MAX = 20
/** Samples shown, one for each of the first reasons, and their length. */
export const REFUSAL_SAMPLES_MAX = 5
export const REFUSAL_SAMPLE_CHARS_MAX = 120
/** Accepted events that are not counted in a span yet. */
export const REFUSAL_ACCEPTED_UNCOUNTED_MAX = 64

/** The simulated market where no setting says otherwise. */
export const SIMULATOR_DEFAULTS = { seed: 1, tokens: 3_000, tradesPerSecond: 10 } as const
/** Largest number of simulated tokens at the start. */
export const SIMULATOR_TOKENS_MAX = 50_000
/** Largest number of simulated trades per second. */
export const SIMULATOR_RATE_MAX = 20_000
/** When the simulator is further behind the wall clock, for example after the machine slept, it skips the time in between. */
export const SIMULATOR_LAG_MS_MAX = 60_000
/** Trades since the start of a simulated market within which the next start goes on with it: that makes them again. */
export const SIMULATED_TRADES_REPEATED_MAX = 100_000
/** Simulated events applied in one turn of the event loop. */
export const SIMULATOR_SLICE_EVENTS = 4_096
/** How often the simulator catches up with the wall clock. */
export const SIMULATOR_TICK_MS = 40

/** How a file is replayed where no setting says otherwise. */
export const REPLAY_DEFAULTS = { speed: 1, time: 'recorded' } as const
/** Rows of a replay applied in one turn of the event loop. */
export const REPLAY_SLICE_ROWS = 4_096
/** Distinct symbols of one replay. Rows of further symbols are dropped and counted. */
export const REPLAY_SYMBOLS_MAX = 1_000_000
/** Longest single wait for the next recorded trade, so that the replay can be stopped and reports progress. */
export const REPLAY_WAIT_MS_MAX = 250
/** How often a line of the log tells the progress of a replay, where no bar does. */
export const REPLAY_LINE_MS = 10_000
/** How often a replay reports its progress. */
export const REPLAY_PROGRESS_MS = 1_000

/** A larger frame of an upstream is not read; the feed reconnects. */
export const UPSTREAM_FRAME_BYTES_MAX = 256 * 1024
/** When an upstream leaves this much unread, the feed reconnects. */
export const UPSTREAM_BACKLOG_BYTES_MAX = 1024 * 1024
/** Frames remembered to detect repeated ones, about 250 bytes each. At the maximum the one seen longest ago is forgotten. */
export const UPSTREAM_SEEN_MAX = 200_000
/** An attempt to connect that takes longer is given up. */
export const UPSTREAM_CONNECT_MS_MAX = 10_000
/** How often an upstream is pinged. A ping that is unanswered by the time of the next ends the connection. */
export const UPSTREAM_PING_MS = 15_000
/** A connection without data for this long is ended. */
export const UPSTREAM_SILENCE_MS_MAX = 60_000
/** After a connection that lasted this long, the wait before the next attempt is the shortest again. */
export const UPSTREAM_STEADY_MS = 30_000
/** Tokens whose trades are subscribed to, after a start those traded last. At the maximum the oldest is unsubscribed. */
export const UPSTREAM_TRADE_KEYS_MAX = 2_000
/** Tokens in one subscription message. */
export const UPSTREAM_KEYS_PER_MESSAGE_MAX = 200
/** An upstream that refuses a connection may ask for a wait before the next; at most this one is granted. */
export const UPSTREAM_RETRY_AFTER_MS_MAX = 60_000
/** The bounds of the wait between attempts to reconnect. */
export const RECONNECT_MS_MIN = 250
export const RECONNECT_MS_MAX = 30_000

/** A larger answer of Birdeye is rejected. */
export const PROVIDER_ANSWER_BYTES_MAX = 1024 * 1024
export const PROVIDER_TIMEOUT_MS = 5_000
/** A token that could not be had is not asked for again for this long. */
export const PROVIDER_FAILED_MS = 60_000
/** Requests in flight at once. */
export const PROVIDER_CONCURRENCY = 64
/** The rate of Birdeye's largest plan. */
export const PROVIDER_REQUESTS_PER_SECOND_MAX = 100
/** Tokens in the queue. One more drops the least recently traded; its next trade queues it again. */
export const PROVIDER_WAITING_MAX = 4_096
/** Tokens whose answer is remembered as fresh. At the maximum the one needed longest ago is forgotten. */
export const PROVIDER_FRESH_MAX = 50_000
/** The pause after an answer 429: this long, or what Retry-After says up to the maximum. */
export const PROVIDER_PAUSE_MS = 2_000
export const PROVIDER_PAUSE_MS_MAX = 60_000
/** The in-memory DuckDB that reads trade files. */
export const TRADE_FILE_THREADS = 2
export const TRADE_FILE_MEMORY_LIMIT = '1GB'
/** Rows of one batch of trades. */
export const TRADE_BATCH_ROWS = 65_536
/** Distinct symbols of one trade file. Reading a file with more fails. */
export const TRADE_SYMBOLS_MAX = 1_000_000
/** A trade file with no more rows is put in the order of its times; a longer one must be in order. */
export const TRADE_ORDER_ROWS_MAX = 262_144
/** A row this far behind the latest of its file is out of order: the market would refuse it as late. */
export const TRADE_ORDER_LAG_MS = 60_000
/** Records of a JSON file that are looked at for the names of their fields. */
export const TRADE_SAMPLE_RECORDS = 32_768
/** Lines of a CSV file that are looked at for its delimiter, quotes and header. */
export const TRADE_SAMPLE_LINES = 256
/** Bytes of a file of text that are read at once. */
export const TRADE_TEXT_CHUNK_BYTES = 256 * 1024
/** A longer line, or a JSON file that is one value, is not read. */
export const TRADE_LINE_CHARS_MAX = 64 * 1024 * 1024
/** A record of CSV whose quotes go over several lines is no longer; otherwise its first line is malformed. */
export const TRADE_QUOTED_CHARS_MAX = 64 * 1024

assert(INGEST_RECORD_BYTES_MAX <= INGEST_FRAME_BYTES_MAX, 'a record fits into a frame')
assert(INGEST_FRAME_BYTES_MAX <= INGEST_BODY_BYTES_MAX, 'a frame fits into a body')
assert(SIMULATOR_TICK_MS < SIMULATOR_LAG_MS_MAX, 'the simulator ticks more often than it skips time')
assert(RECONNECT_MS_MIN < RECONNECT_MS_MAX, 'waits between attempts grow')
assert(
  UPSTREAM_KEYS_PER_MESSAGE_MAX <= UPSTREAM_TRADE_KEYS_MAX,
  'a message names at most the subscribed tokens',
)
