// Every bound of what is known of tokens besides how many there are, and what happens at it.
import { MINUTE_MS } from '../../lib/time.ts'

/**
 * Mints remembered besides the tokens held, per token of the maximum and at least: those whose analyses were counted, and those
 * that were evicted. At the maximum the analysed mint whose count changed longest ago is forgotten, and counts 0; the mint evicted
 * longest ago is forgotten, and from then on every new mint counts as held until that eviction.
 */
export const MINTS_KNOWN_PER_TOKEN = 4
export const MINTS_KNOWN_MIN = 65_536

/** How long versions are kept after they were superseded: the contract's five minutes, and the clock skew that is allowed. */
export const VERSION_RETENTION_MS = 330_000

/** UTF-16 units that a search reads of each of a token's mint, symbol and name; words beyond are not found. A text may be longer
 *  only if it has characters that stand for several others. */
export const SEARCHED_CHARACTERS_MAX = 512

/** Tokens with new texts that the search has not taken in yet; at the maximum it takes in all, a few milliseconds. */
export const SEARCH_PENDING_MAX = 512

/**
 * Prices of SOL are remembered for this long, since what a feed missed may come later, and while one heals all of them are. At the
 * maximum the oldest but the first is forgotten.
 */
export const SOL_PRICES_KEPT_MS = 15 * MINUTE_MS
export const SOL_PRICES_MAX = 4_096
