// In: nothing. Out: every limit of the feeds, units last, with what happens at each. Never reads the environment:
// what an operator may change comes in as options.
import { assert } from '../lib/assert.ts'

/** A push body above this is refused whole: 413. */
export const INGEST_BODY_BYTES_MAX = 16 * 1024 * 1024
/** A frame of a held connection above this is refused: the server closes the connection. */
export const INGEST_FRAME_BYTES_MAX = 1024 * 1024
/** Faults listed in an answer; the rest are counted. */
export const INGEST_ERRORS_MAX = 100
/** No valid NDJSON record is shorter; such lines are refused unparsed once the list of faults is full. */
export const INGEST_LINE_CHARS_MIN = 30
/** Records taken in one turn of the event loop, so that readers are never held up for long. */
export const INGEST_SLICE_RECORDS = 4_096
/** A record whose source time lies further ahead of its receipt is refused: `ts_in_future`. */
export const TS_AHEAD_MS_MAX = 60_000
/** Mints known to be well formed; at the maximum the older half is forgotten and checked anew. */
export const MINT_CACHE_ENTRIES_MAX = 200_000

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

assert(INGEST_FRAME_BYTES_MAX <= INGEST_BODY_BYTES_MAX, 'a frame is never larger than a body')
assert(SIMULATOR_TICK_MS < SIMULATOR_LAG_MS_MAX, 'the simulator ticks more often than it gives up')
