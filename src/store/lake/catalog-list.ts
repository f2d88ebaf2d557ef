// In: a catalog that is attached, of this version or an older one. Out: the files that it lists, and those that it says are
// set aside. Never looks at a file.
import type { DuckDBConnection } from '@duckdb/node-api'
import { query } from '../duckdb/query.ts'
import { literal } from '../duckdb/sql.ts'
import type { ListedPart, SetAsidePart } from './manifest.ts'

export interface CataloguedPart extends ListedPart {
  /** Where the catalog looks for it; absolute. */
  path: string
}

async function columnsOf(
  connection: DuckDBConnection,
  catalog: string,
  table: string,
): Promise<ReadonlySet<string>> {
  const found = await query<{ name: string }>(
    connection,
    `SELECT column_name AS name FROM duckdb_columns() WHERE database_name = ${literal(catalog)} AND table_name = ${literal(table)}`,
  )
  return new Set(found.map(({ name }) => name))
}

/** Every file that a catalog lists, table by table, oldest rows first. */
export async function cataloguedParts(
  connection: DuckDBConnection,
  catalog: string,
): Promise<CataloguedPart[]> {
  // Added since: the hash.
  const sha256 = (await columnsOf(connection, catalog, 'lake_files')).has('sha256')
    ? 'sha256'
    : 'NULL AS sha256'
  return query<CataloguedPart>(
    connection,
    `SELECT table_name AS "table", path, strftime(dt, '%Y-%m-%d') AS date, row_seq_first::DOUBLE AS first,
       row_seq_last::DOUBLE AS last, rows::DOUBLE AS rows, bytes::DOUBLE AS bytes, ${sha256},
       schema_version AS "schemaVersion", epoch_ms(written_at)::DOUBLE AS "writtenAtMs"
     FROM ${catalog}.lake_files ORDER BY table_name, dt, row_seq_first, row_seq_last`,
  )
}

/** What a catalog says of files that are gone or damaged. */
export interface CataloguedLoss extends Pick<SetAsidePart, 'table' | 'date' | 'reason' | 'rowsLost'> {
  /** Below the lake's folder. */
  path: string
  setAsideAtMs: number
  settledAtMs: number | null
}

/** Files that a catalog says are set aside. */
export async function cataloguedLosses(
  connection: DuckDBConnection,
  catalog: string,
): Promise<CataloguedLoss[]> {
  if ((await columnsOf(connection, catalog, 'lake_set_aside')).size === 0) return []
  return query(
    connection,
    `SELECT table_name AS "table", path, strftime(dt, '%Y-%m-%d') AS date, reason, rows_lost::DOUBLE AS "rowsLost",
       epoch_ms(set_aside_at)::DOUBLE AS "setAsideAtMs", epoch_ms(settled_at)::DOUBLE AS "settledAtMs"
     FROM ${catalog}.lake_set_aside ORDER BY table_name, path`,
  )
}
