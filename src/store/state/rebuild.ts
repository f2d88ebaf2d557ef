// Rebuilds the state from the lake's files where the state database is gone: the sums, and the last commit in the files.
// Agents, keys, bans and remembered responses are in no file: only a backup has them.
import type { DuckDBConnection } from '@duckdb/node-api'
import { TABLES } from '../../schema/tables.ts'
import { queryOne, queryRows, type ResultColumns, type ResultRow } from '../duckdb/query.ts'
import { createdAtColumn, identifier, LAKE_TABLES, type LakeTable } from '../duckdb/sql.ts'
import type { Lake } from '../lake/lake.ts'
import { listAllLiveFiles, listLiveFiles } from '../lake/manifest.ts'
import { selectAllRows, toReadableFiles } from '../lake/parquet-sql.ts'
import { RECENT_LABELS_MAX, STATE_PIECE_ENTRIES } from '../limits.ts'
import { reopenOutcomesSql } from '../outcomes/outcome-sql.ts'
import { type StateOptions, StoreState } from './state.ts'

/** SQL that selects the rows of a table in the lake. */
async function selectRows(connection: DuckDBConnection, lake: Lake, table: LakeTable): Promise<string> {
  return selectAllRows(table, toReadableFiles(await listLiveFiles(connection, table.name), lake.pathOf))
}

/** The rows of a query in its order, of which there may be a million: DuckDB keeps them, and spills them, while they are read. */
async function* readInPieces<const Columns extends ResultColumns>(
  connection: DuckDBConnection,
  sql: string,
  columns: Columns,
): AsyncGenerator<ResultRow<Columns>, void, void> {
  await connection.run(`CREATE OR REPLACE TEMP TABLE rebuilt AS ${sql}`)
  const { count } = await queryOne(connection, 'SELECT count(*)::DOUBLE AS count FROM rebuilt', {
    count: 'number',
  })
  for (let from = 0; from < count; from += STATE_PIECE_ENTRIES) {
    const isOfPiece = `rowid BETWEEN ${from} AND ${from + STATE_PIECE_ENTRIES - 1}`
    yield* await queryRows(connection, `SELECT * FROM rebuilt WHERE ${isOfPiece}`, columns)
  }
  await connection.run('DROP TABLE rebuilt')
}

/** Opens the outcomes whose last horizon is not labelled yet. Called in a transaction. */
export async function reopenOutcomes(connection: DuckDBConnection, lake: Lake): Promise<void> {
  const [examples, outcomes] = [
    await selectRows(connection, lake, TABLES.training),
    await selectRows(connection, lake, TABLES.outcomes),
  ]
  for (const statement of reopenOutcomesSql(examples, outcomes)) await connection.run(statement)
}

/** The state as of the last commit whose rows are in the lake. */
export async function rebuildState(
  connection: DuckDBConnection,
  lake: Lake,
  options: StateOptions,
): Promise<StoreState> {
  const state = new StoreState(options)
  if ((await listAllLiveFiles(connection)).length === 0) return state
  for (const table of LAKE_TABLES.filter(({ origin }) => origin === undefined)) {
    const files = await listLiveFiles(connection, table.name)
    state.lsn = Math.max(state.lsn, ...files.map(({ last }) => last))
    state.rowTotals.replace(
      table.name,
      files.reduce((sum, { rows }) => sum + rows, 0),
    )
    const { ms } = await queryOne(
      connection,
      `SELECT coalesce(epoch_ms(max(${identifier(createdAtColumn(table))})), 0)::DOUBLE AS ms
       FROM (${await selectRows(connection, lake, table)})`,
      { ms: 'number' },
    )
    state.knownAtMs = Math.max(state.knownAtMs, ms)
  }
  const agents = readInPieces(
    connection,
    `SELECT agent_id AS "agentId", sum(xp)::DOUBLE AS xp, count(*) FILTER (kind = 'analysis')::DOUBLE AS analyses
     FROM (${await selectRows(connection, lake, TABLES.xp_ledger)}) GROUP BY 1`,
    { agentId: 'string', xp: 'number', analyses: 'number' },
  )
  for await (const { agentId, xp, analyses } of agents) state.agentTotals.replace(agentId, { xp, analyses })
  await addCoverage(connection, state, await selectRows(connection, lake, TABLES.training))
  return state
}

/** Adds what the training rows say of each mint. @param examples SQL that selects them */
async function addCoverage(connection: DuckDBConnection, state: StoreState, examples: string): Promise<void> {
  const isShown = `known_at <= epoch_ms(${state.knownAtMs - (state.options.labelsDelayMs ?? 0)})`
  const mints = readInPieces(
    connection,
    `SELECT mint, count(*)::DOUBLE AS count,
       coalesce(arg_max(sentiment, known_at) FILTER (${isShown}), '') AS "lastSentiment",
       coalesce(arg_max(score, known_at) FILTER (${isShown}), 0) AS "lastScore" FROM (${examples}) GROUP BY 1`,
    { mint: 'string', count: 'number', lastSentiment: 'string', lastScore: 'number' },
  )
  for await (const { mint, ...total } of mints) state.mintTotals.replace(mint, total)
  const recent = readInPieces(
    connection,
    `FROM (SELECT analysis_id AS "analysisId", mint, sentiment, score, epoch_ms(known_at)::DOUBLE AS "knownAtMs",
       epoch_ms(coalesce(received_at, known_at))::DOUBLE AS "atMs"
     FROM (${examples}) WHERE NOT ${isShown} ORDER BY known_at DESC LIMIT ${RECENT_LABELS_MAX}) ORDER BY "knownAtMs"`,
    {
      analysisId: 'string',
      mint: 'string',
      sentiment: 'string',
      score: 'number',
      knownAtMs: 'number',
      atMs: 'number',
    },
  )
  for await (const { knownAtMs, ...labels } of recent) state.recentLabels.push(knownAtMs, labels)
}
