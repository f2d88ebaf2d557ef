// The list of the lake's files, in the state database. The catalog, the folders and a restart follow it. A live file is
// read by everyone. A replaced one stays on the list until it is deleted, after the readers' grace period. A quarantined one
// (missing or damaged) stays with its reason, so that its row numbers are never used again.
import type { DuckDBConnection } from '@duckdb/node-api'
import { LAKE_SCHEMA_VERSION } from '../../schema/tables.ts'
import { transaction } from '../duckdb/database.ts'
import { queryRows, queryValue } from '../duckdb/query.ts'
import {
  LAKE_TABLES,
  type LakeTable,
  literal,
  literalOrNull,
  MANIFEST,
  REMOVALS,
  timeOrNull,
} from '../duckdb/sql.ts'
import type { LakeFile } from '../types.ts'
import { type DataFile, relativePath } from './lake-files.ts'

/** A file on the list. */
export interface ListedFile
  extends DataFile,
    Pick<LakeFile, 'rows' | 'bytes' | 'sha256' | 'schemaVersion' | 'writtenAtMs'> {}

/** A missing or damaged file. */
export interface QuarantinedFile extends ListedFile {
  reason: string
  quarantinedAtMs: number
  /** Rows of it that no other file has. */
  rowsLost: number
  /** When `lake repair` acknowledged the loss; null: not yet. */
  acknowledgedAtMs: number | null
}

/** A file that was live until now, with all of its rows lost. */
export const quarantinedFile = (
  file: ListedFile,
  reason: string,
  quarantinedAtMs: number,
): QuarantinedFile => ({ ...file, reason, quarantinedAtMs, rowsLost: file.rows, acknowledgedAtMs: null })

/** The types of a `ListedFile`'s columns, as queries return them. */
export const LISTED_COLUMNS = {
  table: 'string',
  date: 'string',
  first: 'number',
  last: 'number',
  rows: 'number',
  bytes: 'number',
  sha256: 'string?',
  schemaVersion: 'number',
  writtenAtMs: 'number',
} as const
const SELECT_LISTED = `table_name AS "table", strftime(dt, '%Y-%m-%d') AS date, seq_first::DOUBLE AS first,
  seq_last::DOUBLE AS last, row_count::DOUBLE AS rows, byte_count::DOUBLE AS bytes, sha256,
  schema_version AS "schemaVersion", epoch_ms(written_at)::DOUBLE AS "writtenAtMs"`
export const QUARANTINED_COLUMNS = {
  ...LISTED_COLUMNS,
  reason: 'string',
  quarantinedAtMs: 'number',
  rowsLost: 'number',
  acknowledgedAtMs: 'number?',
} as const
const SELECT_QUARANTINED = `${SELECT_LISTED}, set_aside_reason AS reason,
  epoch_ms(set_aside_at)::DOUBLE AS "quarantinedAtMs", rows_lost::DOUBLE AS "rowsLost",
  epoch_ms(settled_at)::DOUBLE AS "acknowledgedAtMs"`

/** SQL condition on live files. */
const IS_LIVE_SQL = 'replaced_at IS NULL AND set_aside_at IS NULL'

/** The last row numbers of files that are or were on the list. */
const ALL_LAST_SEQS = `SELECT table_name, seq_last FROM ${MANIFEST}
  UNION ALL SELECT table_name, seq_last FROM ${REMOVALS}`

/** The live files of a table, oldest rows first. */
export const listLiveFiles = (connection: DuckDBConnection, table: string): Promise<ListedFile[]> =>
  queryRows(
    connection,
    `SELECT ${SELECT_LISTED} FROM ${MANIFEST} WHERE table_name = $table AND ${IS_LIVE_SQL}
     ORDER BY dt, seq_first, seq_last`,
    LISTED_COLUMNS,
    { table },
  )

/** The live files of all tables, table by table. */
export async function listAllLiveFiles(connection: DuckDBConnection): Promise<ListedFile[]> {
  const files = await queryRows(
    connection,
    `SELECT ${SELECT_LISTED} FROM ${MANIFEST} WHERE ${IS_LIVE_SQL} ORDER BY dt, seq_first, seq_last`,
    LISTED_COLUMNS,
  )
  return groupByTable(files).flatMap((group) => group.files)
}

/** The files that a reader may have open: live ones, and replaced ones that are not deleted yet. */
export async function listReadableFiles(
  connection: DuckDBConnection,
): Promise<(ListedFile & { isLive: boolean })[]> {
  return queryRows(
    connection,
    `SELECT ${SELECT_LISTED}, replaced_at IS NULL AS "isLive" FROM ${MANIFEST} WHERE set_aside_at IS NULL
     ORDER BY table_name, dt, seq_first, seq_last`,
    { ...LISTED_COLUMNS, isLive: 'boolean' },
  )
}

/** Groups files by table. Tables without a file are included. */
export function groupByTable<Listed extends DataFile>(
  files: readonly Listed[],
): { table: LakeTable; files: Listed[] }[] {
  const byName = Map.groupBy(files, ({ table }) => table)
  return LAKE_TABLES.map((table) => ({ table, files: byName.get(table.name) ?? [] }))
}

/** How much files have together. */
export const sizeOf = (files: readonly ListedFile[]) => ({
  files: files.length,
  rows: files.reduce((sum, { rows }) => sum + rows, 0),
  bytes: files.reduce((sum, { bytes }) => sum + bytes, 0),
})

/** Files that were replaced before a moment and are kept for readers who started earlier. */
export const listReplacedFiles = (
  connection: DuckDBConnection,
  replacedBeforeMs: number,
): Promise<ListedFile[]> =>
  queryRows(
    connection,
    `SELECT ${SELECT_LISTED} FROM ${MANIFEST} WHERE replaced_at <= epoch_ms(${replacedBeforeMs}) ORDER BY path`,
    LISTED_COLUMNS,
  )

/** The quarantined files of all tables, including those whose loss is acknowledged. */
export const listQuarantinedFiles = (connection: DuckDBConnection): Promise<QuarantinedFile[]> =>
  queryRows(
    connection,
    `SELECT ${SELECT_QUARANTINED} FROM ${MANIFEST} WHERE replaced_at IS NULL AND set_aside_at IS NOT NULL
     ORDER BY table_name, dt, seq_first`,
    QUARANTINED_COLUMNS,
  )

/** The paths of all files on the list: live, replaced or quarantined. */
export async function listKnownPaths(connection: DuckDBConnection): Promise<Set<string>> {
  const rows = await queryRows(connection, `SELECT path FROM ${MANIFEST}`, { path: 'string' })
  return new Set(rows.map(({ path }) => path))
}

/** The row number after the last one of a table that is, or ever was, in the lake. */
export async function nextSeq(connection: DuckDBConnection, table: string): Promise<number> {
  const sql = `SELECT coalesce(max(seq_last), 0)::DOUBLE AS last FROM (${ALL_LAST_SEQS}) WHERE table_name = $table`
  return (await queryValue(connection, sql, 'number', { table })) + 1
}

/** A file to be listed. Without a schema version it has the current one, without a time it is written now. */
export type NewFile = Omit<ListedFile, 'schemaVersion' | 'writtenAtMs'> & {
  schemaVersion?: number
  writtenAtMs?: number
}

const COLUMN_NAMES = `table_name, path, dt, seq_first, seq_last, row_count, byte_count, written_at, schema_version,
  replaced_at, sha256`

const toSqlRow = (file: NewFile, nowMs: number): string =>
  `(${literal(file.table)}, ${literal(relativePath(file))}, DATE '${file.date}', ${file.first}, ${file.last}, ${file.rows},
    ${file.bytes}, epoch_ms(${file.writtenAtMs ?? nowMs}), ${file.schemaVersion ?? LAKE_SCHEMA_VERSION}, NULL, ${literalOrNull(file.sha256)})`

/** Adds live files to the list. The caller has begun a transaction. */
export async function insertFiles(
  connection: DuckDBConnection,
  files: readonly NewFile[],
  nowMs: number,
): Promise<void> {
  if (files.length === 0) return
  const rows = files.map((file) => toSqlRow(file, nowMs)).join(', ')
  await connection.run(`INSERT INTO ${MANIFEST} (${COLUMN_NAMES}) VALUES ${rows}`)
}

/** Adds quarantined files to the list. The caller has begun a transaction. */
export async function insertQuarantined(
  connection: DuckDBConnection,
  files: readonly QuarantinedFile[],
): Promise<void> {
  await insertFiles(connection, files, 0)
  for (const file of files) await markQuarantined(connection, file)
}

/** SQL condition on these files. */
export const isOneOfSql = (files: readonly DataFile[]): string =>
  files.length === 0 ? 'false' : `path IN (${files.map((file) => literal(relativePath(file))).join(', ')})`

/** Takes files off the live ones. They are deleted after the readers' grace period. */
export const markReplaced = (connection: DuckDBConnection, files: readonly DataFile[], nowMs: number) =>
  connection.run(`UPDATE ${MANIFEST} SET replaced_at = epoch_ms(${nowMs}) WHERE ${isOneOfSql(files)}`)

/** Replaces live files by others in one transaction. */
export const replaceFiles = (
  connection: DuckDBConnection,
  replaced: readonly DataFile[],
  added: readonly NewFile[],
  nowMs: number,
): Promise<void> =>
  transaction(connection, async () => {
    await markReplaced(connection, replaced, nowMs)
    await insertFiles(connection, added, nowMs)
  })

/** Takes a missing or damaged file off the live ones. */
export const markQuarantined = (connection: DuckDBConnection, file: QuarantinedFile) =>
  connection.run(
    `UPDATE ${MANIFEST} SET set_aside_at = epoch_ms(${file.quarantinedAtMs}), set_aside_reason = ${literal(file.reason)},
       rows_lost = ${file.rowsLost}, settled_at = ${timeOrNull(file.acknowledgedAtMs)}
     WHERE path = ${literal(relativePath(file))}`,
  )

/** Makes a quarantined file live again, with its present row count, size and hash, in place of `replaced`. */
export const markLive = (
  connection: DuckDBConnection,
  file: NewFile,
  replaced: readonly DataFile[],
  nowMs: number,
): Promise<void> =>
  transaction(connection, async () => {
    await markReplaced(connection, replaced, nowMs)
    await connection.run(
      `UPDATE ${MANIFEST} SET row_count = ${file.rows}, byte_count = ${file.bytes}, sha256 = ${literalOrNull(file.sha256)},
         schema_version = ${file.schemaVersion ?? LAKE_SCHEMA_VERSION}, written_at = epoch_ms(${file.writtenAtMs ?? nowMs}),
         set_aside_at = NULL, set_aside_reason = NULL, rows_lost = NULL, settled_at = NULL
       WHERE path = ${literal(relativePath(file))}`,
    )
  })

/** Records that an operator has acknowledged the loss of quarantined files. */
export const acknowledgeLosses = (connection: DuckDBConnection, files: readonly DataFile[], nowMs: number) =>
  connection.run(
    `UPDATE ${MANIFEST} SET settled_at = epoch_ms(${nowMs})
     WHERE set_aside_at IS NOT NULL AND ${isOneOfSql(files)}`,
  )

/** Removes deleted files from the list. Only replaced ones are removed, whatever the caller passes. */
export async function deleteReplaced(
  connection: DuckDBConnection,
  files: readonly DataFile[],
): Promise<void> {
  if (files.length === 0) return
  await connection.run(`DELETE FROM ${MANIFEST} WHERE replaced_at IS NOT NULL AND ${isOneOfSql(files)}`)
}
