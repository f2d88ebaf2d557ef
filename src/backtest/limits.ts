// Bounds and defaults of a backtest. Times are real ones unless a name says market.
import { HOUR_MS, MINUTE_MS } from '../lib/time.ts'

/** Market time of one step. */
export const MARKET_STEP_MS_DEFAULT = 1_000
/** How long every program has to be silent before the market goes on, and how long it waits for that at most. */
export const SILENCE_MS_DEFAULT = 20
export const STEP_WAIT_MS_MAX_DEFAULT = 5_000
/** How long a program that neither waits nor follows a stream has to be silent at least: it is about to ask, on a machine that may be busy. */
export const TURN_MS_MIN = 250
/** Market time between two flushes of the lake, with which outcomes appear. */
export const LAKE_FLUSH_MARKET_MS = MINUTE_MS
/** Market time for which the market goes on after the programs have ended, so that their last analyses get outcomes. */
export const TAIL_MARKET_MS_DEFAULT = HOUR_MS
/** Market time of one step while nobody watches. */
export const UNWATCHED_STEP_MS = MINUTE_MS
/** How long a program may take to its first request. The market begins without it then. */
export const FIRST_REQUEST_MS_MAX = 15_000
/** How long a program may take to end after it was asked to, before it is killed. */
export const PROGRAM_STOP_MS_MAX = 5_000
/** How often a program that is pending is looked at. */
export const PENDING_LOOK_MS = 1
/** Programs that may compete. */
export const PROGRAMS_MAX = 16
/** What was served of a token is remembered for so many tokens, and so many times of each. */
export const SERVED_MINTS_MAX = 100_000
export const SERVED_TIMES_MAX = 16
/** Steps whose real time is remembered, for snapshots that are stamped with it. */
export const STEPS_REMEMBERED_MAX = 65_536
/** How far a stamp of a program's own clock may be off, ms. */
export const STAMP_SLACK_MS = 2
/** Market time between two analyses of a baseline, and the hottest tokens of which it takes one. */
export const BASELINE_EVERY_MARKET_MS = 10_000
export const BASELINE_TOKENS = 100
/** Of an interval. */
export const BOOTSTRAP_ROUNDS = 1_000
/** Calls and tokens below which a group is too small to say a number of it. */
export const CALLS_MIN = 20
export const TOKENS_MIN = 10
/** Calls that the lists of the best and of the worst have. */
export const CALLS_LISTED = 20
/** What a paper portfolio begins with, what it puts on each bullish call, USD, and what each purchase and each sale costs, a share. */
export const PORTFOLIO_USD = 10_000
export const STAKE_USD = 100
export const TRADE_COST = 0.015
/** Points of a line in the report, of which `report.json` has no more either, and columns of a chart that counts. */
export const CHART_POINTS_MAX = 400
export const CHART_COLUMNS = 40
/** Agents of which text and page have more than a row: all programs and the baselines, and the first that programs have registered. */
export const AGENTS_DETAILED_MAX = 20
/** Market time between two moments of which features are taken, and tokens that are read at once. */
export const MOMENTS_EVERY_MARKET_MS = 10 * MINUTE_MS
export const MOMENT_TOKENS_SLICE = 1_000
