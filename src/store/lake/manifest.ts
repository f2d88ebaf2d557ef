// In: which files the lake has. Out: the list of them, in the store's own database: the one truth that the catalog, the
// folders and a restart follow. A file is live until others replace it or it is set aside; a replaced one is kept for
// readers who have begun, and forgotten with it; one that was set aside (it is gone or damaged) stays on the list with
// the reason, so that its row numbers are never given out again. Never touches a file.
import type { DuckDBConnection } from '@duckdb/node-api'
import { LAKE_SCHEMA_VERSION } from '../../schema/tables.ts'
import { transaction } from '../duckdb/database.ts'
import { query } from '../duckdb/query.ts'
import { LAKE_TABLES, type LakeTable, literal, MANIFEST, REMOVALS } from '../duckdb/sql.ts'
import { type Part, partPath } from './lake-files.ts'

/** A whole file, on the list. */
export interface ListedPart extends Part {
  rows: number
  bytes: number
  /** Of its content, in hexadecimal; null: it was written before hashes were noted. */
  sha256: string | null
  schemaVersion: number
  writtenAtMs: number
}

/** A file that is gone or damaged. */
export interface SetAsidePart extends ListedPart {
  reason: string
  setAsideAtMs: number
  /** Rows of it that no other file has. */
  rowsLost: number
  /** When `lake repair` settled the loss; null: it has not. */
  settledAtMs: number | null
}

const COLUMNS = `table_name AS "table", strftime(dt, '%Y-%m-%d') AS date, seq_first::DOUBLE AS first,
  seq_last::DOUBLE AS last, row_count::DOUBLE AS rows, byte_count::DOUBLE AS bytes, sha256,
  schema_version AS "schemaVersion", epoch_ms(written_at)::DOUBLE AS "writtenAtMs"`
const SET_ASIDE_COLUMNS = `${COLUMNS}, set_aside_reason AS reason, epoch_ms(set_aside_at)::DOUBLE AS "setAsideAtMs",
  rows_lost::DOUBLE AS "rowsLost", epoch_ms(settled_at)::DOUBLE AS "settledAtMs"`

/** SQL that holds of live files. */
export const IS_LIVE = 'replaced_at IS NULL AND set_aside_at IS NULL'

/** The last row number of each file that is or was on the list, as far as others do not go beyond it. */
const EVER_LISTED = `SELECT table_name, seq_last FROM ${MANIFEST}
  UNION ALL SELECT table_name, seq_last FROM ${REMOVALS}`

/** Files that make up a table, oldest rows first. */
export const liveParts = (connection: DuckDBConnection, table: string): Promise<ListedPart[]> =>
  query(
    connection,
    `SELECT ${COLUMNS} FROM ${MANIFEST} WHERE table_name = $table AND ${IS_LIVE}
     ORDER BY dt, seq_first, seq_last`,
    { table },
  )

/** The same of every table of the lake. */
export async function allLiveParts(connection: DuckDBConnection): Promise<ListedPart[]> {
  const parts: ListedPart[] = []
  for (const table of LAKE_TABLES) parts.push(...(await liveParts(connection, table.name)))
  return parts
}

/** Files by their table: every table of the lake, those without a file included. */
export function byTable<Listed extends Part>(
  parts: readonly Listed[],
): { table: LakeTable; parts: Listed[] }[] {
  const ofName = Map.groupBy(parts, ({ table }) => table)
  return LAKE_TABLES.map((table) => ({ table, parts: ofName.get(table.name) ?? [] }))
}

/** Files that no longer count, and stay for readers who have begun. */
export const replacedParts = (
  connection: DuckDBConnection,
  replacedBeforeMs: number,
): Promise<ListedPart[]> =>
  query(
    connection,
    `SELECT ${COLUMNS} FROM ${MANIFEST} WHERE replaced_at <= epoch_ms(${replacedBeforeMs}) ORDER BY path`,
  )

/** Files that were set aside, of all tables, those included whose loss is settled. */
export const setAsideParts = (connection: DuckDBConnection): Promise<SetAsidePart[]> =>
  query(
    connection,
    `SELECT ${SET_ASIDE_COLUMNS} FROM ${MANIFEST} WHERE replaced_at IS NULL AND set_aside_at IS NOT NULL
     ORDER BY table_name, dt, seq_first`,
  )

/** Every path on the list, live, replaced or set aside. */
export async function knownPaths(connection: DuckDBConnection, table: string): Promise<Set<string>> {
  const sql = `SELECT path FROM ${MANIFEST} WHERE table_name = $table`
  return new Set((await query<{ path: string }>(connection, sql, { table })).map(({ path }) => path))
}

/** The first row of a table that no file holds yet: everything before it is in the lake. */
export async function nextSeq(connection: DuckDBConnection, table: string): Promise<number> {
  const sql = `SELECT coalesce(max(seq_last), 0)::DOUBLE AS last FROM (${EVER_LISTED}) WHERE table_name = $table`
  return (await query<{ last: number }>(connection, sql, { table }))[0].last + 1
}

/** Without a schema version it has today's. */
export type NewPart = Omit<ListedPart, 'schemaVersion' | 'writtenAtMs'> & { schemaVersion?: number }

const COLUMN_NAMES = `table_name, path, dt, seq_first, seq_last, row_count, byte_count, written_at, schema_version,
  replaced_at, sha256`
const textOrNull = (text: string | null): string => (text === null ? 'NULL' : literal(text))

const rowOf = (part: NewPart, nowMs: number): string =>
  `(${literal(part.table)}, ${literal(partPath(part))}, DATE '${part.date}', ${part.first}, ${part.last}, ${part.rows},
    ${part.bytes}, epoch_ms(${nowMs}), ${part.schemaVersion ?? LAKE_SCHEMA_VERSION}, NULL, ${textOrNull(part.sha256)})`

/** Puts files on the list, in a transaction of the caller's. */
export async function insertParts(
  connection: DuckDBConnection,
  parts: readonly NewPart[],
  nowMs: number,
): Promise<void> {
  if (parts.length === 0) return
  const rows = parts.map((part) => rowOf(part, nowMs)).join(', ')
  await connection.run(`INSERT INTO ${MANIFEST} (${COLUMN_NAMES}) VALUES ${rows}`)
}

/** SQL of the paths of files, as the list has them. */
export const pathsOf = (parts: readonly Part[]): string =>
  parts.map((part) => literal(partPath(part))).join(', ')

/** Takes files off the list, for readers who have begun to keep until the grace is over. */
export const retire = (connection: DuckDBConnection, parts: readonly Part[], nowMs: number) =>
  connection.run(`UPDATE ${MANIFEST} SET replaced_at = epoch_ms(${nowMs}) WHERE path IN (${pathsOf(parts)})`)

/** Puts files on the list, all of them or none. */
export const listParts = (connection: DuckDBConnection, parts: readonly NewPart[], nowMs: number) =>
  transaction(connection, () => insertParts(connection, parts, nowMs))

/** Puts `added` on the list in the place of `replaced`, at once. */
export const exchangeParts = (
  connection: DuckDBConnection,
  replaced: readonly Part[],
  added: readonly NewPart[],
  nowMs: number,
): Promise<void> =>
  transaction(connection, async () => {
    if (replaced.length > 0) await retire(connection, replaced, nowMs)
    await insertParts(connection, added, nowMs)
  })

/** Marks a file as gone or damaged. */
export async function setAsidePart(
  connection: DuckDBConnection,
  part: ListedPart,
  reason: string,
  nowMs: number,
): Promise<void> {
  await connection.run(
    `UPDATE ${MANIFEST} SET set_aside_at = epoch_ms(${nowMs}), set_aside_reason = ${literal(reason)},
       rows_lost = ${part.rows}, settled_at = NULL
     WHERE path = ${literal(partPath(part))}`,
  )
}

/** A file that is whole (again) is live, with the figures that it has now, in the place of `replaced`. */
export const setPresent = (
  connection: DuckDBConnection,
  part: NewPart,
  replaced: readonly Part[],
  nowMs: number,
): Promise<void> =>
  transaction(connection, async () => {
    if (replaced.length > 0) await retire(connection, replaced, nowMs)
    await connection.run(
      `UPDATE ${MANIFEST} SET row_count = ${part.rows}, byte_count = ${part.bytes}, sha256 = ${textOrNull(part.sha256)},
         schema_version = ${part.schemaVersion ?? LAKE_SCHEMA_VERSION}, set_aside_at = NULL, set_aside_reason = NULL,
         rows_lost = NULL, settled_at = NULL
       WHERE path = ${literal(partPath(part))}`,
    )
  })

/** Notes that the loss of files that were set aside is known and accepted. */
export async function recoverParts(
  connection: DuckDBConnection,
  parts: readonly Part[],
  nowMs: number,
): Promise<void> {
  if (parts.length === 0) return
  await connection.run(
    `UPDATE ${MANIFEST} SET settled_at = epoch_ms(${nowMs})
     WHERE set_aside_at IS NOT NULL AND path IN (${pathsOf(parts)})`,
  )
}

/** Takes replaced files off the list, once they are gone. Live ones stay whatever is asked. */
export async function forgetParts(connection: DuckDBConnection, parts: readonly Part[]): Promise<void> {
  if (parts.length === 0) return
  await connection.run(
    `DELETE FROM ${MANIFEST} WHERE replaced_at IS NOT NULL AND path IN (${pathsOf(parts)})`,
  )
}
