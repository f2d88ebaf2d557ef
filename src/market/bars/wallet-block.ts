// All that is known of a token's wallets but its table lies in one block of words of 32 bits, so that a sighting touches few lines of
// memory: eight figures, the tags of the latest wallets, and these wallets. Minutes are those since 1970.
import { assert } from '../../lib/assert.ts'
import { MINUTE_MS } from '../../lib/time.ts'
import { WALLETS_EXACT_MAX } from './limits.ts'

/** The latest minute of a sighting. */
export const NEWEST = 0
/** Sightings before this minute may be missing. */
export const WHOLE_FROM = 1
/** Every wallet that was seen in this minute or later is among the latest. */
export const EXACT_FROM = 2
/** How many wallets are among the latest, and the place of the one that was seen longest ago. */
export const LATEST_COUNT = 3
export const LATEST_FIRST = 4
/** The table's address plus its size as a power of two, which is less than the least distance of addresses; 0: there is none. */
export const TABLE = 5
/** Coupons in the table. */
export const TABLE_COUNT = 6
/** Coupons that were drawn before this minute may be missing in the table. */
export const TABLE_FROM = 7

export const FIGURES = 8
/** Behind the figures a byte of the hash of each of the latest wallets, its tag: four are compared at a time. */
export const TAGS = FIGURES
const TAG_WORDS = WALLETS_EXACT_MAX / 4
assert(
  TAG_WORDS >= 1 && Number.isInteger(Math.log2(WALLETS_EXACT_MAX)),
  'the wallets that are counted exactly fill a ring',
)
/**
 * The latest wallets are a ring, in order of the minutes in which they were seen. Each is two words: the first of its hash, and one of
 * half of the second and the minute.
 */
export const RING = TAGS + TAG_WORDS
/** A number has two words. */
export const WALLET_NUMBERS = RING / 2 + WALLETS_EXACT_MAX

/** Of a minute 16 bits are kept with each wallet and coupon. */
export const MINUTE_MASK = 0xffff

/** The last minute that a word can tell is in the year 6053. */
const MINUTE_MAX = 2 ** 31 - 2
export const minuteOf = (timeMs: number): number => Math.min(Math.floor(timeMs / MINUTE_MS), MINUTE_MAX)
