// Every bound of what readers see, and what happens at it.
import { CHANGES_KEPT_MINUTES } from '../../schema/api/stream.ts'

/** Versions remembered that were served in the millisecond in which they ended; at the maximum those of the oldest are forgotten. */
export const SERVED_VERSIONS_MAX = 4_096

export const SPARKLINE_BARS = 24

/** Rows kept of all choices of fields together, about 300 bytes each, and choices; at either maximum all are forgotten. */
export const FIELD_LINES_MAX = 200_000
export const FIELD_CHOICES_MAX = 256

/** How many changes are kept for followers who are behind, at a rate. */
const keptAt = (perSecond: number): number => 2 ** Math.ceil(Math.log2(CHANGES_KEPT_MINUTES * 60 * perSecond))

/** Entries of the change log. At the maximum the oldest are overwritten, and followers who are further behind get a `resync`. */
export const CHANGE_LOG_ENTRIES_MAX = keptAt(27_000)

/** Evictions in the change log. At the maximum the oldest are forgotten, and followers who are further behind get a `resync`. */
export const EVICTIONS_MAX = keptAt(430)

/** Changes looked at for one chunk of a stream, about two milliseconds of work. A follower far behind catches up over several. */
export const CHANGES_LOOKED_AT_MAX = 32_768
