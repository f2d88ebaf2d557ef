// Bounds of the command line.
/** Longest SQL text that is read from standard input. */
export const SQL_BYTES_MAX = 1024 * 1024
/** Default time limit of a query; `--timeout` changes it. */
export const QUERY_SECONDS_MAX_DEFAULT = 600
/** Most rows that `--format table` shows. The table is held in memory, since its column widths depend on every row. */
export const TABLE_ROWS_MAX = 1_000
/** Longest cell of a table; longer ones are cut. */
export const TABLE_CELL_CHARACTERS_MAX = 120
/** Time limit of a request to the server. */
export const SERVER_TIMEOUT_MS = 10_000
/** Time limit of a request that makes the server read its whole lake. */
export const REPAIR_TIMEOUT_MS = 1_800_000
/** How long `lake status` waits for a server, which may not be running. */
export const HEALTH_TIMEOUT_MS = 2_000
/** Largest response that is read from the server. */
export const ANSWER_BYTES_MAX = 64 * 1024 * 1024
/** How often the progress display is updated. */
export const PROGRESS_MS = 200
/** How often a line of progress is written where the output is not a terminal. */
export const PROGRESS_LINE_MS = 5_000
/** How long `doctor` waits for a process that loads a binary package. */
export const DOCTOR_CHILD_MS_MAX = 20_000
/** Memory below which a server cannot run, and that which it usually has. */
export const MEMORY_MB_MIN = 900
export const MEMORY_MB_USUAL = 3_500
/** How far the store's files may be younger than the clock. */
export const CLOCK_AHEAD_MS_MAX = 60_000
/** Syncs that `doctor` measures, and the median up to which a disk is as fast as disks usually are. */
export const SYNCS_MEASURED = 20
export const SYNC_MS_USUAL = 15
/** Free disk space below which `doctor` warns. */
export const DISK_FREE_MB_USUAL = 2_048
/** A shorter operator's key can be guessed. */
export const ADMIN_KEY_CHARACTERS_MIN = 16
/** Longest key file that is taken for one. */
export const KEY_FILE_BYTES_MAX = 1024
