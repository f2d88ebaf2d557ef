// Writes `lake/catalog.duckdb`, a small database with a view of each table over its live files, for readers. It is written to a
// temporary file and renamed, so that a reader opens the old or the new one, whole. It contains no rows of data.
import { chmod, copyFile, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { DuckDBConnection } from '@duckdb/node-api'
import { syncPath } from '../../lib/files.ts'
import { LABELLED } from '../../schema/tables/labelled.ts'
import { LAKE_SCHEMA_VERSION, TABLES, type Table } from '../../schema/tables.ts'
import { queryRows } from '../duckdb/query.ts'
import { withScratchDatabase } from '../duckdb/scratch-database.ts'
import {
  commentOnColumn,
  identifier,
  LAKE_TABLES,
  type LakeTable,
  literal,
  literalOrNull,
  timeOrNull,
} from '../duckdb/sql.ts'
import { createEventMetadataSql, type EventMetadata } from '../events/event-metadata.ts'
import { moveFile, relativePath, removeFile, writeOrRemove } from './lake-files.ts'
import type { ListedFile, QuarantinedFile } from './manifest.ts'
import { selectLabelled, selectNewestRows, toReadableFiles } from './parquet-sql.ts'

export const CATALOG_FILE = 'catalog.duckdb'
/**
 * What a process leaves here that opens the catalog without READ_ONLY and is killed, or goes on when the catalog is replaced. DuckDB
 * replays it into whatever catalog lies beside it.
 */
export const OUTSIDE_LOG = `${CATALOG_FILE}.wal`

export interface CatalogTable {
  table: LakeTable
  files: readonly ListedFile[]
}

/** What goes into a catalog. */
export interface CatalogContent {
  tables: readonly CatalogTable[]
  /** Missing or damaged files: no view reads them. */
  quarantined: readonly QuarantinedFile[]
  recorded: EventMetadata
  /** Commits up to this one are in the lake, those without a row too; 0: not known. */
  flushedLsn: number
}

/** The live files of all tables. */
export const filesOf = ({ tables }: CatalogContent): ListedFile[] => tables.flatMap(({ files }) => files)

type PathOf = (file: ListedFile) => string

export interface CatalogOptions {
  lakeDir: string
  pathOf: PathOf
  /** Called between writing and renaming, and after it. */
  failpoint?(point: 'catalog:written' | 'catalog:swapped'): void
}

/** The schema of the views that read files. Readers use those of `main`, which select from them and have the comments. */
const FILE_VIEWS = 'lake_rows'
/** The name is another one than that of the readers' view, so that a look-up of columns by view finds each once. */
export const fileViewName = ({ name }: LakeTable): string => `${name}_rows`
const fileView = (table: LakeTable): string => `${FILE_VIEWS}.${identifier(fileViewName(table))}`

const FILES = `CREATE TABLE lake_files (table_name VARCHAR, path VARCHAR, dt DATE, rows BIGINT, bytes BIGINT,
  row_seq_first BIGINT, row_seq_last BIGINT, schema_version INTEGER, written_at TIMESTAMP, sha256 VARCHAR)`
const SET_ASIDE = `CREATE TABLE lake_set_aside (table_name VARCHAR, path VARCHAR, dt DATE, rows_lost BIGINT, reason VARCHAR,
  set_aside_at TIMESTAMP, settled_at TIMESTAMP, bytes BIGINT, schema_version INTEGER, written_at TIMESTAMP, sha256 VARCHAR)`
const INFO = 'CREATE TABLE lake_info (written_at TIMESTAMP, schema_version INTEGER, flushed_lsn BIGINT)'

function fileRow(file: ListedFile, path: string): string {
  return `(${literal(file.table)}, ${literal(path)}, DATE '${file.date}', ${file.rows}, ${file.bytes}, ${file.first},
    ${file.last}, ${file.schemaVersion}, epoch_ms(${file.writtenAtMs}), ${literalOrNull(file.sha256)})`
}

const setAsideRow = (file: QuarantinedFile): string =>
  `(${literal(file.table)}, ${literal(relativePath(file))}, DATE '${file.date}', ${file.rowsLost}, ${literal(file.reason)},
    epoch_ms(${file.quarantinedAtMs}), ${timeOrNull(file.acknowledgedAtMs)},
    ${file.bytes}, ${file.schemaVersion}, epoch_ms(${file.writtenAtMs}), ${literalOrNull(file.sha256)})`

/** A view of readers, with its comments. */
const readerViewSql = (view: Pick<Table, 'name' | 'comment' | 'columns'>, rows: string): string[] => [
  `CREATE VIEW ${identifier(view.name)} AS ${rows}`,
  `COMMENT ON VIEW ${identifier(view.name)} IS ${literal(view.comment)}`,
  ...view.columns.map((column) => commentOnColumn(view, column)),
]

const tableViewsSql = (table: LakeTable): string[] => [
  `CREATE VIEW ${fileView(table)} AS ${selectNewestRows(table, [])}`,
  ...readerViewSql(table, `FROM ${fileView(table)}`),
]

/** The views that readers see. A catalog of an older version may lack some. */
export const READER_VIEWS: readonly string[] = [...LAKE_TABLES.map(({ name }) => name), LABELLED.name]

/**
 * Bars, with what became known of gaps after they were written. Costs a hash join where there is any, else nothing. DuckDB looks a name
 * without a schema up in that of the view.
 */
const correctedBarsSql = (bars: string): string =>
  `SELECT * REPLACE (complete AND NOT EXISTS (FROM main.lake_incomplete_bars AS later
     WHERE later.tf = bars.tf AND later.t = bars.t) AS complete) FROM (${bars}) AS bars`

function tableSql({ table, files }: CatalogTable, pathOf: PathOf, hasIncompleteBars: boolean): string[] {
  if (files.length === 0) return []
  const rows = selectNewestRows(table, toReadableFiles(files, pathOf))
  const isCorrected = table.name === TABLES.bars.name && hasIncompleteBars
  return [
    `CREATE OR REPLACE VIEW ${fileView(table)} AS ${isCorrected ? correctedBarsSql(rows) : rows}`,
    `INSERT INTO lake_files VALUES ${files.map((file) => fileRow(file, pathOf(file))).join(', ')}`,
  ]
}

const contentSql = (
  { tables, quarantined, recorded, flushedLsn }: CatalogContent,
  nowMs: number,
  pathOf: PathOf,
): string[] => [
  FILES,
  SET_ASIDE,
  INFO,
  ...createEventMetadataSql(recorded),
  ...(quarantined.length > 0
    ? [`INSERT INTO lake_set_aside VALUES ${quarantined.map(setAsideRow).join(', ')}`]
    : []),
  `INSERT INTO lake_info VALUES (epoch_ms(${nowMs}), ${LAKE_SCHEMA_VERSION}, ${flushedLsn})`,
  ...tables.flatMap((table) => tableSql(table, pathOf, recorded.incompleteBars.length > 0)),
]

/**
 * Runs statements in the database at `path`, as one transaction in one call: each of hundreds of small ones would sync the disk
 * and delay the store's commits.
 */
const runInFile = (path: string, statements: readonly string[]): Promise<void> =>
  withScratchDatabase(path, { threads: '1' }, async (connection) => {
    // DuckDB takes as long to optimize such a statement as to run it.
    const all = ['PRAGMA disable_optimizer', 'BEGIN TRANSACTION', ...statements, 'COMMIT', 'CHECKPOINT']
    await connection.run(all.join(';\n'))
  })

const emptyCatalogSql = (): string[] => [
  `CREATE SCHEMA ${FILE_VIEWS}`,
  ...LAKE_TABLES.flatMap(tableViewsSql),
  ...readerViewSql(LABELLED, selectLabelled('main.training', 'main.outcomes')),
]

/** The SQL of a catalog's views for readers, by name, as DuckDB tells it. */
export async function readReaderViews(
  connection: DuckDBConnection,
  catalog: string,
): Promise<Map<string, string>> {
  const views = await queryRows(
    connection,
    `SELECT view_name AS name, sql FROM duckdb_views() WHERE database_name = $catalog AND schema_name = 'main' AND NOT internal`,
    { name: 'string', sql: 'string' },
    { catalog },
  )
  return new Map(views.map(({ name, sql }) => [name, sql]))
}

/** What `readReaderViews` finds in a catalog of this version. */
export const expectedReaderViews = (): Promise<Map<string, string>> =>
  withScratchDatabase(':memory:', { threads: '1' }, async (connection) => {
    await connection.run(emptyCatalogSql().join(';\n'))
    return readReaderViews(connection, 'memory')
  })

/** The file of a catalog of a lake without files, made once: its 250 comments take longer than all else, and are the same in every catalog. */
let emptyCatalog: Buffer | null = null

async function removeTemporary(path: string): Promise<void> {
  await rm(path, { recursive: true, force: true })
  await rm(`${path}.wal`, { force: true })
}

const temporaryCatalog = (lakeDir: string): string => `${join(lakeDir, CATALOG_FILE)}.tmp`

/** Runs `work` with a copy of the catalog as `listed`: what others have written beside it, or have locked, is not in the way. */
export async function withCatalogCopy<T>(
  lakeDir: string,
  work: (connection: DuckDBConnection) => Promise<T>,
): Promise<T> {
  const copy = temporaryCatalog(lakeDir)
  await removeTemporary(copy)
  try {
    await copyFile(join(lakeDir, CATALOG_FILE), copy)
    return await withScratchDatabase(':memory:', { threads: '1' }, async (connection) => {
      await connection.run(`ATTACH ${literal(copy)} AS listed (READ_ONLY)`)
      return work(connection)
    })
  } finally {
    await removeTemporary(copy)
  }
}

/** Writes a catalog to `path`, replacing an unfinished one. */
export async function createCatalog(
  content: CatalogContent,
  nowMs: number,
  path: string,
  pathOf: PathOf,
): Promise<void> {
  await removeTemporary(path)
  await writeOrRemove(path, async () => {
    if (emptyCatalog === null) await runInFile(path, emptyCatalogSql())
    else await writeFile(path, emptyCatalog)
    emptyCatalog ??= await readFile(path)
    await runInFile(path, contentSql(content, nowMs, pathOf))
  })
}

/** Writes a catalog of `content` and swaps it in for the present one, durably. */
export async function writeCatalog(
  content: CatalogContent,
  nowMs: number,
  { lakeDir, pathOf, failpoint }: CatalogOptions,
): Promise<void> {
  const path = join(lakeDir, CATALOG_FILE)
  const temporary = temporaryCatalog(lakeDir)
  await createCatalog(content, nowMs, temporary, pathOf)
  // DuckDB opens a file for writing unless it is told READ_ONLY: readers who forget that are refused. Some disks have no modes.
  await chmod(temporary, (await stat(temporary)).mode & 0o444).catch(() => undefined)
  await syncPath(temporary)
  failpoint?.('catalog:written')
  // Renaming cannot replace a folder.
  if ((await stat(path).catch(() => null))?.isDirectory()) await moveFile(path, `${path}.set-aside`)
  const removeOutsideLog = () => removeFile(join(lakeDir, OUTSIDE_LOG))
  await removeOutsideLog()
  await rename(temporary, path)
  // Somebody may have opened the old one for writing in between.
  await removeOutsideLog()
  await syncPath(lakeDir)
  failpoint?.('catalog:swapped')
}
