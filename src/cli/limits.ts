// In: nothing. Out: every bound of the command line, units last. Never reads a setting.

/** SQL read from the standard input; longer is refused. */
export const SQL_BYTES_MAX = 1024 * 1024
/** A query that takes longer is ended, unless `--timeout` says otherwise. */
export const QUERY_SECONDS_MAX_DEFAULT = 600
/** Rows that `--format table` shows: a table is held whole, to know its widths. */
export const TABLE_ROWS_MAX = 1_000
/** Characters of one cell of a table; a longer one is cut. */
export const TABLE_CELL_CHARACTERS_MAX = 120
/** How long the server may take to answer a command. */
export const SERVER_TIMEOUT_MS = 10_000
/** How long the server may take to read its whole lake. */
export const REPAIR_TIMEOUT_MS = 1_800_000
/** How long `lake status` waits for a server that may not run. */
export const HEALTH_TIMEOUT_MS = 2_000
/** Bytes of an answer of the server that are read. */
export const ANSWER_BYTES_MAX = 64 * 1024 * 1024
/** How often progress is looked at. */
export const PROGRESS_MS = 200
/** How often progress is written where nobody watches: a plain line. */
export const PROGRESS_LINE_MS = 5_000
