// In: a judged submission. Out: the rows that tell of it, and its public form read back. Never judges.
import {
  ENRICHED_FIELDS,
  type Enriched,
  SNAPSHOT_FIELDS,
  type SnapshotField,
  type SnapshotValues,
} from '../schema/datapoint.ts'
import type { Submission } from '../schema/submission.ts'
import { LAKE_SCHEMA_VERSION, type Row, SNAPSHOT_COLUMNS, type Write } from '../schema/tables.ts'
import type { Outcome } from '../schema/vocabulary.ts'
import type { Deviation } from './deviation.ts'

export interface Evaluation {
  analysisId: string
  agentId: string
  submission: Submission
  outcome: Outcome
  deviation: Deviation
  /** The server's compared version: the features. */
  compared: SnapshotValues
  enriched: Enriched
  submittedAtMs: number
  /** By the server's own clock; limits refer to it after a restart. */
  receivedAtMs: number
  /** The moment whose version was compared. */
  snapshotAtMs: number
  /** The server's price at `submittedAtMs`, whichever version was compared. */
  priceAtSubmissionUsd: number | null
}

/** The fields of a snapshot, each with its column of that prefix. */
const columnsOf = (prefix: string) =>
  SNAPSHOT_FIELDS.map((field) => [field, `${prefix}${SNAPSHOT_COLUMNS[field].name}`] as const)
const FEATURES = columnsOf('')
const SUBMITTED = columnsOf('submitted_')
const DEVIATIONS = columnsOf('dev_')

/** Puts what is known into `row`; of the rest the store knows that it is null. */
function put(
  row: Row,
  columns: typeof FEATURES,
  values: Partial<Record<SnapshotField, number | null>>,
): void {
  for (const [field, name] of columns) {
    const value = values[field]
    if (value != null) row[name] = value
  }
}

/** A row of `training` or `rejections`; the store fills `known_at` when it becomes durable. */
export function submissionRow(evaluation: Evaluation): Row {
  const { submission, outcome, deviation, enriched } = evaluation
  const { quant } = submission
  const row: Row = {
    analysis_id: evaluation.analysisId,
    agent_id: evaluation.agentId,
    mint: submission.mint,
    submitted_at: evaluation.submittedAtMs,
    snapshot_at: evaluation.snapshotAtMs,
    known_at: evaluation.submittedAtMs,
    received_at: evaluation.receivedAtMs,
    sentiment: submission.sentiment,
    score: submission.score,
    summary: submission.summary,
    outcome,
    validated: outcome === 'validated',
    deviation_pct: deviation.deviationPct,
    risk_level: quant.riskLevel,
    risk_factors: quant.riskFactors,
    buy_pressure: quant.buyPressure,
    volatility_score: quant.volatilityScore,
    liquidity_depth: quant.liquidityDepth,
    holder_concentration: quant.holderConcentration,
    trend_direction: quant.trendDirection,
    volume_profile: quant.volumeProfile,
    schema_version: LAKE_SCHEMA_VERSION,
  }
  put(row, FEATURES, evaluation.compared)
  for (const field of ENRICHED_FIELDS) if (enriched[field] !== null) row[field] = enriched[field]
  put(row, SUBMITTED, submission.snapshot ?? {})
  put(row, DEVIATIONS, deviation.deviations)
  return row
}

/** A row of `training`: what becomes of the price is held against that of the submission. */
export const trainingRow = (evaluation: Evaluation): Row => ({
  ...submissionRow(evaluation),
  price_at_submission_usd: evaluation.priceAtSubmissionUsd,
})

export function ledgerWrite(
  entryId: string,
  agentId: string,
  atMs: number,
  kind: string,
  xp: number,
  analysisId: string | null,
  note: string | null,
): Write {
  const row = {
    entry_id: entryId,
    agent_id: agentId,
    awarded_at: atMs,
    kind,
    xp,
    analysis_id: analysisId,
    note,
    schema_version: LAKE_SCHEMA_VERSION,
  }
  return { table: 'xp_ledger', row }
}

/** The public form of a stored submission; its features under the specification's names. */
export function publicAnalysis(row: Row): Record<string, unknown> {
  return {
    analysisId: row.analysis_id,
    agentId: row.agent_id,
    mint: row.mint,
    outcome: row.outcome,
    validated: row.validated,
    deviationPct: row.deviation_pct,
    sentiment: row.sentiment,
    score: row.score,
    summary: row.summary,
    snapshot: {
      ...Object.fromEntries(SNAPSHOT_FIELDS.map((field) => [field, row[SNAPSHOT_COLUMNS[field].name]])),
      snapshotAt: row.snapshot_at,
    },
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
    enriched: Object.fromEntries(ENRICHED_FIELDS.map((field) => [field, row[field]])),
    createdAt: row.submitted_at,
  }
}
