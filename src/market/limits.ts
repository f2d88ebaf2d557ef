// Every bound of the engine, and what happens at it. None depends on the machine.
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../lib/time.ts'
import { CHANGES_KEPT_MINUTES } from '../schema/api/stream.ts'
import { TIMEFRAME_MS, TIMEFRAMES, type Timeframe } from '../schema/bar.ts'

export { RECENT_TRADES_MAX } from '../schema/datapoint.ts'
export { HOT_HALF_LIFE_MS } from '../schema/market-item.ts'

/** Tokens held at once. One more evicts the token whose last event is oldest. */
export const TOKENS_MAX_DEFAULT = 100_000

/**
 * Mints remembered besides the tokens held, per token of the maximum and at least: those whose analyses were counted, and those
 * that were evicted. At the maximum the analysed mint whose count changed longest ago is forgotten, and counts 0; the mint evicted
 * longest ago is forgotten, and from then on every new mint counts as held until that eviction.
 */
export const MINTS_KNOWN_PER_TOKEN = 4
export const MINTS_KNOWN_MIN = 65_536

/** A trade may be this much older than its token's newest one; an older one is dropped and counted. */
export const LATE_GRACE_MS = 5_000

/** A token without a trade for this long follows the market's time, so that its bars close. */
export const SILENCE_MS = 10_000

/** How long versions are kept after they were superseded: the contract's five minutes, and the clock skew that is allowed. */
export const VERSION_RETENTION_MS = 330_000

/** Versions held at once (96 bytes each); at the maximum the oldest are dropped early and counted. */
export const VERSIONS_MAX_DEFAULT = 8_388_608

/** Versions remembered that were served in the millisecond in which they ended; at the maximum those of the oldest are forgotten. */
export const SERVED_VERSIONS_MAX = 4_096

/** Closed bars held per token and timeframe; at the maximum the oldest are dropped. Above the API's limit of 1000. */
export const BARS_PER_TOKEN_MAX_DEFAULT = 1_024

/** Bars in one answer of the engine; asking for more fails an assertion. The API's own limit is far lower. */
export const BARS_ANSWERED_MAX = 1_000_000

/** Rows of the columns that answers share, one after the other; a longer answer allocates its own. */
export const BAR_COLUMNS_KEPT = 1_024

/** Cached text of closed bars, all series together; at the maximum the series that was read longest ago is dropped, and rendered
 *  again when it is read again. */
export const BAR_TEXT_BYTES_MAX = 32 * 1024 * 1024

/** Rows of a series whose text is cached at first; more are when a reader wants more. */
export const BAR_TEXT_ROWS_MIN = 128

/** Closed bars of each timeframe held for the whole market, per token of the maximum. When the pool is full, the market's oldest
 *  chunk of that timeframe is dropped, whichever token it belongs to, and its windows of such bars are unknown until they have passed. */
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

/** The least size of a pool, so that in a market of few tokens each can hold its maximum. */
export const POOL_BARS_MIN = 65_536

/** Bars in a chunk, the unit in which a token's history grows. Smaller for long timeframes, of which most tokens have few bars. */
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

/** UTF-16 units that a search reads of each of a token's mint, symbol and name; words beyond are not found. A text may be longer
 *  only if it has characters that stand for several others. */
export const SEARCHED_CHARACTERS_MAX = 512

/** Tokens with new texts that the search has not taken in yet; at the maximum it takes in all, a few milliseconds. */
export const SEARCH_PENDING_MAX = 512

export const SPARKLINE_BARS = 24

/** A token counts as new for this long after its creation. */
export const NEW_WINDOW_MS_DEFAULT = DAY_MS

/**
 * A price of SOL older than this is refused to a trade that has no price in USD. Within a day SOL moves by less than the tolerance of
 * submissions on nearly all days, and programs that push one price a day go on working; an alert warns long before.
 */
export const SOL_PRICE_MAX_AGE_MS_DEFAULT = DAY_MS

/** Wallets of a token that are counted exactly, in a window that has no more. Of more the number is an estimate. */
export const WALLETS_EXACT_MAX = 64

/**
 * Words of 32 bits for the estimates of all tokens, per token of the maximum and at least. A token whose table would have to grow
 * beyond has no number of wallets, but in windows that have few, until there is room and its window is covered again. With the 688
 * bytes of each token's block 100 000 tokens take 149 MB.
 */
export const COUPON_WORDS_PER_TOKEN = 200
export const COUPON_WORDS_MIN = 4_194_304

/** The sliding windows: their length, and the timeframe of the bars they consist of, which is their resolution. */
export const WINDOWS = {
  '1m': { lengthMs: MINUTE_MS, timeframe: '1s' },
  '1h': { lengthMs: HOUR_MS, timeframe: '1m' },
  '6h': { lengthMs: 6 * HOUR_MS, timeframe: '5m' },
  '24h': { lengthMs: DAY_MS, timeframe: '15m' },
} as const satisfies Record<string, { lengthMs: number; timeframe: Timeframe }>
/** One more that lists show. It is no part of what is saved. */
export const LIST_WINDOWS = { ...WINDOWS, '5m': { lengthMs: 5 * MINUTE_MS, timeframe: '15s' } } as const
export type ListWindowName = keyof typeof LIST_WINDOWS

/** Without a reader for this long (market time), the order of a figure is forgotten. */
export const FIGURE_ORDER_IDLE_MS = 10 * MINUTE_MS
/** Of tokens whose figure time alone has moved, so many are ranked anew in a step of market time, and before a read; the others
 *  in the next. Tokens that an event has changed are all ranked before a read. */
export const RANKED_PER_STEP_MAX = 64
export const RANKED_PER_READ_MAX = 2_048

/** Rows kept of all choices of fields together, about 300 bytes each, and choices; at either maximum all are forgotten. */
export const FIELD_LINES_MAX = 200_000
export const FIELD_CHOICES_MAX = 256

/** The windows over which a token's trades are summed. */
export const WINDOW_NAMES = ['1m', '1h', '6h', '24h'] as const satisfies readonly (keyof typeof WINDOWS)[]
export type WindowName = (typeof WINDOW_NAMES)[number]

/** Length of each timeframe by its index, finest first. */
export const TIMEFRAME_LENGTHS_MS: readonly number[] = TIMEFRAMES.map((timeframe) => TIMEFRAME_MS[timeframe])

/** How many changes are kept for followers who are behind, at a rate. */
const keptAt = (perSecond: number): number => 2 ** Math.ceil(Math.log2(CHANGES_KEPT_MINUTES * 60 * perSecond))

/** Entries of the change log. At the maximum the oldest are overwritten, and followers who are further behind get a `resync`. */
export const CHANGE_LOG_ENTRIES_MAX = keptAt(27_000)

/** Evictions in the change log. At the maximum the oldest are forgotten, and followers who are further behind get a `resync`. */
export const EVICTIONS_MAX = keptAt(430)

/** Gaps that are remembered. At the maximum the two with the least time between them become one, which covers what lies between. */
export const GAPS_MAX = 1_024

/** Gaps told in one answer. Of more the oldest that have ended are told as one, which covers what lies between; each that goes on is told. */
export const GAPS_ANSWERED_MAX = 32

/** Feeds that may be away at once. A further one counts as back at the time of its event. */
export const FEEDS_AWAY_MAX = 64

/** How long a feed may say that it heals; one that says longer counts as having said this. */
export const HEAL_MS_MAX = DAY_MS

/**
 * Seconds with trades of all tokens that stay open because a feed heals, besides the last PENDING_SECONDS of each (80 bytes each). At
 * the maximum nothing heals any more: gaps that are open stay, as if their deadlines had passed.
 */
export const HELD_SECONDS_MAX = 1_048_576

/**
 * Prices of SOL are remembered for this long, since what a feed missed may come later, and while one heals all of them are. At the
 * maximum the oldest but the first is forgotten.
 */
export const SOL_PRICES_KEPT_MS = 15 * MINUTE_MS
export const SOL_PRICES_MAX = 4_096

/** Beginnings and ends of gaps that streams can still tell; at the maximum the oldest is forgotten. */
export const GAP_CHANGES_MAX = 64

/** Changes looked at for one chunk of a stream, about two milliseconds of work. A follower far behind catches up over several. */
export const CHANGES_LOOKED_AT_MAX = 32_768

/**
 * The start of the interval of `lengthMs` that holds `timeMs`. Uses a division, because for numbers beyond 2^31 `%` calls the C
 * library, which takes ten times as long. Exact for whole milliseconds: their quotients are far from the next whole number.
 */
export const intervalStart = (timeMs: number, lengthMs: number): number =>
  Math.floor(timeMs / lengthMs) * lengthMs
