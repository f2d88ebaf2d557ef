// In: nothing. Out: every bound of the engine, with what happens at it. Never computed from the machine.
import { TIMEFRAME_MS, TIMEFRAMES, type Timeframe } from '../schema/bar.ts'

/** Tokens held at once. One more evicts the token that was touched by an event longest ago. */
export const TOKENS_MAX_DEFAULT = 100_000

/** Mints, per token held, whose count of analyses is known, and that are known to have been held before; at least the
 *  minimum. Of analysed mints the one whose count changed longest ago is forgotten and counts 0; once a mint that gave way
 *  is forgotten, every newcomer counts as having been held until then. */
export const MINTS_KNOWN_PER_TOKEN = 4
export const MINTS_KNOWN_MIN = 65_536

/** A trade may be this much older than its token's newest one and still find its place; an older one is dropped. */
export const LATE_GRACE_MS = 5_000

/** A token that no event touched for this long follows the market's time, so that its bars close without it. */
export const SILENCE_MS = 10_000

/** Versions stay this long after they were superseded: the five minutes of the contract, and the clock skew allowed. */
export const VERSION_RETENTION_MS = 330_000

/** Versions held at once (84 bytes each); at the maximum the oldest go early, and are counted. */
export const VERSIONS_MAX_DEFAULT = 8_388_608

/** Closed bars held per token and timeframe; at the maximum its oldest go. Above the API's limit of 1000. */
export const BARS_PER_TOKEN_MAX_DEFAULT = 1_024

/** Bars in one answer of the engine; asking it for more is a fault of the caller's. The API's own limit is far lower. */
export const BARS_ANSWERED_MAX = 1_000_000

/** Rows of the columns that are used for one answer after the other; a longer one has its own. */
export const BAR_COLUMNS_KEPT = 1_024

/** Text of closed bars kept for those who ask again, all series together; at the maximum the series asked for longest
 *  ago is forgotten, which costs its making when it is asked for again. */
export const BAR_TEXT_BYTES_MAX = 32 * 1024 * 1024

/** Rows of a series whose text is made at first; more when more are asked for. */
export const BAR_TEXT_ROWS_MIN = 128

/** Closed bars of one timeframe held for the whole market, per token of the maximum: when the pool is full, the
 *  market's oldest chunk of that timeframe gives way, whoever owns it. */
export const POOL_BARS_PER_TOKEN: Readonly<Record<Timeframe, number>> = {
  '1s': 20,
  '5s': 16,
  '15s': 12,
  '1m': 20,
  '5m': 20,
  '15m': 20,
  '1h': 12,
  '4h': 6,
  '1d': 4,
}

/** A pool is never smaller than this, so that a market of few tokens has full rings. */
export const POOL_BARS_MIN = 65_536

/** Bars in a chunk: the unit in which a token's history grows. Small for slow timeframes, which few tokens fill. */
export const CHUNK_BARS: Readonly<Record<Timeframe, number>> = {
  '1s': 8,
  '5s': 8,
  '15s': 8,
  '1m': 8,
  '5m': 8,
  '15m': 8,
  '1h': 4,
  '4h': 4,
  '1d': 2,
}

export const RECENT_TRADES_MAX = 20
export const SPARKLINE_BARS = 24

/** Half-life of the hot score. */
export const HOT_HALF_LIFE_MS = 600_000

/** A token counts as new for this long after its creation. */
export const NEW_WINDOW_MS_DEFAULT = 86_400_000

/** The sliding windows: length, and the timeframe whose bars they are summed from, which is their resolution. */
export const WINDOWS = {
  '1m': { lengthMs: 60_000, timeframe: '1s' },
  '1h': { lengthMs: 3_600_000, timeframe: '1m' },
  '6h': { lengthMs: 21_600_000, timeframe: '5m' },
  '24h': { lengthMs: 86_400_000, timeframe: '15m' },
} as const satisfies Record<string, { lengthMs: number; timeframe: Timeframe }>
export const WINDOW_NAMES = ['1m', '1h', '6h', '24h'] as const satisfies readonly (keyof typeof WINDOWS)[]
export type WindowName = (typeof WINDOW_NAMES)[number]

/** Length of each timeframe by its index, finest first. */
export const TIMEFRAME_LENGTHS_MS: readonly number[] = TIMEFRAMES.map((timeframe) => TIMEFRAME_MS[timeframe])

/** Changes on the change log: five minutes at 27 000 a second. At the maximum the oldest are overwritten: who was further
 *  behind gets a `resync`. */
export const CHANGE_LOG_ENTRIES_MAX = 8_388_608

/** Evictions on the change log: five minutes at 430 a second. At the maximum the oldest are forgotten: who was further behind
 *  gets a `resync`. */
export const EVICTIONS_MAX = 131_072

/** Changes looked at for one piece of a stream, some two milliseconds: who is far behind catches up over several. */
export const CHANGES_LOOKED_AT_MAX = 32_768

/**
 * The start of the interval of `lengthMs` that holds `timeMs`. Times lie beyond 2^31, where `%` is a call into the C
 * library: ten times a division. Exact for whole milliseconds, as their quotients are far from the next whole number.
 */
export const intervalStart = (timeMs: number, lengthMs: number): number =>
  Math.floor(timeMs / lengthMs) * lengthMs
