// Counts the submissions of each agent by outcome, from the lake's files, where the state has no such counts: the state was
// rebuilt, or an earlier version wrote it. From then on they are counted with each commit.
import type { DuckDBConnection } from '@duckdb/node-api'
import { TABLES } from '../../schema/tables.ts'
import type { OutcomeCounts } from '../../schema/vocabulary.ts'
import { transaction } from '../duckdb/database.ts'
import { queryOne, queryRows } from '../duckdb/query.ts'
import type { LakeTable } from '../duckdb/sql.ts'
import type { LiveFileReader } from '../lake/live-file-reader.ts'
import { selectAllRows } from '../lake/parquet-sql.ts'
import type { StateOptions, StoreState } from './state.ts'
import { loadState, restoreState, saveState } from './state-database.ts'

/** An entry of the state that tells that its counts are complete. */
const COUNTED = `SELECT 'marks' AS table_name, 'outcomes_counted' AS key, 0 AS place, 'true' AS value`

/** Notes that the counts are complete. */
export const noteOutcomesCounted = async (connection: DuckDBConnection): Promise<void> =>
  void (await connection.run(`INSERT INTO state_entries ${COUNTED}`))

export interface CountOptions {
  options: StateOptions
  spillDir: string
  nowMs: number
}

/** Counts once for each data folder. Rows whose dates have expired, and those of lost files, are not counted. */
export async function countOutcomes(
  connection: DuckDBConnection,
  reader: LiveFileReader,
  { options, spillDir, nowMs }: CountOptions,
): Promise<void> {
  const { isCounted } = await queryOne(
    connection,
    `SELECT count(*) > 0 AS "isCounted" FROM state_entries SEMI JOIN (${COUNTED}) USING (table_name, key)`,
    { isCounted: 'boolean' },
  )
  if (isCounted) return
  const state = restoreState(await loadState(connection), { ...options, isSaved: true })
  for (const [agentId] of state.agentOutcomes.entries()) state.agentOutcomes.delete(agentId)
  for (const table of [TABLES.training, TABLES.rejections])
    await addCounts(connection, reader, state, table, nowMs)
  await transaction(connection, async () => {
    await saveState(connection, state, spillDir)
    await noteOutcomesCounted(connection)
  })
}

async function addCounts(
  connection: DuckDBConnection,
  reader: LiveFileReader,
  state: StoreState,
  table: LakeTable,
  nowMs: number,
): Promise<void> {
  const rows = await reader.read(connection, {
    table,
    nowMs,
    isNeeded: () => true,
    work: (files) =>
      queryRows(
        connection,
        `SELECT agent_id AS "agentId", count(*) FILTER (outcome = 'validated')::DOUBLE AS validated,
           count(*) FILTER (outcome = 'unvalidated')::DOUBLE AS unvalidated,
           count(*) FILTER (outcome = 'rejected')::DOUBLE AS rejected
         FROM (${selectAllRows(table, files)}) GROUP BY 1`,
        { agentId: 'string', validated: 'number', unvalidated: 'number', rejected: 'number' },
      ),
  })
  for (const { agentId, ...counts } of rows)
    state.agentOutcomes.replace(agentId, sum(state.agentOutcomes.get(agentId), counts))
}

const sum = (a: OutcomeCounts | undefined, b: OutcomeCounts): OutcomeCounts =>
  a === undefined
    ? b
    : {
        validated: a.validated + b.validated,
        unvalidated: a.unvalidated + b.unvalidated,
        rejected: a.rejected + b.rejected,
      }
