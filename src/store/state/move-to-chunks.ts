// Brings a state that an earlier version saved into the form of this one. Apart from state-database.ts, since it needs DuckDB itself, which
// the server process does not load.
import type { DuckDBConnection } from '@duckdb/node-api'
import { transaction } from '../duckdb/database.ts'
import { queryOne } from '../duckdb/query.ts'
import { literal } from '../duckdb/sql.ts'
import { AGING_TABLES } from './state.ts'
import { SAVED_ENTRY } from './state-database.ts'

/** Earlier versions saved the entries of all tables one by one: those that end by their age become chunks. */
export async function moveToChunks(connection: DuckDBConnection): Promise<void> {
  const moved = `FROM state_entries WHERE table_name IN (${AGING_TABLES.map(literal).join(', ')})`
  const { count } = await queryOne(connection, `SELECT count(*)::DOUBLE AS count ${moved}`, {
    count: 'number',
  })
  if (count === 0) return
  await transaction(connection, async () => {
    await connection.run(`INSERT INTO state_chunks SELECT table_name, min(place), (SELECT known_at_ms FROM state_position),
      count(*), string_agg(${SAVED_ENTRY}, ',' ORDER BY place) ${moved} GROUP BY table_name`)
    await connection.run(`DELETE ${moved}`)
  })
}
