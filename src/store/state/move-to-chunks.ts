// Brings a state that an earlier version saved into the form of this one. Apart from state-database.ts, since it needs DuckDB itself, which
// the server process does not load.
import type { DuckDBConnection } from '@duckdb/node-api'
import { transaction } from '../duckdb/database.ts'
import { queryValue } from '../duckdb/query.ts'
import { literal } from '../duckdb/sql.ts'
import { DUCKDB_MEMORY_LIMIT, STATE_UPGRADE_MEMORY_LIMIT } from '../limits.ts'
import { readState } from './read-state.ts'
import { AGING_TABLES } from './state.ts'
import { addChunks, type Entry, loadPosition } from './state-database.ts'

/** An entry of the state that tells that its chunks are small. */
const CHUNKS_CUT = `SELECT 'marks' AS table_name, 'chunks_cut' AS key, 0 AS place, 'true' AS value`

/** Notes that no chunk of the state is one of an earlier version. */
export const noteChunksCut = (connection: DuckDBConnection) =>
  connection.run(`INSERT INTO state_entries ${CHUNKS_CUT}`)

/**
 * Earlier versions saved the entries that end by their age one by one, or in chunks of megabytes, of which DuckDB needs all in memory
 * to read one. Done once for each data folder.
 */
export async function moveToChunks(connection: DuckDBConnection): Promise<void> {
  const sql = `SELECT count(*) > 0 FROM state_entries SEMI JOIN (${CHUNKS_CUT}) USING (table_name, key)`
  if (await queryValue(connection, sql, 'boolean')) return
  await connection.run(`SET memory_limit = ${literal(STATE_UPGRADE_MEMORY_LIMIT)}`)
  try {
    await transaction(connection, async () => {
      await cutChunks(connection)
      await noteChunksCut(connection)
    })
    // DuckDB forgets the large chunks only when it has written the small ones.
    await connection.run('CHECKPOINT')
  } finally {
    await connection.run(`SET memory_limit = ${literal(DUCKDB_MEMORY_LIMIT)}`)
  }
}

async function cutChunks(connection: DuckDBConnection): Promise<void> {
  const position = await loadPosition(connection)
  const knownAtMs = Math.ceil(Math.max(position.knownAtMs, ...Object.values(position.agedToMs ?? {})))
  // Rows that a transaction adds have higher numbers.
  const lastSql = 'SELECT coalesce(max(rowid), -1)::DOUBLE FROM state_chunks'
  const last = await queryValue(connection, lastSql, 'number')
  // From 0: before the places of any flush to come, since no commit has more rows than an LSN has places.
  let firstPlace = 0
  for await (const { table, json } of readState(connection, AGING_TABLES)) {
    const entries: Entry[] = JSON.parse(json)
    firstPlace = await addChunks(connection, table, entries, { firstPlace, knownAtMs })
  }
  await connection.run(`DELETE FROM state_chunks WHERE rowid <= ${last}`)
  await connection.run(
    `DELETE FROM state_entries WHERE table_name IN (${AGING_TABLES.map(literal).join(', ')})`,
  )
}
