// Rows, files, bytes and age of each table of the lake, from the catalog alone.
import { queryValue } from '../duckdb/query.ts'
import { createdAtColumn, identifier } from '../duckdb/sql.ts'
import { readCatalogFiles } from '../lake/catalog-reader.ts'
import { groupByTable, sizeOf } from '../lake/manifest.ts'
import { selectAllRows } from '../lake/parquet-sql.ts'
import type { LakeReader } from './lake-reader.ts'

export interface TableFigures {
  table: string
  rows: number
  files: number
  bytes: number
  /** When the youngest row became durable, or for tables without that column, the time it is about; null: no row. */
  youngestMs: number | null
}

export interface LakeFigures {
  catalogWrittenMs: number
  tables: TableFigures[]
}

/** Reads the figures of all tables. */
export async function lakeFigures({ connection }: LakeReader): Promise<LakeFigures> {
  const writtenSql = 'SELECT epoch_ms(written_at)::DOUBLE FROM lake_info'
  const catalogWrittenMs = await queryValue(connection, writtenSql, 'number')
  const tables: TableFigures[] = []
  for (const { table, files } of groupByTable(await readCatalogFiles(connection, 'lake'))) {
    // Of the files instead of the view, whose choice of the newest rows would cost a sort.
    const youngestSql = `SELECT epoch_ms(max(${identifier(createdAtColumn(table))}))::DOUBLE FROM (${selectAllRows(table, files)})`
    const youngestMs = await queryValue(connection, youngestSql, 'number?')
    tables.push({ table: table.name, ...sizeOf(files), youngestMs })
  }
  return { catalogWrittenMs, tables }
}
