// In: the files that are live. Out: `lake/catalog.duckdb`, a small database of one view for each table over exactly those
// files, for readers in any folder. It is written beside its place and renamed into it: a reader has the old one or the
// new one, whole. Never holds a row of data, never is written while somebody may read it.
import { rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { DuckDBConnection } from '@duckdb/node-api'
import { syncPath } from '../../lib/files.ts'
import { LAKE_SCHEMA_VERSION } from '../../schema/tables.ts'
import { inScratchDatabase } from '../duckdb/scratch-database.ts'
import { identifier, type LakeTable, literal } from '../duckdb/sql.ts'
import { moveFile, partPath, wholeOrGone } from './lake-files.ts'
import type { ListedPart, SetAsidePart } from './manifest.ts'
import { readableFiles, selectFromFiles } from './parquet-sql.ts'

export const CATALOG_FILE = 'catalog.duckdb'

export interface CatalogTable {
  table: LakeTable
  parts: readonly ListedPart[]
}

/** What a catalog tells of. */
export interface CatalogContent {
  tables: readonly CatalogTable[]
  /** Files that are gone or damaged: no view reads them. */
  setAside: readonly SetAsidePart[]
}

export interface CatalogOptions {
  lakeDir: string
  pathOf(part: ListedPart): string
  /** Called between writing and renaming, and after it. */
  failpoint(point: 'catalog:written' | 'catalog:swapped'): void
}

const FILES = `CREATE TABLE lake_files (table_name VARCHAR, path VARCHAR, dt DATE, rows BIGINT, bytes BIGINT,
  row_seq_first BIGINT, row_seq_last BIGINT, schema_version INTEGER, written_at TIMESTAMP, sha256 VARCHAR)`
const SET_ASIDE = `CREATE TABLE lake_set_aside (table_name VARCHAR, path VARCHAR, dt DATE, rows_lost BIGINT, reason VARCHAR,
  set_aside_at TIMESTAMP, settled_at TIMESTAMP)`
const INFO = 'CREATE TABLE lake_info (written_at TIMESTAMP, schema_version INTEGER)'

function fileRow(part: ListedPart, path: string): string {
  return `(${literal(part.table)}, ${literal(path)}, DATE '${part.date}', ${part.rows}, ${part.bytes}, ${part.first},
    ${part.last}, ${part.schemaVersion}, epoch_ms(${part.writtenAtMs}), ${part.sha256 === null ? 'NULL' : literal(part.sha256)})`
}

const setAsideRow = (part: SetAsidePart): string =>
  `(${literal(part.table)}, ${literal(partPath(part))}, DATE '${part.date}', ${part.rowsLost}, ${literal(part.reason)},
    epoch_ms(${part.setAsideAtMs}), ${part.settledAtMs === null ? 'NULL' : `epoch_ms(${part.settledAtMs})`})`

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
  { tables, setAside }: CatalogContent,
  nowMs: number,
  { pathOf }: Pick<CatalogOptions, 'pathOf'>,
) =>
  connection.run(
    [
      'BEGIN TRANSACTION',
      FILES,
      SET_ASIDE,
      INFO,
      ...(setAside.length > 0
        ? [`INSERT INTO lake_set_aside VALUES ${setAside.map(setAsideRow).join(', ')}`]
        : []),
      `INSERT INTO lake_info VALUES (epoch_ms(${nowMs}), ${LAKE_SCHEMA_VERSION})`,
      ...tables.flatMap((table) => definition(table, pathOf)),
      'COMMIT',
    ].join(';\n'),
  )

/** Writes a catalog to a file that is not there yet. */
export async function fillCatalog(
  content: CatalogContent,
  nowMs: number,
  path: string,
  options: Pick<CatalogOptions, 'pathOf'>,
): Promise<void> {
  await rm(path, { recursive: true, force: true })
  await rm(`${path}.wal`, { force: true })
  await wholeOrGone(path, () =>
    inScratchDatabase(path, { threads: '1' }, async (connection) => {
      await fill(connection, content, nowMs, options)
      await connection.run('CHECKPOINT')
    }),
  )
}

/** Writes the catalog of `content` as of `nowMs`, and puts it in the place of the last one. */
export async function writeCatalog(
  content: CatalogContent,
  nowMs: number,
  options: CatalogOptions,
): Promise<void> {
  const path = join(options.lakeDir, CATALOG_FILE)
  const temporary = `${path}.tmp`
  await fillCatalog(content, nowMs, temporary, options)
  await syncPath(temporary)
  options.failpoint('catalog:written')
  // A folder in its place would keep every catalog from being put there.
  if ((await stat(path).catch(() => null))?.isDirectory()) await moveFile(path, `${path}.set-aside`)
  await rename(temporary, path)
  await syncPath(dirname(path))
  options.failpoint('catalog:swapped')
}
