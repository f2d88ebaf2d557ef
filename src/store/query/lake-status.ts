// In: a reader of the lake. Out: how much each table has, and how fresh it is, by the catalog. Never asks the server.
import { query } from '../duckdb/query.ts'
import { identifier, LAKE_TABLES, type LakeTable, literal, madeAtColumn } from '../duckdb/sql.ts'
import type { LakeReader } from './lake-reader.ts'

export interface TableFigures {
  table: string
  rows: number
  files: number
  bytes: number
  /** When the youngest row became durable, or what time it bears where its table does not tell; null: no row. */
  youngestMs: number | null
}

export interface LakeFigures {
  catalogWrittenMs: number
  tables: TableFigures[]
}

async function figuresOf({ connection }: LakeReader, table: LakeTable): Promise<TableFigures> {
  const listed = await query<{ path: string; rows: number; bytes: number }>(
    connection,
    `SELECT path, rows::DOUBLE AS rows, bytes::DOUBLE AS bytes FROM lake_files WHERE table_name = $table`,
    { table: table.name },
  )
  const sum = (name: 'rows' | 'bytes'): number => listed.reduce((total, part) => total + part[name], 0)
  const figures = { table: table.name, rows: sum('rows'), files: listed.length, bytes: sum('bytes') }
  if (listed.length === 0) return { ...figures, youngestMs: null }
  // Of the files, not of the view: which row is in force does not matter here, and would cost a sort.
  const paths = listed.map(({ path }) => literal(path)).join(', ')
  const [{ youngestMs }] = await query<{ youngestMs: number }>(
    connection,
    `SELECT epoch_ms(max(${identifier(madeAtColumn(table))}))::DOUBLE AS "youngestMs"
     FROM read_parquet([${paths}], hive_partitioning=false, union_by_name=true)`,
  )
  return { ...figures, youngestMs }
}

/** The figures of every table of the lake. */
export async function lakeFigures(reader: LakeReader): Promise<LakeFigures> {
  const [{ ms }] = await query<{ ms: number }>(
    reader.connection,
    'SELECT epoch_ms(written_at)::DOUBLE AS ms FROM lake_info',
  )
  const tables: TableFigures[] = []
  for (const table of LAKE_TABLES) tables.push(await figuresOf(reader, table))
  return { catalogWrittenMs: ms, tables }
}
