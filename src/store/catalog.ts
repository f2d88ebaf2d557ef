// In: the files that are live. Out: `lake/catalog.duckdb`, a small database of one view for each table over exactly those
// files, for readers in any folder. It is written beside its place and renamed into it: a reader has the old one or the
// new one, whole. Never holds a row of data, never is written while somebody may read it.
import { rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { DuckDBConnection } from '@duckdb/node-api'
import { LAKE_SCHEMA_VERSION } from '../schema/tables.ts'
import { partPath, syncFile, wholeOrGone } from './lake-files.ts'
import type { ListedPart } from './manifest.ts'
import { inOwnDatabase } from './own-database.ts'
import { readableFiles, selectFromFiles } from './parquet-sql.ts'
import { identifier, LAKE_TABLES, type LakeTable, literal } from './sql.ts'

export const CATALOG_FILE = 'catalog.duckdb'

export interface CatalogTable {
  table: LakeTable
  parts: readonly ListedPart[]
}

export interface CatalogOptions {
  lakeDir: string
  pathOf(part: ListedPart): string
  /** Called between writing and renaming, and after it. */
  reach(point: 'catalog:written' | 'catalog:swapped'): void
}

const FILES = `CREATE TABLE lake_files (table_name VARCHAR, path VARCHAR, dt DATE, rows BIGINT, bytes BIGINT,
  row_seq_first BIGINT, row_seq_last BIGINT, schema_version INTEGER, written_at TIMESTAMP)`
const INFO = 'CREATE TABLE lake_info (written_at TIMESTAMP, schema_version INTEGER)'

function fileRow(part: ListedPart, path: string): string {
  return `(${literal(part.table)}, ${literal(path)}, DATE '${part.date}', ${part.rows}, ${part.bytes}, ${part.first},
    ${part.last}, ${part.schemaVersion}, epoch_ms(${part.writtenAtMs}))`
}

function comments(table: LakeTable): string[] {
  const view = identifier(table.name)
  return [
    `COMMENT ON VIEW ${view} IS ${literal(table.comment)}`,
    ...table.columns.map(
      (column) => `COMMENT ON COLUMN ${view}.${identifier(column.name)} IS ${literal(column.comment)}`,
    ),
  ]
}

function definition({ table, parts }: CatalogTable, pathOf: CatalogOptions['pathOf']): string[] {
  const files = readableFiles(parts, pathOf)
  const rows = parts.map((part) => fileRow(part, pathOf(part)))
  return [
    `CREATE VIEW ${identifier(table.name)} AS ${selectFromFiles(table, files)}`,
    ...comments(table),
    ...(rows.length > 0 ? [`INSERT INTO lake_files VALUES ${rows.join(', ')}`] : []),
  ]
}

/** One transaction and one call: hundreds of small ones would each sync the disk, and the store's commits wait for it. */
const fill = (
  connection: DuckDBConnection,
  tables: readonly CatalogTable[],
  nowMs: number,
  { pathOf }: CatalogOptions,
) =>
  connection.run(
    [
      'BEGIN TRANSACTION',
      FILES,
      INFO,
      `INSERT INTO lake_info VALUES (epoch_ms(${nowMs}), ${LAKE_SCHEMA_VERSION})`,
      ...tables.flatMap((table) => definition(table, pathOf)),
      'COMMIT',
    ].join(';\n'),
  )

/** Writes the catalog of `tables` as of `nowMs`, and puts it in the place of the last one. */
export async function writeCatalog(
  tables: readonly CatalogTable[],
  nowMs: number,
  options: CatalogOptions,
): Promise<void> {
  const path = join(options.lakeDir, CATALOG_FILE)
  const temporary = `${path}.tmp`
  await rm(temporary, { force: true })
  await rm(`${temporary}.wal`, { force: true })
  await wholeOrGone(temporary, () =>
    inOwnDatabase(temporary, { threads: '1' }, async (connection) => {
      await fill(connection, tables, nowMs, options)
      await connection.run('CHECKPOINT')
    }),
  )
  await syncFile(temporary)
  options.reach('catalog:written')
  await rename(temporary, path)
  await syncFile(dirname(path))
  options.reach('catalog:swapped')
}

/** Path below the lake's folder, as `lake_files` would show it without its root. */
export const catalogName = partPath
export const CATALOG_TABLES = LAKE_TABLES
