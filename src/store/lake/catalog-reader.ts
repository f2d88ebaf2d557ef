// Reads what an attached catalog, of this version or an older one, says of the lake's files.
import type { DuckDBConnection } from '@duckdb/node-api'
import { queryRows } from '../duckdb/query.ts'
import { literal } from '../duckdb/sql.ts'
import { LISTED_COLUMNS, type ListedFile, type QuarantinedFile } from './manifest.ts'

/** A file as a catalog lists it. */
export interface CatalogEntry extends ListedFile {
  /** Absolute path at which the catalog's views read it. */
  path: string
}

async function readColumnNames(
  connection: DuckDBConnection,
  catalog: string,
  table: string,
): Promise<ReadonlySet<string>> {
  const rows = await queryRows(
    connection,
    `SELECT column_name AS name FROM duckdb_columns() WHERE database_name = ${literal(catalog)} AND table_name = ${literal(table)}`,
    { name: 'string' },
  )
  return new Set(rows.map(({ name }) => name))
}

/** Every file that a catalog lists, table by table, oldest rows first. */
export async function readCatalogFiles(
  connection: DuckDBConnection,
  catalog: string,
): Promise<CatalogEntry[]> {
  // Catalogs of older versions have no hashes.
  const sha256 = (await readColumnNames(connection, catalog, 'lake_files')).has('sha256')
    ? 'sha256'
    : 'NULL::VARCHAR AS sha256'
  return queryRows(
    connection,
    `SELECT table_name AS "table", path, strftime(dt, '%Y-%m-%d') AS date, row_seq_first::DOUBLE AS first,
       row_seq_last::DOUBLE AS last, rows::DOUBLE AS rows, bytes::DOUBLE AS bytes, ${sha256},
       schema_version AS "schemaVersion", epoch_ms(written_at)::DOUBLE AS "writtenAtMs"
     FROM ${catalog}.lake_files ORDER BY table_name, dt, row_seq_first, row_seq_last`,
    { ...LISTED_COLUMNS, path: 'string' },
  )
}

/** A missing or damaged file as a catalog lists it. */
export interface CatalogLoss
  extends Pick<
    QuarantinedFile,
    'table' | 'date' | 'reason' | 'rowsLost' | 'quarantinedAtMs' | 'acknowledgedAtMs'
  > {
  /** Below the lake's folder. */
  path: string
}

/** The missing or damaged files that a catalog lists. Catalogs of older versions list none. */
export async function readCatalogLosses(
  connection: DuckDBConnection,
  catalog: string,
): Promise<CatalogLoss[]> {
  if ((await readColumnNames(connection, catalog, 'lake_set_aside')).size === 0) return []
  return queryRows(
    connection,
    `SELECT table_name AS "table", path, strftime(dt, '%Y-%m-%d') AS date, reason, rows_lost::DOUBLE AS "rowsLost",
       epoch_ms(set_aside_at)::DOUBLE AS "quarantinedAtMs", epoch_ms(settled_at)::DOUBLE AS "acknowledgedAtMs"
     FROM ${catalog}.lake_set_aside ORDER BY table_name, path`,
    {
      table: 'string',
      path: 'string',
      date: 'string',
      reason: 'string',
      rowsLost: 'number',
      quarantinedAtMs: 'number',
      acknowledgedAtMs: 'number?',
    },
  )
}
