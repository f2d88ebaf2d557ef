// In: nothing. Out: every bound of the submission service, units last, and the asserts on their relations. Never reads a setting.
import { assert } from '../lib/assert.ts'
import { DAY_MS } from '../lib/time.ts'

export const SUBMIT_RATE_MAX = 10
export const SUBMIT_RATE_WINDOW_MS = 60_000
export const MINT_COOLDOWN_MS = 60_000

/** A snapshot may be this old, inclusive. */
export const SNAPSHOT_AGE_MS_MAX = 300_000
/** A client's clock may run ahead by this much, inclusive. */
export const SNAPSHOT_AHEAD_MS_MAX = 30_000

export const STRIKES_MAX = 3
export const STRIKE_WINDOW_MS = DAY_MS
export const SUSPENSION_MS = DAY_MS
export const SUSPENSIONS_MAX = 3
export const SUSPENSION_WINDOW_MS = 30 * DAY_MS
/** With the automatic ban off, strikes only count; beyond this the figure stands still. */
export const STRIKES_KEPT_MAX = 1_000

export const JSON_DEPTH_MAX = 32
/** Faults listed in one answer; further ones are counted only. */
export const FIELD_ERRORS_MAX = 20
/** Risk factors looked at, before duplicates are folded. */
export const RISK_FACTORS_SENT_MAX = 64
/** Characters of a wrong word that the search for a suggestion looks at. */
export const SUGGESTION_CHARACTERS_MAX = 64

export const IDEMPOTENCY_KEY_CHARACTERS_MAX = 255
export const IDEMPOTENCY_TTL_MS = DAY_MS
/** Remembered answers; beyond it the oldest is forgotten, and its repetition would count as a new submission. */
export const IDEMPOTENCY_ANSWERS_MAX = 50_000

/** Submissions waiting for the store; beyond it the answer is 503 `store_unavailable`. */
export const SUBMISSIONS_IN_FLIGHT_MAX = 10_000
/** Mints whose coverage is counted; beyond it further mints earn no bonus, so that none is paid twice. */
export const COVERED_MINTS_MAX = 1_000_000
/** Accepted analyses that the public board counts as its goal. */
export const ANALYSIS_GOAL = 10_000
/** Rows of a board; the rest is not kept in order. */
export const LEADERBOARD_ROWS_MAX = 500
/** Units that one award of the operator may carry. */
export const AWARD_TIMES_MAX = 1_000_000

/** Registered agents; beyond it registration answers `registration_closed`. */
export const AGENTS_MAX = 1_000_000
/** How long a rotated key lives on. */
export const ROTATED_KEY_LIFE_MS = DAY_MS
/** Rotations of one agent within a day; beyond it 429 `register_rate_limited`. */
export const ROTATIONS_PER_DAY_MAX = 10
/** Keys of one agent that are remembered, revoked ones included; beyond it the oldest is unknown rather than revoked. */
export const KEYS_REMEMBERED_MAX = 64

assert(STRIKES_MAX < STRIKES_KEPT_MAX, 'strikes must be countable up to the suspension')
assert(SUSPENSION_MS >= STRIKE_WINDOW_MS, 'a suspension must outlive the strikes that caused it')
assert(KEYS_REMEMBERED_MAX > 2 * ROTATIONS_PER_DAY_MAX, 'a rotated key must be remembered while it lives')
