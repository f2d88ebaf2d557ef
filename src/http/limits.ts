// In: nothing. Out: every bound of the hall, with what happens at it. Never read from the environment.

/** A submission or any other JSON body; one byte more is 413. */
export const BODY_BYTES_MAX = 64 * 1024
/** A push of market events. */
export const INGEST_BODY_BYTES_MAX = 16 * 1024 * 1024
/** A query string longer than this is 400. The engine itself answers 431 to a request line and headers over 4 KiB in all,
 *  so this leaves the headers their half. */
export const QUERY_CHARACTERS_MAX = 2_048
/** Bodies from here on are sent as the socket takes them, not copied for a slow reader. */
export const STREAMED_BYTES_MIN = 64 * 1024
/** Answers that are reused within MINTLAKE_PAGE_AGE_MS, and their bytes; at the maximum all are forgotten. */
export const PREPARED_ANSWERS_MAX = 4_096
export const PREPARED_BYTES_MAX = 32 * 1024 * 1024
/** Clients whose reads are counted at once, by IP or key; at the maximum the longest idle are forgotten. */
export const READERS_MAX = 100_000
export const READ_WINDOW_MS = 60_000
export const REGISTER_WINDOW_MS = 3_600_000
export const MARKET_LIMIT_DEFAULT = 50
export const MARKET_LIMIT_MAX_JSON = 500
export const BARS_LIMIT_DEFAULT = 100
export const BARS_LIMIT_MAX = 1_000
export const BATCH_MINTS_MAX = 10
export const BOARD_LIMIT_DEFAULT = 50
export const BOARD_LIMIT_MAX = 200
export const REQUEST_ID_CHARACTERS_MAX = 128
/** A frame of a held feed connection; a larger one closes it. */
export const FRAME_BYTES_MAX = 1024 * 1024
/** Answers that a feed has not read; beyond it the connection is closed. */
export const SOCKET_BACKPRESSURE_BYTES_MAX = 1024 * 1024
export const SOCKET_IDLE_SECONDS_MAX = 120
