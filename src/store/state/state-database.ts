// Loads the state from `state.duckdb` and saves its changes in the transaction of a flush. Entries are JSON in a narrow table, or many
// together in a chunk: they are only read as a whole, at a start.
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { DuckDBConnection } from '@duckdb/node-api'
import { makeFolderNow } from '../../lib/files.ts'
import { queryOne, queryRows } from '../duckdb/query.ts'
import { literal } from '../duckdb/sql.ts'
import { STATE_CHUNK_ENTRIES } from '../limits.ts'
import type { KeyedTable } from './keyed-table.ts'
import {
  AGING_TABLES,
  type AgingTable,
  agedToMs,
  dropEnded,
  LASTING_TABLES,
  QUEUES,
  STATE_TABLES,
  type StateOptions,
  type StateTable,
  StoreState,
} from './state.ts'

/** A state as it is saved and sent between processes. */
export interface SavedState extends SavedPosition {
  /** The entries of each table as JSON, `[[key, value], …]`. Parsed only where the state is used. */
  tables: Record<StateTable, string>
}

export interface SavedPosition {
  /** The last commit that the state has; 0: none. */
  lsn: number
  knownAtMs: number
  /** The last recorded event that is in the lake; 0: none. */
  eventNo: number
  /** By table, the time by which its entries age; null: an earlier version saved it. */
  agedToMs: StoreState['agedToMs']
}

/** Whether a first state was saved. A start that was interrupted before that begins again. */
export async function isStateBegun(connection: DuckDBConnection): Promise<boolean> {
  const sql = 'SELECT is_begun AS "isBegun" FROM state_position'
  return (await queryOne(connection, sql, { isBegun: 'boolean' })).isBegun
}

export const beginState = async (connection: DuckDBConnection): Promise<void> =>
  void (await connection.run('UPDATE state_position SET is_begun = true'))

/** When an earlier version rebuilt the state, Unix ms; null: it did not, or the list of losses has it. */
export async function stateRebuiltAt(connection: DuckDBConnection): Promise<number | null> {
  const sql = 'SELECT rebuilt_at_ms::DOUBLE AS ms FROM state_position'
  return (await queryOne(connection, sql, { ms: 'number?' })).ms
}

export const forgetStateRebuilt = async (connection: DuckDBConnection): Promise<void> =>
  void (await connection.run('UPDATE state_position SET rebuilt_at_ms = NULL'))

/** The last commit of the saved state. */
export async function loadPosition(connection: DuckDBConnection): Promise<SavedPosition> {
  const sql = `SELECT lsn::DOUBLE AS lsn, known_at_ms::DOUBLE AS "knownAtMs", event_no::DOUBLE AS "eventNo",
    to_json(state_position) ->> 'aged_to_ms' AS "agedTo" FROM state_position`
  const types = { lsn: 'number', knownAtMs: 'number', eventNo: 'number', agedTo: 'string?' } as const
  // As a member of the row: a copy of an earlier version does not have the column.
  const { agedTo, ...position } = await queryOne(connection, sql, types)
  return { ...position, agedToMs: agedTo === null ? null : JSON.parse(agedTo) }
}

/** SQL of an entry of `state_entries` in the form in which its table is loaded: a queue has times where others have keys. */
export const SAVED_ENTRY = `CASE WHEN table_name IN (${QUEUES.map(literal).join(', ')})
  THEN '[' || (value ->> 'knownAtMs') || ',' || CASE WHEN table_name = 'recentLabels'
    THEN '{"analysisId":' || to_json(key) || ',' || value[2:] ELSE value END || ']'
  ELSE '[' || to_json(key) || ',' || value || ']' END`

/** Loads one text for each table: a DuckDB value for each entry would take most of a start. */
export async function loadState(connection: DuckDBConnection): Promise<SavedState> {
  const entries = await queryRows(
    connection,
    `SELECT name, '[' || string_agg(entries, ',' ORDER BY is_chunk, place) || ']' AS json FROM (
       SELECT table_name AS name, false AS is_chunk, place, ${SAVED_ENTRY} AS entries FROM state_entries
       UNION ALL SELECT table_name, true, place, entries FROM state_chunks) GROUP BY name`,
    { name: 'string', json: 'string' },
  )
  const byName = new Map(entries.map(({ name, json }) => [name, json]))
  const tables = STATE_TABLES.map((name) => [name, byName.get(name) ?? '[]'])
  return { ...(await loadPosition(connection)), tables: Object.fromEntries(tables) }
}

export function restoreState(
  { lsn, knownAtMs, agedToMs, tables }: SavedState,
  options: StateOptions,
): StoreState {
  const state = new StoreState(options)
  state.lsn = lsn
  state.knownAtMs = knownAtMs
  state.agedToMs = agedToMs
  for (const name of STATE_TABLES) state[name].load(JSON.parse(tables[name]))
  dropEnded(state)
  return state
}

/** The changes of a flush are written to a file, so that DuckDB reads any number of them in one statement. */
const changesPath = (spillDir: string): string => join(spillDir, 'state-changes.ndjson')

/** What orders the entries of a state: their LSN, and their place among those of a commit or flush. */
const PLACES_PER_LSN = 2 ** 13

/**
 * Saves what changed since the last call. Must be called inside the transaction of the flush. Where that transaction fails,
 * the state in memory is ahead of the saved one and must be loaded again.
 */
export async function saveState(
  connection: DuckDBConnection,
  state: StoreState,
  spillDir: string,
): Promise<void> {
  const agedTo = state.agedToMs === null ? 'NULL' : literal(JSON.stringify(state.agedToMs))
  await connection.run(
    `UPDATE state_position SET lsn = ${state.lsn}, known_at_ms = ${state.knownAtMs}, aged_to_ms = ${agedTo}`,
  )
  await saveLasting(connection, state, spillDir)
  await saveAging(connection, state)
}

async function saveLasting(connection: DuckDBConnection, state: StoreState, spillDir: string): Promise<void> {
  let place = state.lsn * PLACES_PER_LSN
  const lines: string[] = []
  for (const name of LASTING_TABLES) {
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
  if (lines.length === 0) return
  makeFolderNow(spillDir)
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

/** Adds a chunk of the entries that are new, and deletes the chunks of which every entry has ended. A row for each entry, written
 *  once and deleted once, would cost a flush several times as much. */
async function saveAging(connection: DuckDBConnection, state: StoreState): Promise<void> {
  for (const name of AGING_TABLES) {
    const written = name === 'idempotency' ? takeWritten(state.idempotency) : state[name].takeNew()
    for (let from = 0; from < written.length; from += STATE_CHUNK_ENTRIES) {
      const chunk = written.slice(from, from + STATE_CHUNK_ENTRIES)
      const place = state.lsn * PLACES_PER_LSN + from / STATE_CHUNK_ENTRIES
      const sql = `INSERT INTO state_chunks VALUES ('${name}', ${place}, ${Math.ceil(agedToMs(state, name))}, ${chunk.length}, $entries)`
      await connection.run(sql, { entries: JSON.stringify(chunk).slice(1, -1) })
    }
    await connection.run(
      `DELETE FROM state_chunks WHERE table_name = '${name}' AND (${endedSql(state, name)})`,
    )
  }
}

const takeWritten = <Value>(table: KeyedTable<Value>): [string, Value | undefined][] =>
  table.takeChanges().filter(([, value]) => value !== undefined)

/** SQL of whether every entry of a chunk has ended. */
function endedSql(state: StoreState, name: AgingTable): string {
  const { keptMs, entriesMax } = state.ageLimits[name]
  const isOld = `known_at_ms <= ${agedToMs(state, name) - keptMs}`
  if (state[name].size < entriesMax) return isOld
  return `${isOld} OR place IN (SELECT place FROM (
    SELECT place, sum(entry_count) OVER (ORDER BY place DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS newer
    FROM state_chunks WHERE table_name = '${name}') WHERE newer >= ${entriesMax})`
}
