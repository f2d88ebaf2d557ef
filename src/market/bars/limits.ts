// The sliding windows, and every bound of bars and wallets and what happens at it.
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../lib/time.ts'
import type { Timeframe } from '../../schema/bar.ts'

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

/**
 * Seconds with trades of all tokens that stay open because a feed heals, besides the last PENDING_SECONDS of each (80 bytes each). At
 * the maximum nothing heals any more: gaps that are open stay, as if their deadlines had passed.
 */
export const HELD_SECONDS_MAX = 1_048_576

/** The sliding windows: their length, and the timeframe of the bars they consist of, which is their resolution. */
export const WINDOWS = {
  '1m': { lengthMs: MINUTE_MS, timeframe: '1s' },
  '1h': { lengthMs: HOUR_MS, timeframe: '1m' },
  '6h': { lengthMs: 6 * HOUR_MS, timeframe: '5m' },
  '24h': { lengthMs: DAY_MS, timeframe: '15m' },
} as const satisfies Record<string, { lengthMs: number; timeframe: Timeframe }>
export type WindowName = keyof typeof WINDOWS

/** One more that lists show. It is no part of what is saved. */
export const LIST_WINDOWS = { ...WINDOWS, '5m': { lengthMs: 5 * MINUTE_MS, timeframe: '15s' } } as const
export type ListWindowName = keyof typeof LIST_WINDOWS

/** Wallets of a token that are counted exactly, in a window that has no more. Of more the number is an estimate. */
export const WALLETS_EXACT_MAX = 64

/**
 * Words of 32 bits for the estimates of all tokens, per token of the maximum and at least. A token whose table would have to grow
 * beyond has no number of wallets, but in windows that have few, until there is room and its window is covered again. With the 688
 * bytes of each token's block 100 000 tokens take 149 MB.
 */
export const COUPON_WORDS_PER_TOKEN = 200
export const COUPON_WORDS_MIN = 4_194_304
