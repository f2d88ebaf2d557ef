// Brings a state that an earlier version saved into the form of this one. Apart from state-database.ts, since it needs DuckDB itself, which
// the server process does not load.
import type { DuckDBConnection } from '@duckdb/node-api'
import { transaction } from '../duckdb/database.ts'
import { queryValue } from '../duckdb/query.ts'
import { literal } from '../duckdb/sql.ts'
import { DUCKDB_MEMORY_LIMIT, STATE_UPGRADE_MEMORY_LIMIT } from '../limits.ts'
import { readState } from './read-state.ts'
import { AGING_TABLES } from './state.ts'
import { addChunks, type Entry, isMarked, loadPosition, noteMark } from './state-database.ts'

/**
 * Earlier versions saved the entries that end by their age one by one, or in chunks of megabytes, of which DuckDB needs all in memory
 * to read one. Done once for each data folder.
 */
export async function moveToChunks(connection: DuckDBConnection): Promise<void> {
  if (await isMarked(connection, 'chunks_cut')) return
  await connection.run(`SET memory_limit = ${literal(STATE_UPGRADE_MEMORY_LIMIT)}`)
  try {
    await transaction(connection, async () => {
      await cutChunks(connection)
      await noteMark(connection, 'chunks_cut')
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
