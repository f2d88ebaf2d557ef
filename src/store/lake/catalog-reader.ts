// Reads what an attached catalog, of this version or an older one, says of the lake, and what the state database does.
import type { DuckDBConnection } from '@duckdb/node-api'
import { hasTable, queryRows, queryValue } from '../duckdb/query.ts'
import { literal } from '../duckdb/sql.ts'
import { unavailable } from '../errors.ts'
import { loadEventMetadata, readEventMetadata } from '../events/event-metadata.ts'
import { loadPosition } from '../state/state-database.ts'
import type { CatalogContent } from './catalog.ts'
import {
  groupByTable,
  LISTED_COLUMNS,
  type ListedFile,
  listAllLiveFiles,
  listQuarantinedFiles,
  QUARANTINED_COLUMNS,
  type QuarantinedFile,
} from './manifest.ts'

/** A file as a catalog lists it. */
export interface CatalogEntry extends ListedFile {
  /** Absolute path at which the catalog's views read it. */
  path: string
}

/** Whether a table of the catalog has a column that came later. */
async function hasColumn(
  connection: DuckDBConnection,
  catalog: string,
  table: string,
  column: string,
): Promise<boolean> {
  const sql = `SELECT name FROM pragma_table_info('${catalog}.main.${table}')`
  const columns = await queryRows(connection, sql, { name: 'string' })
  return columns.some(({ name }) => name === column)
}

/**
 * Every file that a catalog lists, table by table, oldest rows first. The catalog may be a stranger's: only its tables are read, since a
 * view reads whatever file it names. @throws StoreError `unavailable` where it has no such table
 */
export async function readCatalogFiles(
  connection: DuckDBConnection,
  catalog: string,
): Promise<CatalogEntry[]> {
  if (!(await hasTable(connection, literal(catalog), 'lake_files')))
    throw unavailable('the catalog has no table lake_files: it is not one that Mintlake has written')
  // Catalogs of older versions have no hashes.
  const sha256 = (await hasColumn(connection, catalog, 'lake_files', 'sha256'))
    ? 'sha256'
    : 'NULL::VARCHAR AS sha256'
  return queryRows(
    connection,
    `SELECT table_name AS "table", path, strftime(dt, '%Y-%m-%d') AS date, row_seq_first::DOUBLE AS first,
       row_seq_last::DOUBLE AS last, rows::DOUBLE AS rows, bytes::DOUBLE AS bytes, ${sha256},
       schema_version AS "schemaVersion", epoch_ms(written_at)::DOUBLE AS "writtenAtMs"
     FROM ${catalog}.main.lake_files ORDER BY table_name, dt, row_seq_first, row_seq_last`,
    { ...LISTED_COLUMNS, path: 'string' },
  )
}

/**
 * The missing or damaged files that a catalog lists. Row numbers come from the file's name, and so many rows it had as are lost. Catalogs
 * of older versions list none, or say nothing of their size and content: they have 0 bytes then.
 */
export async function readKnownLosses(
  connection: DuckDBConnection,
  catalog: string,
): Promise<QuarantinedFile[]> {
  if (!(await hasTable(connection, literal(catalog), 'lake_set_aside'))) return []
  const figures = (await hasColumn(connection, catalog, 'lake_set_aside', 'sha256'))
    ? 'bytes::DOUBLE AS bytes, schema_version AS "schemaVersion", epoch_ms(written_at)::DOUBLE AS "writtenAtMs", sha256'
    : '0::DOUBLE AS bytes, 1 AS "schemaVersion", 0::DOUBLE AS "writtenAtMs", NULL::VARCHAR AS sha256'
  const seq = (group: 1 | 2): string =>
    `coalesce(try_cast(regexp_extract(path, 'part-(\\d+)-(\\d+)', ${group}) AS DOUBLE), 0)`
  return queryRows(
    connection,
    `SELECT table_name AS "table", ${seq(1)} AS first, ${seq(2)} AS last, strftime(dt, '%Y-%m-%d') AS date, reason,
       rows_lost::DOUBLE AS rows, rows_lost::DOUBLE AS "rowsLost", epoch_ms(set_aside_at)::DOUBLE AS "quarantinedAtMs",
       epoch_ms(settled_at)::DOUBLE AS "acknowledgedAtMs", ${figures}
     FROM ${catalog}.main.lake_set_aside ORDER BY table_name, path`,
    QUARANTINED_COLUMNS,
  )
}

/** The last commit that the lake had when a catalog was written. Those of older versions do not tell: 0. */
async function readFlushedLsn(connection: DuckDBConnection, catalog: string): Promise<number> {
  if (!(await hasTable(connection, literal(catalog), 'lake_info'))) return 0
  if (!(await hasColumn(connection, catalog, 'lake_info', 'flushed_lsn'))) return 0
  const sql = `SELECT coalesce(max(flushed_lsn), 0)::DOUBLE FROM ${catalog}.main.lake_info`
  return queryValue(connection, sql, 'number')
}

/** All that an attached catalog says. @throws StoreError `unavailable` where it is none */
export const readContent = async (connection: DuckDBConnection, catalog: string) => ({
  tables: groupByTable(await readCatalogFiles(connection, catalog)),
  quarantined: await readKnownLosses(connection, catalog),
  recorded: await readEventMetadata(connection, catalog),
  flushedLsn: await readFlushedLsn(connection, catalog),
})

/** What a state database says of its lake, and the catalog is to say. */
export const loadContent = async (connection: DuckDBConnection): Promise<CatalogContent> => ({
  tables: groupByTable(await listAllLiveFiles(connection)),
  quarantined: await listQuarantinedFiles(connection),
  recorded: await loadEventMetadata(connection),
  flushedLsn: (await loadPosition(connection)).lsn,
})
