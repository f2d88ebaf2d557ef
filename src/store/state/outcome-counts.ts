// Counts the submissions of each agent by outcome, from the lake's files, where the state has no such counts: the state was
// rebuilt, or an earlier version wrote it. From then on they are counted with each commit.
import type { DuckDBConnection } from '@duckdb/node-api'
import { TABLES } from '../../schema/tables.ts'
import type { OutcomeCounts } from '../../schema/vocabulary.ts'
import { transaction } from '../duckdb/database.ts'
import { queryRows } from '../duckdb/query.ts'
import type { LakeTable } from '../duckdb/sql.ts'
import type { LiveFileReader } from '../lake/live-file-reader.ts'
import { selectAllRows } from '../lake/parquet-sql.ts'
import { loadState } from './read-state.ts'
import type { StateOptions, StoreState } from './state.ts'
import { isMarked, noteMark, saveState } from './state-database.ts'

/** Counts once for each data folder. Rows whose dates have expired, and those of lost files, are not counted. */
export async function countOutcomes(
  connection: DuckDBConnection,
  reader: LiveFileReader,
  options: StateOptions,
  spillDir: string,
  nowMs: number,
): Promise<void> {
  if (await isMarked(connection, 'outcomes_counted')) return
  const state = await loadState(connection, options)
  for (const [agentId] of state.agentOutcomes.entries()) state.agentOutcomes.delete(agentId)
  for (const table of [TABLES.training, TABLES.rejections])
    await addCounts(connection, reader, state, table, nowMs)
  await transaction(connection, async () => {
    await saveState(connection, state, spillDir)
    await noteMark(connection, 'outcomes_counted')
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
