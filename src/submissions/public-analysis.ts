// What readers see of a stored submission. Names are those of the JSON that clients read.

import { type ListedRow, type ListedSubmission, OUTCOME_LABELS } from '../schema/api/submission-list.ts'
import { ENRICHED_FIELDS } from '../schema/datapoint.ts'
import type { SubmissionRow } from '../schema/tables.ts'
import { COMPARED_COLUMNS } from './rows.ts'
import type { ShownAnalysis } from './types.ts'

/** When others may see the labels, Unix ms; null: the reader sees them. */
type AvailableAt = number | null

/** Everything that the agent thought up: sentiment, score, summary and quant; null while they are withheld. */
function labels(row: ListedRow, labelsAvailableAt: AvailableAt) {
  if (labelsAvailableAt !== null)
    return { sentiment: null, score: null, summary: null, quant: null, labelsAvailableAt }
  return {
    sentiment: row.sentiment,
    score: row.score,
    summary: row.summary,
    quant: {
      riskLevel: row.risk_level,
      riskFactors: row.risk_factors,
      buyPressure: row.buy_pressure,
      volatilityScore: row.volatility_score,
      liquidityDepth: row.liquidity_depth,
      holderConcentration: row.holder_concentration,
      trendDirection: row.trend_direction,
      volumeProfile: row.volume_profile,
    },
    labelsAvailableAt,
  }
}

const head = (row: ListedRow) => ({
  analysisId: row.analysis_id,
  agentId: row.agent_id,
  mint: row.mint,
  outcome: row.outcome,
  validated: row.validated,
  deviationPct: row.deviation_pct,
})

/** One analysis with its features, which have the DataPoint's names. */
export function publicAnalysis(row: SubmissionRow, labelsAvailableAt: AvailableAt): Record<string, unknown> {
  return {
    ...head(row),
    ...labels(row, labelsAvailableAt),
    snapshot: {
      ...Object.fromEntries(COMPARED_COLUMNS.map(([field, column]) => [field, row[column]])),
      snapshotAt: row.snapshot_at,
    },
    enriched: Object.fromEntries(ENRICHED_FIELDS.map((field) => [field, row[field]])),
    createdAt: row.submitted_at,
  }
}

const NO_OUTCOMES = Object.fromEntries(OUTCOME_LABELS.map((name) => [name, null]))

/** One analysis of a list: without features, with what it earned and what the price did afterwards. */
export function listedAnalysis(
  { row, xp, outcomes }: ListedSubmission,
  labelsAvailableAt: AvailableAt,
): ShownAnalysis {
  return {
    ...head(row),
    xpEarned: xp,
    ...labels(row, labelsAvailableAt),
    outcomes: outcomes ?? NO_OUTCOMES,
    createdAt: row.submitted_at,
  }
}
