// Saves the changes of a state in the transaction of a flush, with its position and the ages by which its entries end. Entries are
// JSON in a narrow table, or many together in a chunk: they are only read as a whole, at a start (read-state.ts).
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { DuckDBConnection } from '@duckdb/node-api'
import { makeFolderNow } from '../../lib/files.ts'
import { queryOne, queryValue } from '../duckdb/query.ts'
import { literal } from '../duckdb/sql.ts'
import { STATE_BATCH_ENTRIES, STATE_CHUNK_BYTES } from '../limits.ts'
import type { KeyedTable } from './keyed-table.ts'
import {
  AGING_TABLES,
  type AgingTable,
  agedToMs,
  LASTING_TABLES,
  STATE_TABLES,
  type StateAges,
  type StateTable,
  type StoreState,
  SUMMED_TABLES,
} from './state.ts'

/** What the saved state is, beside its entries. */
export interface SavedPosition {
  /** The last commit that the state has; 0: none. */
  lsn: number
  knownAtMs: number
  /** The last recorded event that is in the lake; 0: none. */
  eventNo: number
  /** By table, the time by which its entries age; null: an earlier version saved it. */
  agedToMs: StoreState['agedToMs']
  /** The ages by which its entries have ended; null: an earlier version saved it, which did not keep them. */
  ages: StateAges | null
}

/** Whether a first state was saved. A start that was interrupted before that begins again. */
export async function isStateBegun(connection: DuckDBConnection): Promise<boolean> {
  const sql = 'SELECT is_begun AS "isBegun" FROM state_position'
  return queryValue(connection, sql, 'boolean')
}

export const beginState = (connection: DuckDBConnection) =>
  connection.run('UPDATE state_position SET is_begun = true')

/** The position of the saved state. */
export async function loadPosition(connection: DuckDBConnection): Promise<SavedPosition> {
  // As members of the row: a copy of an earlier version does not have the columns.
  const { agedTo, cooldownKeptMs, labelsDelayMs, ...position } = await queryOne(
    connection,
    `SELECT lsn::DOUBLE AS lsn, known_at_ms::DOUBLE AS "knownAtMs", event_no::DOUBLE AS "eventNo", json ->> 'aged_to_ms' AS "agedTo",
       (json ->> 'cooldown_kept_ms')::DOUBLE AS "cooldownKeptMs", (json ->> 'labels_delay_ms')::DOUBLE AS "labelsDelayMs"
     FROM (SELECT *, to_json(state_position) AS json FROM state_position)`,
    {
      lsn: 'number',
      knownAtMs: 'number',
      eventNo: 'number',
      agedTo: 'string?',
      cooldownKeptMs: 'number?',
      labelsDelayMs: 'number?',
    },
  )
  const areKnown = cooldownKeptMs !== null && labelsDelayMs !== null
  return {
    ...position,
    agedToMs: agedTo === null ? null : JSON.parse(agedTo),
    ages: areKnown ? { cooldownKeptMs, labelsDelayMs } : null,
  }
}

/** The changes of a flush are written to a file, so that DuckDB reads any number of them in one statement. */
const changesPath = (spillDir: string): string => join(spillDir, 'state-changes.ndjson')

/** What orders the entries of a state: their LSN, and their place among those of a commit or flush. */
const PLACES_PER_LSN = 2 ** 13

/**
 * Saves what changed since the last call. Must be called inside the transaction of the flush. Where that transaction fails,
 * the state in memory is ahead of the saved one and must be loaded again. What no later commit reads is then only in the database.
 */
export async function saveState(
  connection: DuckDBConnection,
  state: StoreState,
  spillDir: string,
): Promise<void> {
  const { cooldownKeptMs, labelsDelayMs } = state.ages
  const agedTo = state.agedToMs === null ? 'NULL' : literal(JSON.stringify(state.agedToMs))
  await connection.run(`UPDATE state_position SET lsn = ${state.lsn}, known_at_ms = ${state.knownAtMs}, aged_to_ms = ${agedTo},
    cooldown_kept_ms = ${cooldownKeptMs}, labels_delay_ms = ${labelsDelayMs}`)
  await saveLasting(connection, state, spillDir)
  for (const name of AGING_TABLES) {
    await addChunks(connection, name, newEntries(state, name), {
      firstPlace: state.lsn * PLACES_PER_LSN,
      knownAtMs: Math.ceil(agedToMs(state, name)),
    })
    await connection.run(
      `DELETE FROM state_chunks WHERE table_name = '${name}' AND (${endedSql(state, name)})`,
    )
  }
  const summed: readonly string[] = SUMMED_TABLES
  for (const name of STATE_TABLES) if (!summed.includes(name)) state[name].clear()
}

async function saveLasting(connection: DuckDBConnection, state: StoreState, spillDir: string): Promise<void> {
  let place = state.lsn * PLACES_PER_LSN
  let lines: string[] = []
  for (const name of LASTING_TABLES) {
    for (const [key, value] of state[name].takeChanges()) {
      const json = value === undefined ? null : JSON.stringify(value)
      lines.push(JSON.stringify({ t: name, k: key, p: place++, v: json }))
      if (lines.length < STATE_BATCH_ENTRIES) continue
      await writeChanges(connection, lines, spillDir)
      lines = []
    }
  }
  if (lines.length > 0) await writeChanges(connection, lines, spillDir)
}

async function writeChanges(
  connection: DuckDBConnection,
  lines: readonly string[],
  spillDir: string,
): Promise<void> {
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

export type Entry = readonly [key: string | number, value: unknown]

const newEntries = (state: StoreState, name: AgingTable): Iterable<Entry> =>
  name === 'idempotency' ? writtenEntries(state.idempotency) : state[name].takeNew()

function* writtenEntries<Value>(table: KeyedTable<Value>): IterableIterator<Entry> {
  for (const [key, value] of table.takeChanges()) if (value !== undefined) yield [key, value]
}

/**
 * Adds entries of a table in chunks; those that have ended are deleted by the chunk. A row for each entry, written once and deleted
 * once, would cost a flush several times as much. But DuckDB reads and rewrites 2048 rows at once, whole, whichever are asked for.
 * @param knownAtMs whole; no entry is younger, by the time that its table ages by
 * @returns the place behind them
 */
export async function addChunks(
  connection: DuckDBConnection,
  name: StateTable,
  entries: Iterable<Entry>,
  { firstPlace, knownAtMs }: { firstPlace: number; knownAtMs: number },
): Promise<number> {
  let place = firstPlace
  let [texts, length]: [string[], number] = [[], 0]
  const add = async (): Promise<void> => {
    const sql = `INSERT INTO state_chunks VALUES ('${name}', ${place++}, ${knownAtMs}, ${texts.length}, $entries)`
    await connection.run(sql, { entries: texts.join(',') })
    texts = []
    length = 0
  }
  for (const entry of entries) {
    const text = JSON.stringify(entry)
    if (length + text.length > STATE_CHUNK_BYTES && texts.length > 0) await add()
    texts.push(text)
    length += text.length + 1
  }
  if (texts.length > 0) await add()
  return place
}

/** SQL of whether every entry of a chunk has ended. */
function endedSql(state: StoreState, name: AgingTable): string {
  const { keptMs, entriesMax } = state.ageLimits[name]
  return `known_at_ms <= ${agedToMs(state, name) - keptMs} OR place IN (SELECT place FROM (
    SELECT place, sum(entry_count) OVER (ORDER BY place DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS newer
    FROM state_chunks WHERE table_name = '${name}') WHERE newer >= ${entriesMax})`
}
