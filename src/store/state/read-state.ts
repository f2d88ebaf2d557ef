// Reads the saved state piece by piece, so that neither DuckDB, nor a message between processes, nor a parser ever has a whole table
// as one text. The server process loads what is here too: only types are imported from DuckDB.
import type { DuckDBConnection } from '@duckdb/node-api'
import { assert } from '../../lib/assert.ts'
import { queryOne, queryRows } from '../duckdb/query.ts'
import { literal } from '../duckdb/sql.ts'
import { unavailable } from '../errors.ts'
import { STATE_PIECE_ENTRIES } from '../limits.ts'
import {
  dropEnded,
  QUEUES,
  STATE_TABLES,
  type StateAges,
  type StateTable,
  StoreState,
  SUMMED_TABLES,
} from './state.ts'
import { loadPosition, type SavedPosition } from './state-database.ts'

/** Some entries of a table of the saved state, in their order. */
export interface StatePiece {
  table: StateTable
  /** As the database counts them. */
  entryCount: number
  /** `[[key, value], …]` */
  json: string
}

/** SQL of an entry of `state_entries` in the form in which its table is loaded: a queue has times where others have keys. */
const SAVED_ENTRY = `CASE WHEN table_name IN (${QUEUES.map(literal).join(', ')})
  THEN '[' || (value ->> 'knownAtMs') || ',' || CASE WHEN table_name = 'recentLabels'
    THEN '{"analysisId":' || to_json(key) || ',' || value[2:] ELSE value END || ']'
  ELSE '[' || to_json(key) || ',' || value || ']' END`

/** Only rows of tables that were asked for are read. */
function tableOf(name: string): StateTable {
  const table = STATE_TABLES.find((each) => each === name)
  assert(table !== undefined, `${name} is no table of the state`)
  return table
}

/** The entries of these tables, as they are when this begins. Nothing may be deleted meanwhile. */
export async function* readState(
  connection: DuckDBConnection,
  tables: readonly StateTable[] = STATE_TABLES,
): AsyncGenerator<StatePiece, void, void> {
  const isWanted = `table_name IN (${tables.map(literal).join(', ')})`
  const range = await queryOne(
    connection,
    'SELECT coalesce(min(rowid), 0)::DOUBLE AS first, coalesce(max(rowid), -1)::DOUBLE AS last FROM state_entries',
    { first: 'number', last: 'number' },
  )
  const plan = await planChunks(connection)
  for (let from = range.first; from <= range.last; from += STATE_PIECE_ENTRIES)
    yield* await readEntries(connection, isWanted, { first: from, last: from + STATE_PIECE_ENTRIES - 1 })
  for (const chunks of plan) yield* await readChunks(connection, isWanted, chunks)
}

/** Rows by their numbers in DuckDB, inclusive: it finds them without reading others. They are in the order in which they were written. */
interface RowRange {
  first: number
  last: number
}

/** One text for each table: a DuckDB value for each entry would take most of a start. */
async function readEntries(
  connection: DuckDBConnection,
  isWanted: string,
  { first, last }: RowRange,
): Promise<StatePiece[]> {
  const pieces = await queryRows(
    connection,
    `SELECT table_name AS "table", count(*)::DOUBLE AS "entryCount", '[' || string_agg(${SAVED_ENTRY}, ',') || ']' AS json
     FROM state_entries WHERE rowid BETWEEN ${first} AND ${last} AND ${isWanted} GROUP BY 1`,
    { table: 'string', entryCount: 'number', json: 'string' },
  )
  return pieces.map(({ table, ...piece }) => ({ table: tableOf(table), ...piece }))
}

/** Ranges of chunks with about STATE_PIECE_ENTRIES entries each, in their order. */
async function planChunks(connection: DuckDBConnection): Promise<RowRange[]> {
  const chunks = await queryRows(
    connection,
    'SELECT rowid::DOUBLE AS row, entry_count::DOUBLE AS entries FROM state_chunks ORDER BY rowid',
    { row: 'number', entries: 'number' },
  )
  const ranges: RowRange[] = []
  let entriesLeft = 0
  for (const { row, entries } of chunks) {
    entriesLeft -= entries
    const range = ranges.at(-1)
    if (range !== undefined && entriesLeft >= 0) range.last = row
    else {
      ranges.push({ first: row, last: row })
      entriesLeft = STATE_PIECE_ENTRIES - entries
    }
  }
  return ranges
}

async function readChunks(
  connection: DuckDBConnection,
  isWanted: string,
  { first, last }: RowRange,
): Promise<StatePiece[]> {
  const chunks = await queryRows(
    connection,
    `SELECT table_name AS "table", entry_count::DOUBLE AS "entryCount", entries
     FROM state_chunks WHERE rowid BETWEEN ${first} AND ${last} AND ${isWanted}`,
    { table: 'string', entryCount: 'number', entries: 'string' },
  )
  return [...Map.groupBy(chunks, ({ table }) => table)].map(([table, ofTable]) => ({
    table: tableOf(table),
    entryCount: ofTable.reduce((sum, { entryCount }) => sum + entryCount, 0),
    json: `[${ofTable.map(({ entries }) => entries).join(',')}]`,
  }))
}

/** The state that `position` and `pieces` describe, as far as its ages still keep it. @param isSaved as of StoreState */
export async function restoreState(
  { lsn, knownAtMs, agedToMs, ages: savedBy }: SavedPosition,
  pieces: AsyncIterable<StatePiece>,
  ages: StateAges,
  isSaved = true,
): Promise<StoreState> {
  const state = new StoreState(ages, isSaved)
  state.lsn = lsn
  state.knownAtMs = knownAtMs
  state.agedToMs = agedToMs
  const texts = new Map<string, string>()
  for await (const { table, entryCount, json } of pieces) {
    const entries: [never, Partial<Record<string, unknown>> & never][] = JSON.parse(json)
    if (entries.length !== entryCount)
      throw unavailable(
        `the state database is damaged: of ${entryCount} entries of ${table}, ${entries.length} were read`,
      )
    for (const [, value] of entries) shareTexts(value, texts)
    state[table].load(entries)
  }
  dropEnded(state, savedBy ?? ages)
  return state
}

/** Equal names of agents and tokens become one string in memory: a million entries may name few. */
function shareTexts(value: Record<string, unknown>, texts: Map<string, string>): void {
  for (const name of ['agentId', 'mint']) {
    const text = value[name]
    if (typeof text !== 'string') continue
    const shared = texts.get(text)
    if (shared === undefined) texts.set(text, text)
    else value[name] = shared
  }
}

/** The part of the saved state that commits are applied to and that is saved again. */
export const loadState = async (connection: DuckDBConnection, ages: StateAges): Promise<StoreState> =>
  restoreState(await loadPosition(connection), readState(connection, SUMMED_TABLES), ages)
