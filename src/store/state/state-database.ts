// In: an open `state.duckdb`. Out: the state of the store as of the last flush, and its changes saved in the transaction
// of the flush that made them. One narrow table: an entry is read whole at a start, and never asked for by SQL.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { DuckDBConnection } from '@duckdb/node-api'
import { query } from '../duckdb/query.ts'
import { literal } from '../duckdb/sql.ts'
import { STATE_TABLES, type StateOptions, type StateTable, StoreState } from './state.ts'

/** A state as it is saved and sent between processes. */
export interface SavedState extends SavedPosition {
  /** JSON of the entries of each table, `[[key, value], …]`: it is read where the state is used, once. */
  tables: Record<StateTable, string>
}

export interface SavedPosition {
  /** The last commit that the state has; 0: none. */
  lsn: number
  knownAtMs: number
}

/** Whether this database has been taken into use; a start that was cut off before that begins anew. */
export async function isStateBegun(connection: DuckDBConnection): Promise<boolean> {
  const [{ begun }] = await query<{ begun: boolean }>(
    connection,
    'SELECT is_begun AS begun FROM state_position',
  )
  return begun
}

export const beginState = async (connection: DuckDBConnection): Promise<void> =>
  void (await connection.run('UPDATE state_position SET is_begun = true'))

/** When the state was rebuilt from the lake's files, Unix ms, until that is settled; null: it was not. */
export async function stateRebuiltAt(connection: DuckDBConnection): Promise<number | null> {
  const [{ ms }] = await query<{ ms: number | null }>(
    connection,
    'SELECT rebuilt_at_ms::DOUBLE AS ms FROM state_position',
  )
  return ms
}

export const noteStateRebuilt = async (connection: DuckDBConnection, nowMs: number | null): Promise<void> =>
  void (await connection.run(`UPDATE state_position SET rebuilt_at_ms = ${nowMs ?? 'NULL'}`))

/** Up to which commit the state was saved last. */
export async function loadPosition(connection: DuckDBConnection): Promise<SavedPosition> {
  const [position] = await query<SavedPosition>(
    connection,
    'SELECT lsn::DOUBLE AS lsn, known_at_ms::DOUBLE AS "knownAtMs" FROM state_position',
  )
  return position
}

/** The state as it was saved last. One text a table: a value for each entry would be most of a start. */
export async function loadState(connection: DuckDBConnection): Promise<SavedState> {
  const entries = await query<{ name: StateTable; json: string }>(
    connection,
    `SELECT table_name AS name, '[' || string_agg('[' || to_json(key) || ',' || value || ']', ',' ORDER BY place) || ']' AS json
     FROM state_entries GROUP BY ALL`,
  )
  const byName = new Map(entries.map(({ name, json }) => [name, json]))
  const tables = STATE_TABLES.map((name) => [name, byName.get(name) ?? '[]'])
  return { ...(await loadPosition(connection)), tables: Object.fromEntries(tables) }
}

export function restoreState({ lsn, knownAtMs, tables }: SavedState, options: StateOptions): StoreState {
  const state = new StoreState(options)
  state.lsn = lsn
  state.knownAtMs = knownAtMs
  for (const name of STATE_TABLES) state[name].load(JSON.parse(tables[name]))
  return state
}

/** Where the changes of a flush are written for DuckDB to read: in one statement, whatever their number. */
const changesPath = (spillDir: string): string => join(spillDir, 'state-changes.ndjson')

/**
 * Saves what changed since the last call. In the transaction of the flush: called between its BEGIN and COMMIT. Where that
 * transaction fails the state in memory is ahead of the saved one, and must be loaded anew.
 */
export async function saveState(
  connection: DuckDBConnection,
  state: StoreState,
  spillDir: string,
): Promise<void> {
  let place = state.lsn * 2 ** 13
  const lines: string[] = []
  for (const name of STATE_TABLES) {
    for (const [key, value] of state[name].takeChanges())
      lines.push(
        JSON.stringify({
          t: name,
          k: key,
          p: place++,
          v: value === undefined ? null : JSON.stringify(value),
        }),
      )
  }
  await connection.run(`UPDATE state_position SET lsn = ${state.lsn}, known_at_ms = ${state.knownAtMs}`)
  if (lines.length === 0) return
  mkdirSync(spillDir, { recursive: true })
  const path = changesPath(spillDir)
  writeFileSync(path, `${lines.join('\n')}\n`)
  try {
    const changes = `read_json(${literal(path)}, format = 'newline_delimited',
      columns = {t: 'VARCHAR', k: 'VARCHAR', p: 'BIGINT', v: 'VARCHAR'})`
    await connection.run(
      `DELETE FROM state_entries WHERE (table_name, key) IN (SELECT (t, k) FROM ${changes})`,
    )
    await connection.run(`INSERT INTO state_entries SELECT t, k, p, v FROM ${changes} WHERE v IS NOT NULL`)
  } finally {
    rmSync(path, { force: true })
  }
}
