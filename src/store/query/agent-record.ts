// What became of agents' analyses, and what one earned over time, from the lake.
import type { DuckDBConnection } from '@duckdb/node-api'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../lib/time.ts'
import type { AgentHits, AgentRecord } from '../../schema/api/agent-record.ts'
import { TABLES } from '../../schema/tables.ts'
import { HORIZON_NAMES } from '../../schema/vocabulary.ts'
import { queryRows, type ResultRow } from '../duckdb/query.ts'
import { literal } from '../duckdb/sql.ts'
import type { LiveFileReader } from '../lake/live-file-reader.ts'
import { type ReadableFile, selectAllRows } from '../lake/parquet-sql.ts'
import {
  type CalibrationQuery,
  calibrationGroups,
  GROUP_COLUMNS,
  groupedSql,
  readEvaluated,
  recentFiles,
  sinceMsOf,
} from './calibration.ts'

/** How finely XP is told: the first of these that is no more than INTERVALS_MAX for the whole record. */
const XP_EVERY_MS = [5 * MINUTE_MS, HOUR_MS, DAY_MS] as const
const INTERVALS_MAX = 100

const HORIZON_COLUMNS = {
  agentId: 'string',
  horizon: 'string',
  count: 'number',
  hits: 'number',
  meanPct: 'number?',
} as const
const XP_COLUMNS = { atMs: 'number', xp: 'number' } as const

/** Of the submissions of the last CALIBRATION_MS whose labels anybody may see. */
export async function readAgentRecord(
  connection: DuckDBConnection,
  reader: LiveFileReader,
  query: CalibrationQuery & { agentId: string },
): Promise<Omit<AgentRecord, 'name'>> {
  const { agentId, asOfMs } = query
  const sinceMs = sinceMsOf(query)
  const { horizonRows, groupRows } = await readEvaluated(
    connection,
    reader,
    query,
    [agentId],
    async (evaluated) => ({
      horizonRows: await queryRows(connection, horizonsSql(evaluated), HORIZON_COLUMNS),
      groupRows: await queryRows(connection, groupedSql(evaluated, null), GROUP_COLUMNS),
    }),
  )
  const xpRows = await reader.readConcurrently(connection, {
    ...recentFiles(query),
    table: TABLES.xp_ledger,
    work: (ledger) => queryRows(connection, xpSql(ledger, agentId, sinceMs), XP_COLUMNS),
  })
  return {
    agentId,
    asOfMs,
    sinceMs,
    horizons: hitsByAgent(horizonRows)[0]?.horizons ?? [],
    groups: (['sentiment', 'score'] as const).flatMap((kind) =>
      calibrationGroups(groupRows, kind).map((group) => ({ ...group, kind })),
    ),
    ...xpOverTime(xpRows),
  }
}

/** Of some agents, whether they were right: those of whom anything is known. Of the same submissions as a record. */
export const readAgentHits = async (
  connection: DuckDBConnection,
  reader: LiveFileReader,
  query: CalibrationQuery & { agentIds: readonly string[] },
): Promise<AgentHits[]> =>
  hitsByAgent(
    await readEvaluated(connection, reader, query, query.agentIds, (evaluated) =>
      queryRows(connection, horizonsSql(evaluated), HORIZON_COLUMNS),
    ),
  )

/** The horizons of each agent, shortest first. */
function hitsByAgent(rows: readonly ResultRow<typeof HORIZON_COLUMNS>[]): AgentHits[] {
  return Array.from(
    Map.groupBy(rows, ({ agentId }) => agentId),
    ([agentId, own]) => ({
      agentId,
      horizons: HORIZON_NAMES.flatMap((horizon) =>
        own
          .filter((row) => row.horizon === horizon)
          .map(({ count, hits, meanPct }) => ({ horizon, count, hits, meanPct })),
      ),
    }),
  )
}

const horizonsSql = (evaluated: string): string => `
  WITH evaluated AS (${evaluated}),
  said AS (
    SELECT agent_id, horizon, CASE sentiment WHEN 'bullish' THEN pct ELSE -pct END AS pct
    FROM evaluated WHERE sentiment IN ('bullish', 'bearish')
  )
  SELECT agent_id AS "agentId", horizon, count(*)::DOUBLE AS count, count_if(pct > 0)::DOUBLE AS hits, avg(pct) AS "meanPct"
  FROM said GROUP BY agent_id, horizon`

const xpSql = (ledger: readonly ReadableFile[], agentId: string, sinceMs: number): string => `
  SELECT epoch_ms(time_bucket(INTERVAL 5 MINUTE, awarded_at))::DOUBLE AS "atMs", sum(xp) AS xp
  FROM (${selectAllRows(TABLES.xp_ledger, ledger)})
  WHERE agent_id = ${literal(agentId)} AND awarded_at >= epoch_ms(${sinceMs})
  GROUP BY 1 ORDER BY 1`

function xpOverTime(rows: readonly { atMs: number; xp: number }[]): Pick<AgentRecord, 'xp' | 'xpEveryMs'> {
  const spanMs = (rows.at(-1)?.atMs ?? 0) - (rows[0]?.atMs ?? 0)
  const xpEveryMs = XP_EVERY_MS.find((everyMs) => spanMs / everyMs <= INTERVALS_MAX) ?? DAY_MS
  const byInterval = new Map<number, number>()
  for (const { atMs, xp } of rows) {
    const startMs = Math.floor(atMs / xpEveryMs) * xpEveryMs
    byInterval.set(startMs, (byInterval.get(startMs) ?? 0) + xp)
  }
  return { xp: Array.from(byInterval, ([atMs, xp]) => ({ atMs, xp })), xpEveryMs }
}
