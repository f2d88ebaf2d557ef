// Rows, files, bytes and age of each table of the lake, from the catalog alone.
import { queryRows, queryValue } from '../duckdb/query.ts'
import { createdAtColumn, identifier, LAKE_TABLES, type LakeTable, literal } from '../duckdb/sql.ts'
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

async function readTableFigures({ connection }: LakeReader, table: LakeTable): Promise<TableFigures> {
  const listed = await queryRows(
    connection,
    `SELECT path, rows::DOUBLE AS rows, bytes::DOUBLE AS bytes FROM lake_files WHERE table_name = $table`,
    { path: 'string', rows: 'number', bytes: 'number' },
    { table: table.name },
  )
  const sum = (name: 'rows' | 'bytes'): number => listed.reduce((total, file) => total + file[name], 0)
  const figures = { table: table.name, rows: sum('rows'), files: listed.length, bytes: sum('bytes') }
  if (listed.length === 0) return { ...figures, youngestMs: null }
  // Reads the files instead of the view, whose choice of the newest rows would cost a sort.
  const paths = listed.map(({ path }) => literal(path)).join(', ')
  const sql = `SELECT epoch_ms(max(${identifier(createdAtColumn(table))}))::DOUBLE
    FROM read_parquet([${paths}], hive_partitioning=false, union_by_name=true)`
  return { ...figures, youngestMs: await queryValue(connection, sql, 'number?') }
}

/** Reads the figures of all tables. */
export async function lakeFigures(reader: LakeReader): Promise<LakeFigures> {
  const sql = 'SELECT epoch_ms(written_at)::DOUBLE FROM lake_info'
  const catalogWrittenMs = await queryValue(reader.connection, sql, 'number')
  const tables: TableFigures[] = []
  for (const table of LAKE_TABLES) tables.push(await readTableFigures(reader, table))
  return { catalogWrittenMs, tables }
}
