// Compares the labels of accepted submissions with what the price did afterwards. Submissions on one token share its price, so
// each token counts once in a group, with the mean of its submissions: intervals would be too narrow otherwise.
import type { DuckDBConnection } from '@duckdb/node-api'
import {
  CALIBRATION_AGENTS_MIN,
  CALIBRATION_SUBMISSIONS_MIN,
  type Calibration,
  type CalibrationGroup,
} from '../../schema/api/calibration.ts'
import { TABLES } from '../../schema/tables.ts'
import { HORIZON_NAMES } from '../../schema/vocabulary.ts'
import { queryRows, type ResultRow } from '../duckdb/query.ts'
import { literal } from '../duckdb/sql.ts'
import { utcDate } from '../lake/lake-files.ts'
import type { LiveFileRead, LiveFileReader } from '../lake/live-file-reader.ts'
import { type ReadableFile, selectAllRows, selectNewestRows } from '../lake/parquet-sql.ts'
import { CALIBRATION_MS } from '../limits.ts'
import type { ShownLabels } from '../types.ts'

/** Of the normal distribution, for intervals that hold the mean in 95 of 100 cases. */
const Z_95 = 1.96

export const GROUP_COLUMNS = {
  kind: 'string',
  label: 'string',
  horizon: 'string',
  count: 'number',
  tokens: 'number',
  meanPct: 'number?',
  halfWidthPct: 'number?',
} as const

export interface CalibrationQuery extends ShownLabels {
  nowMs: number
}

/** A market that has had no event yet is at 0. */
export const sinceMsOf = ({ asOfMs }: ShownLabels): number => Math.max(0, asOfMs - CALIBRATION_MS)

/** The files of the last CALIBRATION_MS. */
export const recentFiles = (query: CalibrationQuery): Pick<LiveFileRead<never>, 'nowMs' | 'isNeeded'> => ({
  nowMs: query.nowMs,
  isNeeded: ({ date }) => date >= utcDate(sinceMsOf(query)),
})

/**
 * Runs `work` over the submissions of the last CALIBRATION_MS whose labels anybody may see.
 * @param agentIds whose they are; null: of all agents
 * @param work gets SQL of a row for each of them and horizon whose return is known, in percent
 */
export const readEvaluated = <Result>(
  connection: DuckDBConnection,
  reader: LiveFileReader,
  query: CalibrationQuery,
  agentIds: readonly string[] | null,
  work: (evaluated: string) => Promise<Result>,
): Promise<Result> =>
  reader.readConcurrently(connection, {
    ...recentFiles(query),
    table: TABLES.training,
    work: (training) =>
      reader.readConcurrently(connection, {
        ...recentFiles(query),
        table: TABLES.outcomes,
        work: (outcomes) => work(evaluatedSql(training, outcomes, query, agentIds)),
      }),
  })

/** The groups of the submissions of the last CALIBRATION_MS that are large enough. */
export async function readCalibration(
  connection: DuckDBConnection,
  reader: LiveFileReader,
  query: CalibrationQuery,
): Promise<Calibration> {
  const rows = await readEvaluated(connection, reader, query, null, (evaluated) =>
    queryRows(connection, groupedSql(evaluated, LARGE_GROUP), GROUP_COLUMNS),
  )
  return {
    asOfMs: query.asOfMs,
    sinceMs: sinceMsOf(query),
    sentiments: calibrationGroups(rows, 'sentiment'),
    scores: calibrationGroups(rows, 'score'),
  }
}

/** The groups of one kind, with the ends of their intervals. */
export const calibrationGroups = (
  rows: readonly ResultRow<typeof GROUP_COLUMNS>[],
  kind: string,
): CalibrationGroup[] =>
  rows
    .filter((row) => row.kind === kind)
    .map(({ label, horizon, count, tokens, meanPct, halfWidthPct }) => {
      const hasInterval = meanPct !== null && halfWidthPct !== null
      return {
        label,
        horizon: HORIZON_NAMES.find((name) => name === horizon) ?? '5m',
        count,
        tokens,
        meanPct,
        lowPct: hasInterval ? meanPct - halfWidthPct : null,
        highPct: hasInterval ? meanPct + halfWidthPct : null,
      }
    })

/** Which groups of all agents are shown. */
const LARGE_GROUP = `count(*) >= ${CALIBRATION_SUBMISSIONS_MIN} AND count(DISTINCT agent_id) >= ${CALIBRATION_AGENTS_MIN}`

function evaluatedSql(
  training: readonly ReadableFile[],
  outcomes: readonly ReadableFile[],
  query: CalibrationQuery,
  agentIds: readonly string[] | null,
): string {
  const { labelsToMs } = query
  const isShown =
    labelsToMs === null ? '' : `AND coalesce(received_at, known_at) <= epoch_ms(${Math.floor(labelsToMs)})`
  const isOfAgents = agentIds === null ? '' : `AND list_contains([${agentIds.map(literal)}], agent_id)`
  const returns = HORIZON_NAMES.map(
    (horizon) => `SELECT analysis_id, '${horizon}' AS horizon, fwd_ret_${horizon} AS ret FROM labelled`,
  ).join(' UNION ALL ')
  return `
    WITH labelled AS (${selectNewestRows(TABLES.outcomes, outcomes)}),
    returns AS (${returns})
    SELECT mint, agent_id, horizon, 100 * ret AS pct, sentiment, 20 * least(4, floor(score / 20))::INTEGER AS low
    FROM (${selectAllRows(TABLES.training, training)}) JOIN returns USING (analysis_id)
    WHERE ret IS NOT NULL AND submitted_at >= epoch_ms(${sinceMsOf(query)}) ${isShown} ${isOfAgents}`
}

/** SQL of GROUP_COLUMNS. @param having which groups are shown; null: all. */
export const groupedSql = (evaluated: string, having: string | null): string => `
    WITH evaluated AS (${evaluated}),
    labels AS (
      SELECT 'sentiment' AS kind, sentiment AS label, mint, agent_id, horizon, pct FROM evaluated UNION ALL
      SELECT 'score', low || '–' || CASE low WHEN 80 THEN 100 ELSE low + 19 END, mint, agent_id, horizon, pct FROM evaluated
    ),
    shown AS (
      SELECT kind, label, horizon FROM labels GROUP BY ALL ${having === null ? '' : `HAVING ${having}`}
    ),
    by_token AS (
      SELECT kind, label, horizon, mint, count(*) AS n, avg(pct) AS pct
      FROM labels SEMI JOIN shown USING (kind, label, horizon) GROUP BY ALL
    )
    SELECT kind, label, horizon, sum(n)::DOUBLE AS count, count(*)::DOUBLE AS tokens, avg(pct) AS "meanPct",
      ${Z_95} * stddev_samp(pct) / sqrt(count(*)) AS "halfWidthPct"
    FROM by_token GROUP BY kind, label, horizon
    ORDER BY kind, label, horizon`
