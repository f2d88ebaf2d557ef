// In: a lake whose state database is gone. Out: as much of the state as its files tell: sums, and the last commit that they
// hold. Agents, keys, bans and remembered answers are in no file: they come back from a backup alone.
import type { DuckDBConnection } from '@duckdb/node-api'
import { TABLES } from '../../schema/tables.ts'
import { query } from '../duckdb/query.ts'
import { createdAtColumn, identifier, LAKE_TABLES, type LakeTable } from '../duckdb/sql.ts'
import type { Lake } from '../lake/lake.ts'
import { listLiveFiles } from '../lake/manifest.ts'
import { selectAllRows, toReadableFiles } from '../lake/parquet-sql.ts'
import { reopenOutcomesSql } from '../outcomes/outcome-sql.ts'
import { type AgentTotal, type MintTotal, type StateOptions, StoreState } from './state.ts'

/** SQL of the rows of a table that the lake has. */
async function rowsOf(connection: DuckDBConnection, lake: Lake, table: LakeTable): Promise<string> {
  return selectAllRows(table, toReadableFiles(await listLiveFiles(connection, table.name), lake.pathOf))
}

/** Opens again the outcomes that are not labelled to their end; in a transaction of the caller's. */
export async function reopenOutcomes(connection: DuckDBConnection, lake: Lake): Promise<void> {
  const [examples, outcomes] = [
    await rowsOf(connection, lake, TABLES.training),
    await rowsOf(connection, lake, TABLES.outcomes),
  ]
  for (const statement of reopenOutcomesSql(examples, outcomes)) await connection.run(statement)
}

/** A state that stands at the last commit of which the lake has rows. */
export async function rebuildState(
  connection: DuckDBConnection,
  lake: Lake,
  options: StateOptions,
): Promise<StoreState> {
  const state = new StoreState(options)
  for (const table of LAKE_TABLES.filter(({ origin }) => origin === undefined)) {
    const parts = await listLiveFiles(connection, table.name)
    state.lsn = Math.max(state.lsn, ...parts.map(({ last }) => last))
    state.rowTotals.replace(
      table.name,
      parts.reduce((sum, { rows }) => sum + rows, 0),
    )
    const [{ ms }] = await query<{ ms: number }>(
      connection,
      `SELECT coalesce(epoch_ms(max(${identifier(createdAtColumn(table))})), 0)::DOUBLE AS ms
       FROM (${await rowsOf(connection, lake, table)})`,
    )
    state.knownAtMs = Math.max(state.knownAtMs, ms)
  }
  const agents = await query<AgentTotal & { agentId: string }>(
    connection,
    `SELECT agent_id AS "agentId", sum(xp)::DOUBLE AS xp, count(*) FILTER (kind = 'analysis')::DOUBLE AS analyses
     FROM (${await rowsOf(connection, lake, TABLES.xp_ledger)}) GROUP BY 1`,
  )
  for (const { agentId, xp, analyses } of agents) state.agentTotals.replace(agentId, { xp, analyses })
  const mints = await query<MintTotal & { mint: string }>(
    connection,
    `SELECT mint, count(*)::DOUBLE AS count, arg_max(sentiment, known_at) AS "lastSentiment",
       arg_max(score, known_at) AS "lastScore" FROM (${await rowsOf(connection, lake, TABLES.training)}) GROUP BY 1`,
  )
  for (const { mint, ...total } of mints) state.mintTotals.replace(mint, total)
  return state
}
