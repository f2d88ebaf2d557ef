// Lists of submissions, newest first: what is asked of the store, and what it answers. Times are Unix ms.
import type { TableRow } from '../tables.ts'
import { HORIZON_NAMES } from '../vocabulary.ts'

/** The columns of a submission that a list shows. Training and rejections both have them. */
export const LISTED_COLUMNS = [
  'analysis_id',
  'agent_id',
  'mint',
  'submitted_at',
  'received_at',
  'known_at',
  'outcome',
  'validated',
  'deviation_pct',
  'sentiment',
  'score',
  'summary',
  'risk_level',
  'risk_factors',
  'buy_pressure',
  'volatility_score',
  'liquidity_depth',
  'holder_concentration',
  'trend_direction',
  'volume_profile',
] as const satisfies readonly (keyof TableRow<'training'> & keyof TableRow<'rejections'>)[]
export type ListedRow = Pick<TableRow<'training'>, (typeof LISTED_COLUMNS)[number]>

/** The columns of `outcomes` that a list shows: what the price did after an accepted submission. */
export const OUTCOME_LABELS = [
  ...HORIZON_NAMES.map((name) => `fwd_ret_${name}` as const),
  'fwd_max_drawdown_24h',
  'dead_24h',
] as const satisfies readonly (keyof TableRow<'outcomes'>)[]
export type OutcomeLabels = Pick<TableRow<'outcomes'>, (typeof OUTCOME_LABELS)[number]>

/** The place of a submission in every list: by time, equal times by identity. */
export interface SubmissionKey {
  submittedAtMs: number
  /** Empty: before every submission of that millisecond. */
  analysisId: string
}

export interface SubmissionQuery {
  /** Null: of all agents. */
  agentId: string | null
  /** Null: on all mints. */
  mint: string | null
  /** Only submissions older than this; null: from the newest on. */
  before: SubmissionKey | null
  limit: number
}

export interface ListedSubmission {
  row: ListedRow
  /** What it earned; null: not known, because its row of the ledger was lost. */
  xp: number | null
  /** Null: nothing is known yet, or it was rejected. */
  outcomes: OutcomeLabels | null
}

/** One page. Pages neither repeat nor leave out a submission, whatever is added or flushed meanwhile. */
export interface SubmissionPage {
  submissions: ListedSubmission[]
  /** Where the next page begins; null: this is the last one. */
  next: SubmissionKey | null
  /** All submissions since this time were searched; null: all that there are. */
  searchedToMs: number | null
}

export const submissionKeyOf = (row: ListedRow): SubmissionKey => ({
  submittedAtMs: row.submitted_at,
  analysisId: row.analysis_id,
})

/** Negative where `a` is newer and so comes first. */
export const compareKeys = (a: SubmissionKey, b: SubmissionKey): number =>
  b.submittedAtMs - a.submittedAtMs ||
  (a.analysisId > b.analysisId ? -1 : a.analysisId < b.analysisId ? 1 : 0)
