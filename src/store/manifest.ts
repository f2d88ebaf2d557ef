// In: which files the lake has. Out: the list of them, in the store's own database: the one truth that the catalog, the
// folders and a restart follow. A file is live until others replace it; then it is kept for readers who have begun, and
// forgotten with it. Never touches a file.
import type { DuckDBConnection } from '@duckdb/node-api'
import { LAKE_SCHEMA_VERSION } from '../schema/tables.ts'
import { query, transaction } from './database.ts'
import { type Part, partPath } from './lake-files.ts'
import { literal, MANIFEST, REMOVALS } from './sql.ts'

/** A whole file, on the list. */
export interface ListedPart extends Part {
  rows: number
  bytes: number
  schemaVersion: number
  writtenAtMs: number
}

const COLUMNS = `table_name AS "table", strftime(dt, '%Y-%m-%d') AS date, seq_first::DOUBLE AS first,
  seq_last::DOUBLE AS last, row_count::DOUBLE AS rows, byte_count::DOUBLE AS bytes, schema_version AS "schemaVersion",
  epoch_ms(written_at)::DOUBLE AS "writtenAtMs"`

/** The last row number of each file that is or was on the list, as far as others do not go beyond it. */
export const EVER_LISTED = `SELECT table_name, seq_last FROM ${MANIFEST}
  UNION ALL SELECT table_name, seq_last FROM ${REMOVALS}`

/** Files that make up a table, oldest rows first. */
export const liveParts = (connection: DuckDBConnection, table: string): Promise<ListedPart[]> =>
  query(
    connection,
    `SELECT ${COLUMNS} FROM ${MANIFEST} WHERE table_name = $table AND replaced_at IS NULL
     ORDER BY dt, seq_first, seq_last`,
    { table },
  )

/** Files that no longer count, and stay for readers who have begun. */
export const replacedParts = (
  connection: DuckDBConnection,
  replacedBeforeMs: number,
): Promise<ListedPart[]> =>
  query(
    connection,
    `SELECT ${COLUMNS} FROM ${MANIFEST} WHERE replaced_at <= epoch_ms(${replacedBeforeMs}) ORDER BY path`,
  )

/** Every path on the list, live or replaced. */
export async function knownPaths(connection: DuckDBConnection, table: string): Promise<Set<string>> {
  const sql = `SELECT path FROM ${MANIFEST} WHERE table_name = $table`
  return new Set((await query<{ path: string }>(connection, sql, { table })).map(({ path }) => path))
}

/** The first row of each table that no file holds yet: everything before it is in the lake. Of a table not named: 1. */
export async function nextSeqs(connection: DuckDBConnection): Promise<Map<string, number>> {
  const sql = `SELECT table_name AS name, max(seq_last)::DOUBLE AS last FROM (${EVER_LISTED}) GROUP BY 1`
  const found = await query<{ name: string; last: number }>(connection, sql)
  return new Map(found.map(({ name, last }) => [name, last + 1]))
}

/** The same of one table. */
export const nextSeq = async (connection: DuckDBConnection, table: string): Promise<number> =>
  (await nextSeqs(connection)).get(table) ?? 1

const rowOf = (part: Omit<ListedPart, 'schemaVersion' | 'writtenAtMs'>, nowMs: number): string =>
  `(${literal(part.table)}, ${literal(partPath(part))}, DATE '${part.date}', ${part.first}, ${part.last}, ${part.rows},
    ${part.bytes}, epoch_ms(${nowMs}), ${LAKE_SCHEMA_VERSION}, NULL)`

type NewPart = Omit<ListedPart, 'schemaVersion' | 'writtenAtMs'>

const insert = (connection: DuckDBConnection, parts: readonly NewPart[], nowMs: number) =>
  connection.run(`INSERT INTO ${MANIFEST} VALUES ${parts.map((part) => rowOf(part, nowMs)).join(', ')}`)

/** Takes live files off the list, for readers who have begun to keep until the grace is over. */
export const retire = (connection: DuckDBConnection, parts: readonly Part[], nowMs: number) =>
  connection.run(
    `UPDATE ${MANIFEST} SET replaced_at = epoch_ms(${nowMs})
     WHERE path IN (${parts.map((part) => literal(partPath(part))).join(', ')})`,
  )

/** Puts files on the list, all of them or none. */
export const listParts = (connection: DuckDBConnection, parts: readonly NewPart[], nowMs: number) =>
  transaction(connection, async () => void (await insert(connection, parts, nowMs)))

/** Puts `added` on the list in the place of `replaced`, at once. */
export const exchangeParts = (
  connection: DuckDBConnection,
  replaced: readonly Part[],
  added: readonly NewPart[],
  nowMs: number,
): Promise<void> =>
  transaction(connection, async () => {
    if (replaced.length > 0) await retire(connection, replaced, nowMs)
    if (added.length > 0) await insert(connection, added, nowMs)
  })

export async function setBytes(connection: DuckDBConnection, part: Part, bytes: number): Promise<void> {
  await connection.run(`UPDATE ${MANIFEST} SET byte_count = ${bytes} WHERE path = ${literal(partPath(part))}`)
}

/** Takes replaced files off the list, once they are gone. Live ones stay whatever is asked. */
export async function forgetParts(connection: DuckDBConnection, parts: readonly Part[]): Promise<void> {
  if (parts.length === 0) return
  await connection.run(
    `DELETE FROM ${MANIFEST} WHERE replaced_at IS NOT NULL
     AND path IN (${parts.map((part) => literal(partPath(part))).join(', ')})`,
  )
}
