// The client's bounds and defaults. Those that options change are named so in index.ts.
/** A request, its answer's last byte included. */
export const REQUEST_MS_MAX = 15_000
/** A query on the lake, the time that it waits for its turn included. */
export const QUERY_MS_MAX = 45_000
/** Retries of one call after failures of the network and 503. */
export const RETRIES_MAX = 4
/** The first back-off, and the longest. */
export const BACKOFF_MS_MIN = 250
export const BACKOFF_MS_MAX = 10_000
/** How long a stream that broke off tries again with waits of at most the second number: a server that is started anew is soon back. */
export const FOLLOW_PROMPT_MS = 30_000
export const FOLLOW_PROMPT_BACKOFF_MS_MAX = 2_000
/** How long one call waits for rate limits in all, if it was told to wait. */
export const LIMIT_WAIT_MS_MAX = 150_000
/** The longest `Retry-After` of a 503 that is obeyed: with a longer one the call fails, and a stream tries earlier. */
export const RETRY_AFTER_MS_MAX = 30_000
/** The largest answer that is read: 500 rows of a market list take about 1 MB. */
export const ANSWER_BYTES_MAX = 32 * 1024 * 1024
/** The longest line of a stream: a row takes about 1 KB, at most 8 KB. */
export const LINE_CHARACTERS_MAX = 256 * 1024
/** A stream that completes no line for this long is cut and resumed. The server sends a heartbeat every 15 s. */
export const STREAM_SILENCE_MS_MAX = 45_000
/** DataPoints in one request. */
export const BATCH_MINTS_MAX = 10
/** Time limit of a request that waits for market time; the server answers within 10 s of real time. */
export const TIME_WAIT_MS_MAX = 30_000
