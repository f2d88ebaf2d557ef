// Loads the state from `state.duckdb` and saves its changes in the transaction of a flush. All entries are in one narrow table
// as JSON: they are only read as a whole, at a start.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { DuckDBConnection } from '@duckdb/node-api'
import { queryOne, queryRows } from '../duckdb/query.ts'
import { literal } from '../duckdb/sql.ts'
import { STATE_TABLES, type StateOptions, type StateTable, StoreState } from './state.ts'

/** A state as it is saved and sent between processes. */
export interface SavedState extends SavedPosition {
  /** The entries of each table as JSON, `[[key, value], …]`. Parsed only where the state is used. */
  tables: Record<StateTable, string>
}

export interface SavedPosition {
  /** The last commit that the state has; 0: none. */
  lsn: number
  knownAtMs: number
}

/** Whether a first state was saved. A start that was interrupted before that begins again. */
export async function isStateBegun(connection: DuckDBConnection): Promise<boolean> {
  const sql = 'SELECT is_begun AS "isBegun" FROM state_position'
  return (await queryOne(connection, sql, { isBegun: 'boolean' })).isBegun
}

export const beginState = async (connection: DuckDBConnection): Promise<void> =>
  void (await connection.run('UPDATE state_position SET is_begun = true'))

/** When the state was rebuilt from the lake's files, Unix ms; null: it was not, or an operator has acknowledged it. */
export async function stateRebuiltAt(connection: DuckDBConnection): Promise<number | null> {
  const sql = 'SELECT rebuilt_at_ms::DOUBLE AS ms FROM state_position'
  return (await queryOne(connection, sql, { ms: 'number?' })).ms
}

export const noteStateRebuilt = async (connection: DuckDBConnection, nowMs: number | null): Promise<void> =>
  void (await connection.run(`UPDATE state_position SET rebuilt_at_ms = ${nowMs ?? 'NULL'}`))

/** The last commit of the saved state. */
export async function loadPosition(connection: DuckDBConnection): Promise<SavedPosition> {
  const sql = 'SELECT lsn::DOUBLE AS lsn, known_at_ms::DOUBLE AS "knownAtMs" FROM state_position'
  return queryOne(connection, sql, { lsn: 'number', knownAtMs: 'number' })
}

/** Loads one text for each table: a DuckDB value for each entry would take most of a start. */
export async function loadState(connection: DuckDBConnection): Promise<SavedState> {
  const entries = await queryRows(
    connection,
    `SELECT table_name AS name, '[' || string_agg('[' || to_json(key) || ',' || value || ']', ',' ORDER BY place) || ']' AS json
     FROM state_entries GROUP BY ALL`,
    { name: 'string', json: 'string' },
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

/** The changes of a flush are written to a file, so that DuckDB reads any number of them in one statement. */
const changesPath = (spillDir: string): string => join(spillDir, 'state-changes.ndjson')

/**
 * Saves what changed since the last call. Must be called inside the transaction of the flush. Where that transaction fails,
 * the state in memory is ahead of the saved one and must be loaded again.
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
