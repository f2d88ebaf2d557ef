// The settings of a market whose options leave them open. Every other bound stands in limits.ts of the folder that holds to it.
import { DAY_MS } from '../lib/time.ts'

/** Tokens held at once. One more evicts the token whose last event is oldest. */
export const TOKENS_MAX_DEFAULT = 100_000

/** Versions held at once (96 bytes each); at the maximum the oldest are dropped early and counted. */
export const VERSIONS_MAX_DEFAULT = 8_388_608

/** Closed bars held per token and timeframe; at the maximum the oldest are dropped. Above the API's limit of 1000. */
export const BARS_PER_TOKEN_MAX_DEFAULT = 1_024

/** A token counts as new for this long after its creation. */
export const NEW_WINDOW_MS_DEFAULT = DAY_MS

/**
 * A price of SOL older than this is refused to a trade that has no price in USD. Within a day SOL moves by less than the tolerance of
 * submissions on nearly all days, and programs that push one price a day go on working; an alert warns long before.
 */
export const SOL_PRICE_MAX_AGE_MS_DEFAULT = DAY_MS
