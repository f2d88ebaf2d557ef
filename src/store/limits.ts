// The limits of the store; those of the log are in log/limits.ts.
import { assert } from '../lib/assert.ts'
import { DAY_MS, HOUR_MS } from '../lib/time.ts'

/** Rows of one `commit` call: they are one record of the log. */
export const COMMIT_ROWS_MAX = 8_192
/** Look-ups that may wait for their connection; further ones are refused with `store_unavailable`. */
export const LOOKUPS_WAITING_MAX = 1_024
/** Lists of submissions that wait for each other: as many as are answered within LOOKUP_TIMEOUT_MS. */
export const LISTS_WAITING_MAX = 64
/** Rows of the lake that one page of a list searches; the next page goes on. At least one date is searched. */
export const LIST_SEARCHED_ROWS_MAX = 4_000_000
/** Maintenance tasks (flushes, steps of merges, checks), and row counts, that may wait for their connection. */
export const TASKS_WAITING_MAX = 64

/** Time limits of requests. Beyond them the caller gets `store_unavailable`. */
export const COMMIT_TIMEOUT_MS = 10_000
export const LOOKUP_TIMEOUT_MS = 5_000
/** The calibration takes in the submissions of this time. */
export const CALIBRATION_MS = 30 * DAY_MS
export const CALIBRATION_TIMEOUT_MS = 30_000
export const STATUS_TIMEOUT_MS = 15_000
export const FLUSH_TIMEOUT_MS = 120_000
/** Opening completes what a crash interrupted, and lists the lake's files again where the list is lost. */
export const OPEN_TIMEOUT_MS = 180_000
export const CLOSE_TIMEOUT_MS = 6_000
/** Commits and merges are refused when less of the disk is free; a flush may use it. */
export const DISK_RESERVE_MB_DEFAULT = 64

/**
 * One, so that each connection works in the thread that called it. With a second thread, the caller of a statement spins while
 * it waits for that thread's part, on the core that the thread needs: measured at a third of a submission's cost.
 */
export const DUCKDB_THREADS = 1
/**
 * Freed memory that DuckDB keeps; what is beyond goes back to the system. And the malloc arenas of glibc in the lake process: by default
 * each of its sixteen threads has one, and each arena keeps what a flush left in it.
 */
export const DUCKDB_FREED_MEMORY_KEPT = '1MB'
export const LAKE_PROCESS_ARENAS = 2
export const DUCKDB_MEMORY_LIMIT = '384MB'
/** Free disk space needed to rewrite the state database, as a multiple of its size. */
export const REWRITE_DISK_FACTOR = 2

/** Rows of a row group in the lake's files. */
export const LAKE_ROW_GROUP_ROWS = 122_880

/** Files of up to this many rows are in the lowest tier; MERGE_FILES_MIN of one tier are merged into one. */
export const TIER_ROWS = 2_048
export const MERGE_FILES_MIN = 8
/** A merge makes no file with more rows than this. */
export const MERGED_ROWS_MAX = 8_388_608
/** The same of recorded events: they leave the lake by files, about 130 MB of this many trades. */
export const MERGED_EVENTS_MAX = 1_048_576
/** All files of a date that had no new file for this long are merged into one. */
export const DATE_QUIET_MS = HOUR_MS
/** A replaced file is kept this long for readers who started before. */
export const LAKE_GRACE_MS_DEFAULT = 300_000
/** The merge process: one merge at a time, in a database in memory that spills to disk. */
export const MERGE_MEMORY_LIMIT = '384MB'
export const MERGE_THREADS = 1
/** JavaScript's heap in it. */
export const MERGE_HEAP_MB = 128
/** Its priority: 0 is usual, 19 the least. */
export const MERGE_NICENESS = 5
/** Rows sorted in memory at once; halved where they do not fit, down to the second number. */
export const MERGE_SLICE_ROWS = 122_880
export const MERGE_SLICE_ROWS_MIN = 1_920
/** Rows sampled to choose the bounds of the slices. */
export const MERGE_SAMPLE_ROWS = 20_000
/** Free disk space needed for a merge, as a multiple of its files: for the slices and for the merged file. */
export const MERGE_DISK_FACTOR = 4
/** A merge that takes longer is ended, and tried again in the next round. */
export const MERGE_TIMEOUT_MS = 1_800_000
/** A process that has no merge for this long is ended, if its round has not ended it before. */
export const MERGE_IDLE_MS = 60_000
/** One round of housekeeping. */
export const HOUSEKEEPING_TIMEOUT_MS = 1_800_000

/** A read of files that are replaced or quarantined meanwhile is tried this often. */
export const READ_ATTEMPTS_MAX = 8

/** Each reader of the lake has a database in memory that spills to disk. */
export const READER_MEMORY_LIMIT = '512MB'
export const READER_SPILL_MAX = '16GB'
export const READER_THREADS = 2
/** Recorded events that are read back at once, and DuckDB's memory for it. */
export const REPLAY_BATCH_EVENTS = 4_096
export const REPLAY_MEMORY_LIMIT = '256MB'
/** How often a reader reopens the catalog when files of it were deleted. */
export const LAKE_REOPENINGS_MAX = 3

/** Length of an export's cursor (`since`). */
export const EXPORT_CURSOR_CHARACTERS_MAX = 128
/** Exports that run at once, each in a process with a database in memory, and those that wait for a place; further ones get
 *  `store_unavailable`, and so does one that has waited too long. A client has the whole of its file a moment before the place is
 *  free again: two that ask for one page after another would find both taken. */
export const EXPORTS_AT_ONCE = 2
export const EXPORTS_WAITING_MAX = 8
export const EXPORT_WAIT_MS_MAX = 10_000
/** Rows of one export. */
export const EXPORT_ROWS_MAX = 500_000
/** What one export may use: DuckDB's memory, spilled data, threads, JavaScript's heap. */
export const EXPORT_MEMORY_LIMIT = '256MB'
export const EXPORT_SPILL_MAX = '2GB'
export const EXPORT_THREADS = 1
export const EXPORT_HEAP_MB = 256
/** Priority of its process: 0 is usual, 19 the least. */
export const EXPORT_NICENESS = 5
/** Rows of a row group in an exported Parquet file: DuckDB holds one in memory. */
export const EXPORT_ROW_GROUP_ROWS = 20_480
/** An export whose Parquet file gets larger fails; the client is told to ask for fewer rows. */
export const EXPORT_FILE_BYTES_MAX = 1024 * 1024 * 1024
/** Bytes assumed for a row, to check the free disk space before a Parquet file is written. */
export const EXPORT_ROW_BYTES_MAX = 10_240
/** How often the size of a Parquet file is checked while it is written. */
export const EXPORT_SIZE_CHECK_MS = 200
/** Bytes of one chunk of a Parquet file, and chunks sent to the server before the client takes them. A chunk of Arrow is one of
 *  DuckDB's chunks: 2048 rows. */
export const EXPORT_CHUNK_BYTES = 256 * 1024
export const EXPORT_CHUNKS_AHEAD = 4
/** How long an export may take, including a slow client's time. Beyond it the response is cut off. */
export const EXPORT_MS_MAX = 600_000
/** A process without an export for this long is ended. */
export const EXPORT_IDLE_MS = 60_000
/** How long running exports may go on while the server is closing. */
export const EXPORT_DRAIN_MS = 5_000
/** Retry-After while all exports are in use, in seconds. */
export const EXPORT_RETRY_AFTER_S = 10

/** SQL queries over HTTP that run at once, each in a process of its own, and those that wait for a place; further ones get
 *  `overloaded`. */
export const QUERIES_AT_ONCE = 2
export const QUERIES_WAITING_MAX = 8
/** Queries of one key that run or wait, so that nobody takes every place. */
export const QUERIES_PER_KEY_MAX = 3
/** How long a query may wait for a place, and how long it may then run. Its process is killed afterwards. */
export const QUERY_WAIT_MS_MAX = 10_000
export const QUERY_MS_MAX = 30_000
/** A query that took longer is told in the log, with so much of its text. */
export const QUERY_SLOW_MS = 5_000
export const QUERY_LOGGED_CHARACTERS = 500
/** What one query may use: DuckDB's buffers, spilled data, threads, JavaScript's heap. */
export const QUERY_MEMORY_LIMIT = '256MB'
export const QUERY_SPILL_BYTES_MAX = 512 * 1024 * 1024
export const QUERY_THREADS = 1
export const QUERY_HEAP_MB = 128
/** Memory of its whole process, which the kernel holds it to: DuckDB's own limit leaves texts out. */
export const QUERY_PROCESS_MB_MAX = 768
/** Priority of its process: 0 is usual, 19 the least. */
export const QUERY_NICENESS = 10
/** Size of the result; what is beyond is left out, and the answer says so. */
export const QUERY_RESULT_BYTES_MAX = 4 * 1024 * 1024
/** How long running queries may go on while the server is closing. */
export const QUERY_DRAIN_MS = 5_000
/** Retry-After while all places are taken, in seconds. */
export const QUERY_RETRY_AFTER_S = 5

/** Files of the lake that are read over HTTP at once; one more gets `store_unavailable`. A DuckDB opens some for each query. */
export const DOWNLOADS_AT_ONCE = 64
/** Disk operations of all downloads at once: each may hold one of the threads that commits need as well. */
export const DOWNLOAD_READS_AT_ONCE = 4
/** Bytes that a download reads and holds at a time. */
export const DOWNLOAD_CHUNK_BYTES = 256 * 1024
export const DOWNLOAD_RETRY_AFTER_MS = 1_000
/** How long a download waits for one read of the disk. */
export const DOWNLOAD_READ_MS_MAX = 10_000
/** How long one list of the lake's files serves all who ask for it or for a file. */
export const LAKE_LISTING_TTL_MS = 1_000

/** Closed bars on their way to the lake process: those of one message, and those that may wait; further ones are dropped. */
export const BARS_BATCH_ROWS = 8_192
export const BARS_WAITING_MAX = 524_288
/** Runs whose bars are counted apart; the counts of older ones are added up. */
export const BAR_RUNS_MAX = 1_000
/** How often waiting bars are sent. */
export const BARS_SEND_EVERY_MS = 250
export const BARS_TIMEOUT_MS = 30_000
/** Bars that the lake process holds: at the first number a flush starts at once, at the second it takes no more. */
export const BARS_FLUSH_ROWS = 131_072
export const BARS_HELD_MAX = 524_288
/** Bars appended before the lake process yields to other work. */
export const BARS_CHUNK_ROWS = 256
/** Tokens whose last bar is remembered to find duplicates; for other tokens the lake is searched. */
export const SEEN_BARS_TOKENS_MAX = 262_144

/** Findings of one verification that are listed; further ones are counted. */
export const FINDINGS_MAX = 1_000
/** How many rows a finding names as examples. */
export const FINDING_EXAMPLES_MAX = 3
/** Tokens whose bars one verification compares with the recorded trades, and how many trades they have together at most. */
export const SAMPLE_TOKENS = 64
export const SAMPLE_TRADES_MAX = 2_000_000
/** By what share a sum of volumes may differ: the engine adds them up second by second, the verification in any order. */
export const SUMS_TOLERANCE = 1e-9
/** While the server writes, a finding counts only if a second pass after this time has it too. */
export const FINDING_CONFIRM_MS = 2_000

/** Memory for checking whether a file is damaged. */
export const FILE_CHECK_MEMORY_LIMIT = '256MB'
/** Quarantined files that `/health` names; further ones are only counted. */
export const SET_ASIDE_TOLD_MAX = 20
/** How often a fault that lasts is logged, with its number of failures. */
export const FAULT_LOG_EVERY_MS = 60_000
/** When the wall clock is further ahead of the known time than this, no date expires. */
export const CLOCK_JUMP_MAX_MS = DAY_MS
/** Percent of a table's rows that may leave the lake for their age without an operator's word. */
export const RETAIN_UNASKED_PCT_DEFAULT = 10
/** What is at most this much older than the newest row of its table leaves on an operator's word only. */
export const YOUNG_MS = DAY_MS
/** How often the time is saved for the next run. */
export const CLOCK_SAVE_MS = 60_000
/** Rows may come this much after their date: a bar of a day when it has closed. */
export const LATE_ROWS_MS = DAY_MS

/** A label is available this long after its horizon, when its last bars have closed. */
export const LABEL_DELAY_MS = 60_000
/** How far back the base price is searched for an example without one. */
export const BASE_LOOKBACK_MS = DAY_MS
/** Submissions labelled in one step, and steps of one flush; the rest is left for the next flush. */
export const OUTCOMES_STEP_ROWS = 1_024
export const OUTCOMES_STEPS_MAX = 8
/** What a step may use: it runs in a database in memory that spills to disk. */
export const OUTCOMES_MEMORY_LIMIT = '384MB'
export const OUTCOMES_THREADS = 1

/** Stream positions reserved ahead, and how often that is checked: enough for eight million changes a second. */
export const POSITIONS_AHEAD = 2 ** 22
export const POSITIONS_CHECK_MS = 250
/** Stream positions for each millisecond of the wall clock: more than any market uses. They stay below 2^53 until 2100. */
export const POSITIONS_PER_MS = 2_048
/** How far above the clock a restored folder begins, so that it is above the lost run also on a machine with another clock. */
export const POSITIONS_RESTORED_AHEAD = DAY_MS * POSITIONS_PER_MS
export const POSITIONS_CLOCK_MS_MAX = Date.UTC(2_100, 0)

/** How far back the recovered entries go. */
export const SUBMIT_ATTEMPTS_RECOVERED_MS = 60_000
/** For cooldowns at least this, or as long as the longest cooldown. */
export const COOLDOWNS_RECOVERED_MS_MIN = 10 * 60_000
export const STRIKES_RECOVERED_MS = 30 * DAY_MS
/** The longest cooldown and the longest delay of labels that the settings allow: assumed where a folder does not say with which it was
 *  used. */
export const STATE_AGE_MS_MAX = DAY_MS
/** Of the time that entries of the state are kept, one commit lets at most one part in so many pass: the clock may have been wrong. */
export const AGING_COMMITS_MIN = 4
/** Submit attempts and rejections in the state; beyond it the oldest are deleted, and no longer count. What else it remembers at most:
 *  schema/recovered.ts. */
export const SUBMIT_ATTEMPTS_MAX = 1_000_000
export const STRIKES_MAX = 1_000_000
/** Characters of one chunk of the saved state, unless a single entry is longer. DuckDB has 2048 chunks in memory at once: 64 MB. */
export const STATE_CHUNK_BYTES = 32 * 1024
/** Entries of the state that are read, sent and parsed at once, and those that are written at once: some MB. */
export const STATE_PIECE_ENTRIES = 8_192
export const STATE_BATCH_ENTRIES = 65_536
/** DuckDB's memory to cut the larger chunks of earlier versions, once for each data folder: it reads all of them at once. */
export const STATE_UPGRADE_MEMORY_LIMIT = '2GB'
/** Submissions kept in memory as text for look-ups: chunks, and the rows and bytes of each. At most 16 384 rows in 32 MiB. */
export const RECENT_CHUNKS_MAX = 16
export const RECENT_CHUNK_ROWS = 1_024
export const RECENT_CHUNK_BYTES = 2 * 1024 * 1024
/** JavaScript's heap in the lake process: enough for the sums of a million agents and mints, and a million labels that wait. */
export const LAKE_PROCESS_HEAP_MB = 768
/** Its priority: 0 is normal, 19 the lowest, which would starve flushes on a machine that is always busy. With this one it gets a
 *  thirtieth of a core that the server could use as a whole. */
export const LAKE_PROCESS_NICENESS = 15
/** A lake process that has closed its database and does not end within this time is killed. */
export const LAKE_PROCESS_END_MS = 2_000
/** How long the end of a killed lake process is waited for: a process in a disk operation that hangs does not end. */
export const LAKE_PROCESS_EXIT_MS = 5_000
/** How long a new lake process waits for the end of one whose server was killed, and how often it tries. */
export const PREDECESSOR_WAIT_MS = 10_000
export const PREDECESSOR_POLL_MS = 20
/** Time for the last flush when the store is closed. The next start flushes the rest of the log. */
export const CLOSE_FLUSH_MS = 8_000
/** Delay before a lake process that ended is restarted. Doubled after each failed start, up to the second value. */
export const RESTART_DELAY_MS = 500
export const RESTART_DELAY_MS_MAX = 15_000
/** Bytes of the log that the lake does not hold yet; beyond it commits are refused. */
export const UNFLUSHED_BYTES_MAX = 2 * 1024 ** 3
/** Bytes of the log that one round of a flush writes, unless a single segment is larger. */
export const FLUSH_BYTES_MAX = 64 * 1024 * 1024
/** Market events are recorded while so many times the reserve is free: recording stops long before commits do. */
export const RECORDING_RESERVE_FACTOR = 8
/** How often the free disk space is read. */
export const DISK_LOOK_EVERY_MS = 500
/** Recorded events that are brought to the lake at once: they are one row group of a file. */
export const EVENTS_SLICE_ROWS = LAKE_ROW_GROUP_ROWS
/** One request to the lake process brings slices for about this long; then the server asks again. */
export const EVENTS_ROUND_MS = 5_000
export const EVENTS_TIMEOUT_MS = 120_000
/** DuckDB's memory for the events of one slice. */
export const EVENTS_MEMORY_LIMIT = '256MB'
/** How much of the disk recorded events may use, and how long they stay. */
export const RETAIN_TRADES_DAYS_DEFAULT = 30
export const RETAIN_TRADES_GB_DEFAULT = 20
export const RETAIN_TRADES_DISK_PCT_DEFAULT = 20
/** How far back a gap that is found late marks bars that were written before. */
export const LATE_GAP_MS_MAX = DAY_MS
/** Token profiles that the lake process holds for a flush, and that the server keeps until they are in files. */
export const TOKENS_HELD_MAX = 262_144
export const PROFILES_UNCONFIRMED_MAX = 262_144
/** Of them, those of one message. */
export const PROFILES_SENT_ROWS = 8_192
export const PROFILES_TIMEOUT_MS = 30_000
/** Bytes of one table and date that are buffered before they are written to a file for DuckDB. */
export const SPLIT_BYTES = 1024 * 1024

assert(BARS_FLUSH_ROWS + BARS_BATCH_ROWS <= BARS_HELD_MAX, 'a flush must come before bars are refused')

/** The copy of agents, keys and bans is written anew once more was added to it than it had, and than this. */
export const ACCOUNTS_GROWTH_BYTES_MIN = 1_048_576
/** What is collected of it for one write. */
export const ACCOUNTS_WRITE_BYTES = 262_144

/** Losses that are told one by one; of further ones the number. Acknowledged ones give way first. */
export const LOSSES_MAX = 1_000
/** Of them, those that /health tells. */
export const LOSSES_TOLD_MAX = 10
