// Every bound of submissions and accounts. Some are defaults of settings.
import { assert } from '../lib/assert.ts'
import { DAY_MS } from '../lib/time.ts'

export {
  IDEMPOTENCY_KEY_CHARACTERS_MAX,
  IDEMPOTENCY_RESPONSES_MAX,
  IDEMPOTENCY_TTL_MS,
  SUBMIT_JITTER_MS,
} from '../schema/api/submissions.ts'
export { SNAPSHOT_AGE_MS_MAX } from '../schema/datapoint.ts'
export { COOLDOWNS_MAX, COVERED_MINTS_MAX, LABELS_WITHHELD_MAX } from '../schema/recovered.ts'

/** What an agent may submit, where the operator does not say otherwise; 0 switches each off. */
export const SUBMIT_LIMITS = {
  /** Submissions on all mints within the window. Beyond: 429. */
  rate: 10,
  /** How long it waits between two on the same mint. Before: 429. */
  cooldownMs: 60_000,
  /** Strikes within their window until it is suspended, and suspensions within theirs until it is banned. */
  strikes: 3,
  suspensions: 3,
}
export type SubmitLimits = Readonly<typeof SUBMIT_LIMITS>

export const SUBMIT_RATE_WINDOW_MS = 60_000

/** A client's clock may run ahead by this much, inclusive. */
export const SNAPSHOT_AHEAD_MS_MAX = 30_000

export const STRIKE_WINDOW_MS = DAY_MS
/** How long an agent is suspended. */
export const SUSPENSION_MS = DAY_MS
export const SUSPENSION_WINDOW_MS = 30 * DAY_MS
/** Strikes counted for one agent. It is reached only where strikes do not suspend. */
export const STRIKES_COUNTED_MAX = 1_000

/** Levels of nesting in a body; one with more is refused. */
export const JSON_DEPTH_MAX = 32
/** Faults listed in one answer. Further ones are only counted. */
export const FIELD_ERRORS_MAX = 20
/** Risk factors accepted before duplicates are removed. */
export const RISK_FACTORS_SENT_MAX = 64
/** Characters of a wrong value that are searched for a suggestion. */
export const SUGGESTION_CHARACTERS_MAX = 64

/** Submissions being processed. Beyond it the answer is 503 `store_unavailable`. */
export const SUBMISSIONS_IN_FLIGHT_MAX = 10_000
/** How long others do not see the labels of a submission. */
export const LABELS_DELAY_MS = 600_000
/** Cooldowns listed in an agent's standing: those that end first. */
export const COOLDOWNS_LISTED_MAX = 100
/** Accepted analyses that the public leaderboard shows as its goal. */
export const ANALYSIS_GOAL = 10_000

/** Registered agents. Beyond it registration answers `registration_closed`. */
export const AGENTS_MAX = 1_000_000
/** How long a key stays valid after its rotation. */
export const ROTATED_KEY_LIFE_MS = DAY_MS
/** Rotations of one agent within a day. Beyond it the answer is 429 `register_rate_limited`. */
export const ROTATIONS_PER_DAY_MAX = 10
/** Keys of one agent that are remembered, revoked ones included. Beyond it the oldest counts as unknown, not as revoked. */
export const KEYS_REMEMBERED_MAX = 64
/** Where two computations of a time differ by more than this, the wall clock was set in between. */
export const WALL_CLOCK_STEP_MS = 1_000

assert(SUBMIT_LIMITS.strikes < STRIKES_COUNTED_MAX, 'strikes must be countable up to the suspension')
assert(SUSPENSION_MS >= STRIKE_WINDOW_MS, 'a suspension must outlive the strikes that caused it')
assert(KEYS_REMEMBERED_MAX > 2 * ROTATIONS_PER_DAY_MAX, 'a rotated key must be remembered while it lives')
