import { MINUTE_MS } from '../../lib/time.ts'

/** Without a reader for this long (market time), the order of a figure is forgotten. */
export const FIGURE_ORDER_IDLE_MS = 10 * MINUTE_MS

/** Of tokens whose figure time alone has moved, so many are ranked anew in a step of market time, and before the first read at a
 *  market time; the others in the next. Tokens that an event has changed are all ranked before a read. */
export const RANKED_PER_STEP_MAX = 64
export const RANKED_PER_READ_MAX = 2_048
