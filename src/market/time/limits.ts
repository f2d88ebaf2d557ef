// How late a trade may be, and every bound of gaps and what happens at it.
import { DAY_MS } from '../../lib/time.ts'

/** A trade may be this much older than its token's newest one; an older one is dropped and counted. */
export const LATE_GRACE_MS = 5_000

/** A token without a trade for this long follows the market's time, so that its bars close. */
export const SILENCE_MS = 10_000

/** Gaps that are remembered. At the maximum the two with the least time between them become one, which covers what lies between. */
export const GAPS_MAX = 1_024

/** Gaps told in one answer. Of more the oldest that have ended are told as one, which covers what lies between; each that goes on is told. */
export const GAPS_ANSWERED_MAX = 32

/** Feeds that may be away at once. A further one counts as back at the time of its event. */
export const FEEDS_AWAY_MAX = 64

/** How long a feed may say that it heals; one that says longer counts as having said this. */
export const HEAL_MS_MAX = DAY_MS

/** Beginnings and ends of gaps that streams can still tell; at the maximum the oldest is forgotten. */
export const GAP_CHANGES_MAX = 64

/** How often market time went back that a checkpoint still tells; at the maximum the oldest is forgotten. */
export const REWOUND_KEPT_MAX = 16
