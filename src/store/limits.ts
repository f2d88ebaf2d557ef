// In: nothing. Out: every bound of the store, units last, and the asserts on their relations. Never reads a setting.
import { assert } from '../lib/assert.ts'

/** Rows of one `commit` call: they are one record of the log. */
export const COMMIT_ROWS_MAX = 8_192
/** Look-ups waiting for the reading connection; beyond it `store_unavailable`. */
export const LOOKUPS_WAITING_MAX = 1_024
/** Tasks of maintenance (flushes, steps of a merge, look-throughs), and counts of rows, waiting for their connection; beyond it `store_unavailable`. */
export const TASKS_WAITING_MAX = 64

/** After these the caller is told that the store is unavailable. */
export const COMMIT_TIMEOUT_MS = 10_000
export const LOOKUP_TIMEOUT_MS = 5_000
export const STATUS_TIMEOUT_MS = 15_000
export const FLUSH_TIMEOUT_MS = 120_000
/** Opening finishes what a crash left, and lists a lake anew whose list is gone. */
export const OPEN_TIMEOUT_MS = 180_000
export const CLOSE_TIMEOUT_MS = 6_000
/** Commits and merges are refused when less of the disk is free; a flush may use it. */
export const DISK_RESERVE_MB_DEFAULT = 64

/**
 * One: each connection works in the thread that called it. With a helper, a call that waits for the helper's part of a
 * statement spins until it is done, and takes the core that the helper needs: a third of all that a submission cost.
 */
export const DUCKDB_THREADS = 1
/** What has been freed beyond so much goes back to the system, and the arenas of glibc it may lie in: one for each thread that
 *  asks would be sixteen, each with what a flush has left there. */
export const DUCKDB_FREED_MEMORY_KEPT = '1MB'
export const LAKE_PROCESS_ARENAS = 2
export const DUCKDB_MEMORY_LIMIT = '384MB'
/** Room on the disk that writing the state database anew needs, as a multiple of its files. */
export const RENEWAL_ROOM = 2
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

/** A row group of the lake's files; contract 10. */
export const LAKE_ROW_GROUP_ROWS = 122_880

/** Files of up to this many rows are of the lowest tier; eight of one tier are merged into one. */
export const TIER_ROWS = 2_048
export const MERGE_FILES_MIN = 8
/** Rows of the largest file that merging makes. */
export const MERGED_ROWS_MAX = 8_388_608
/** A date that got no new file for this long is over: its files are made one. */
export const DATE_QUIET_MS = 3_600_000
/** A replaced file stays this long for readers who have begun. */
export const LAKE_GRACE_MS_DEFAULT = 300_000
/** The merging process: one merge at a time, in a database in memory of its own, that spills to disk. */
export const MERGE_MEMORY_LIMIT = '384MB'
export const MERGE_THREADS = 1
/** JavaScript's heap in it. */
export const MERGE_HEAP_MB = 128
/** Its priority: 0 is usual, 19 the least. */
export const MERGE_NICENESS = 5
/** Rows that are sorted in memory at once; where they do not fit, half as many, down to the second number. */
export const MERGE_SLICE_ROWS = 122_880
export const MERGE_SLICE_ROWS_MIN = 1_920
/** Rows whose keys tell where slices begin. */
export const MERGE_SAMPLE_ROWS = 20_000
/** Room on the disk that a merge needs, as a multiple of its files: their rows again in slices, and once more in one file. */
export const MERGE_ROOM = 4
/** One merge; beyond it its process is ended, and the next round tries again. */
export const MERGE_TIMEOUT_MS = 1_800_000
/** One round of housekeeping. */
export const HOUSEKEEPING_TIMEOUT_MS = 1_800_000

/** A look-up in the lake is begun anew when a file is replaced or set aside under it, this often. */
export const READ_ATTEMPTS = 8

/** Readers of the lake: each its own small database in memory, that spills to disk. */
export const READER_MEMORY_LIMIT = '512MB'
export const READER_SPILL_MAX = '16GB'
export const READER_THREADS = 2
/** A reader whose catalog names files that are gone opens the newer one, so often. */
export const LAKE_REOPENINGS_MAX = 3

/** Text of the place from where an export goes on. */
export const EXPORT_PLACE_CHARACTERS_MAX = 128
/** Exports under way at once, each a process with a database in memory of its own; one more is `store_unavailable`. */
export const EXPORTS_AT_ONCE = 2
/** Rows of one export. */
export const EXPORT_ROWS_MAX = 500_000
/** What one export may use: memory, spilled to disk beyond, and JavaScript's heap. */
export const EXPORT_MEMORY_LIMIT = '256MB'
export const EXPORT_SPILL_MAX = '2GB'
export const EXPORT_THREADS = 1
export const EXPORT_HEAP_MB = 256
/** Priority of its process: 0 is usual, 19 the least. */
export const EXPORT_NICENESS = 5
/** A row group of an exported Parquet file: what DuckDB holds of it. */
export const EXPORT_ROW_GROUP_ROWS = 20_480
/** A larger Parquet file is given up, the client told to ask for fewer rows. */
export const EXPORT_FILE_BYTES_MAX = 1024 * 1024 * 1024
/** What a row may take of the disk: a file that may not fit beside the store's reserve is not begun. */
export const EXPORT_ROW_BYTES_MAX = 10_240
/** How often the size of a Parquet file is looked at while it is written. */
export const EXPORT_WATCH_MS = 200
/** Bytes of one piece of a Parquet file, and pieces made before the client has taken them. A piece of Arrow is one of
 *  DuckDB's chunks, 2048 rows. */
export const EXPORT_PIECE_BYTES = 256 * 1024
export const EXPORT_PIECES_AHEAD = 4
/** How often DuckDB is told again to end what was called off. */
export const EXPORT_INTERRUPT_MS = 50
/** One export from beginning to end, a slow client's time included; beyond it the answer is cut off. */
export const EXPORT_MS_MAX = 600_000
/** A process that had nothing to do for this long is ended. */
export const EXPORT_IDLE_MS = 60_000
/** What an export that was called off may take to end before its process is ended. */
export const EXPORT_STOP_MS = 5_000
/** What exports may take to be finished once the server is closing. */
export const EXPORT_DRAIN_MS = 5_000
/** What a client is told to wait when all exports are in use, in whole seconds. */
export const EXPORT_RETRY_AFTER_S = 10

/** Closed bars on their way to the lake process: those of one message, and those that wait; beyond it they are dropped. */
export const BARS_BATCH_ROWS = 8_192
export const BARS_WAITING_MAX = 524_288
/** How often waiting bars are sent. */
export const BARS_SEND_EVERY_MS = 250
export const BARS_TIMEOUT_MS = 30_000
/** Bars that the lake process holds for the lake: from the first number on it flushes at once, at the second it takes no more. */
export const BARS_FLUSH_ROWS = 131_072
export const BARS_HELD_MAX = 524_288
/** Bars appended between two looks at what else the lake process is asked. */
export const BARS_CHUNK_ROWS = 256
/** Tokens whose last bar is remembered, so that none is written twice; of others the lake is asked. */
export const BAR_MARKS_MAX = 262_144

/** Findings of one look at the lake that are told; beyond it they are counted. */
export const FINDINGS_MAX = 1_000
/** Rows that a finding names. */
export const FINDING_EXAMPLES = 3
/** While the server writes, a finding counts once it stands so much later too: a file on its way is none. */
export const FINDING_STANDS_MS = 2_000

/** What looking at a file may use, to see whether it is whole. */
export const FILE_CHECK_MEMORY_LIMIT = '256MB'
/** Files that were set aside, as far as `/health` names them; beyond it they are counted. */
export const SET_ASIDE_TOLD_MAX = 20
/** While a fault lasts it is logged this often, with how often it came. */
export const FAULT_LOG_EVERY_MS = 60_000
/** The clock may run ahead of what is known of the time by this much; beyond it no date leaves the lake. */
export const CLOCK_LEAP_MAX_MS = 24 * 3_600_000

/** A label is known this long after its horizon, when the last bars of it have closed. */
export const LABEL_DELAY_MS = 60_000
/** How far back the price of an example that has none is looked for. */
export const BASE_LOOKBACK_MS = 86_400_000
/** Submissions labelled in one step (a day of bars for each, at most), and steps of one flush; the rest waits for the next. */
export const OUTCOMES_STEP_ROWS = 1_024
export const OUTCOMES_STEPS_MAX = 8
/** What a step may use: a database in memory of its own, that spills to disk. */
export const OUTCOMES_MEMORY_LIMIT = '384MB'
export const OUTCOMES_THREADS = 1

/** So many positions are reserved ahead, and looked at so often: enough for eight million changes a second. */
export const POSITIONS_AHEAD = 2 ** 22
export const POSITIONS_CHECK_MS = 250
/** Positions that the wall clock grants for each millisecond: more than any market uses. Exact to 2^53, so until 2100. */
export const POSITIONS_PER_MS = 2_048
export const POSITIONS_CLOCK_MS_MAX = Date.UTC(2_100, 0)

export const IDEMPOTENCY_KEPT_MS = 24 * 3_600_000

/** What recovery hands over. */
export const SUBMIT_ATTEMPTS_RECOVERED_MS = 60_000
/** Of cooldowns, or as much as a cooldown is long. */
export const COOLDOWNS_RECOVERED_MS_MIN = 10 * 60_000
export const STRIKES_RECOVERED_MS = 30 * 24 * 3_600_000
/** Remembered answers handed over, the youngest ones. */
export const IDEMPOTENCY_RECOVERED_MAX = 50_000

/** Submit attempts and rejections that a start knows of; beyond it the oldest are forgotten. */
export const SUBMIT_ATTEMPTS_MAX = 1_000_000
export const STRIKES_MAX = 1_000_000
/** Submissions that are kept as text for look-ups, and how many characters of them. */
export const RECENT_ROWS_MAX = 16_384
export const RECENT_ROWS_CHARACTERS_MAX = 32 * 1024 * 1024
/** JavaScript's heap in the lake process. */
export const LAKE_PROCESS_HEAP_MB = 512
/** Its priority: 0 is usual, 19 the least. */
export const LAKE_PROCESS_NICENESS = 5
/** A lake process that was told to end is ended after this. */
export const LAKE_PROCESS_END_MS = 2_000
/** How long a new lake process waits for one before it, whose server was killed, to end; and how often it looks. */
export const PREDECESSOR_END_MS = 10_000
export const PREDECESSOR_LOOK_EVERY_MS = 20
/** What the last flush may take when the store is closed; the rest of the log is for the next start. */
export const CLOSE_FLUSH_MS = 8_000
/** A lake process that ended is started anew after this; twice as long after each start that fails, up to the second. */
export const RESTART_DELAY_MS = 500
export const RESTART_DELAY_MS_MAX = 15_000
/** What the log may hold that the lake does not; beyond it commits are refused. */
export const UNFLUSHED_BYTES_MAX = 2 * 1024 ** 3
/** Bytes of the log that one round of a flush writes, unless a single segment is larger. */
export const FLUSH_BYTES_MAX = 64 * 1024 * 1024
/** How often it is looked how much of the disk is free. */
export const DISK_LOOK_EVERY_MS = 500
/** Token profiles that the lake process holds for a flush, and that the server holds until they are in files. */
export const TOKENS_HELD_MAX = 262_144
export const PROFILES_UNCONFIRMED_MAX = 262_144
export const PROFILES_TIMEOUT_MS = 30_000
/** Text of one table and date that is held before it is written to a file for DuckDB. */
export const SPLIT_TEXT_CHARACTERS = 1024 * 1024

assert(BARS_FLUSH_ROWS + BARS_BATCH_ROWS <= BARS_HELD_MAX, 'a flush must come before bars are refused')
assert(TRADE_BATCH_ROWS <= TRADE_BATCH_ROWS_MAX, 'the usual batch must be allowed')
