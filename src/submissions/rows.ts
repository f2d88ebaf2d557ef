// Rows of training and rejections.
import {
  ENRICHED_FIELDS,
  SNAPSHOT_FIELDS,
  type SnapshotValues,
  type SourcedEnriched,
} from '../schema/datapoint.ts'
import type { Submission } from '../schema/submission.ts'
import { LAKE_SCHEMA_VERSION, type NewRow, SNAPSHOT_COLUMNS } from '../schema/tables.ts'
import type { Outcome } from '../schema/vocabulary.ts'
import type { Comparison } from './deviation.ts'

/** A valid submission, compared with the market. */
export interface Evaluation {
  analysisId: string
  agentId: string
  submission: Submission
  /** Fields that the client sent and only the server may fill. */
  ignored: string[]
  outcome: Outcome
  deviation: Comparison
  enriched: SourcedEnriched
  /** By the market's time or the wall clock, whichever is later. Unix ms. */
  submittedAtMs: number
  /** By the wall clock, Unix ms. Limits refer to it after a restart. */
  receivedAtMs: number
  /** When the compared version was in effect, Unix ms. */
  snapshotAtMs: number
  /** The market's price at `submittedAtMs`, whichever version was compared. */
  priceAtSubmissionUsd: number | null
}

/** The columns that training and rejections share. */
type CommonRow = NewRow<'training'>
type ValuePrefix = '' | 'submitted_' | 'dev_'

const prefixColumns = <Prefix extends ValuePrefix>(prefix: Prefix) =>
  SNAPSHOT_FIELDS.map((field) => [field, `${prefix}${SNAPSHOT_COLUMNS[field].name}`] as const)

/** Each field of a snapshot with its columns: the compared value, the client's value, the deviation. */
export const COMPARED_COLUMNS = prefixColumns('')
const SUBMITTED_COLUMNS = prefixColumns('submitted_')
const DEVIATION_COLUMNS = prefixColumns('dev_')

type ValueColumns = typeof COMPARED_COLUMNS | typeof SUBMITTED_COLUMNS | typeof DEVIATION_COLUMNS

/** Sets the columns of the known values. The store writes null for the others. */
function setValues(
  row: CommonRow,
  columns: ValueColumns,
  values: { readonly [Field in keyof SnapshotValues]?: number | null | undefined },
): void {
  for (const [field, column] of columns) {
    const value = values[field]
    if (value != null) row[column] = value
  }
}

function setEnriched(row: CommonRow, enriched: SourcedEnriched): void {
  for (const field of ENRICHED_FIELDS) setKnown(row, field, enriched[field])
  setKnown(row, 'enriched_source', enriched.enriched_source)
  setKnown(row, 'enriched_at', enriched.enriched_at)
}

function setKnown<Name extends keyof CommonRow>(
  row: CommonRow,
  name: Name,
  value: CommonRow[Name] | null,
): void {
  if (value !== null) row[name] = value
}

/** The columns of `training` and `rejections` that both have. */
function commonRow(evaluation: Evaluation): CommonRow {
  const { submission, outcome, deviation } = evaluation
  const { quant } = submission
  const row: CommonRow = {
    analysis_id: evaluation.analysisId,
    agent_id: evaluation.agentId,
    mint: submission.mint,
    submitted_at: evaluation.submittedAtMs,
    snapshot_at: evaluation.snapshotAtMs,
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
  setValues(row, COMPARED_COLUMNS, deviation.compared)
  setEnriched(row, evaluation.enriched)
  if (submission.snapshot) setValues(row, SUBMITTED_COLUMNS, submission.snapshot)
  setValues(row, DEVIATION_COLUMNS, deviation.deviations)
  return row
}

/** The row of an accepted submission. */
export const trainingRow = (evaluation: Evaluation): NewRow<'training'> => ({
  ...commonRow(evaluation),
  price_at_submission_usd: evaluation.priceAtSubmissionUsd,
})

/** The row of a rejected submission. `strikes`: the agent's within 24 h, this one included. */
export const rejectionRow = (evaluation: Evaluation, strikes: number): NewRow<'rejections'> => ({
  ...commonRow(evaluation),
  strikes,
})
