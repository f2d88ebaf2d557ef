// In: tables and paths of their Parquet files, of this schema or an older one. Out: SQL that reads them as one relation of
// today's columns, in their order and types, NULL where a file is older than a column; and SQL that writes one. Never runs it.
import { type Column, LAKE_SCHEMA_VERSION } from '../../schema/tables.ts'
import { identifier, type LakeTable, lakeColumns, literal } from '../duckdb/sql.ts'
import { LAKE_ROW_GROUP_ROWS } from '../limits.ts'

/** A file as its readers need it. */
export interface ReadableFile {
  /** Absolute. */
  path: string
  schemaVersion: number
}

/** Files of a list, as their readers need them. */
export const readableFiles = <Listed extends Pick<ReadableFile, 'schemaVersion'>>(
  parts: readonly Listed[],
  pathOf: (part: Listed) => string,
): ReadableFile[] => parts.map((part) => ({ path: pathOf(part), schemaVersion: part.schemaVersion }))

const nullOf = (column: Column): string => `NULL::${column.type} AS ${identifier(column.name)}`

/** A relation with the table's columns and no row. */
const emptyRelation = (table: LakeTable): string =>
  `SELECT ${table.columns.map(nullOf).join(', ')} WHERE false`

/** The end of a SELECT by which only the newest row of each key counts, where a table says so. */
export function newestOnly({ latestBy, newestBy }: LakeTable): string {
  if (latestBy === undefined) return ''
  const order = [...(newestBy === undefined ? [] : [newestBy]), 'known_at']
  const newestFirst = order.map((name) => `${identifier(name)} DESC`).join(', ')
  return ` QUALIFY row_number() OVER (PARTITION BY ${latestBy.map(identifier).join(', ')} ORDER BY ${newestFirst}) = 1`
}

/**
 * A SELECT over `files`. Where all files have today's schema nothing stands between the reader and them, so filters and
 * projections reach the Parquet.
 */
export const selectFromFiles = (table: LakeTable, files: readonly ReadableFile[]): string =>
  selectEveryRow(table, files) + (files.length === 0 ? '' : newestOnly(table))

/** The same with every row that the files hold, those that a newer one follows included. */
export function selectEveryRow(table: LakeTable, files: readonly ReadableFile[]): string {
  if (files.length === 0) return emptyRelation(table)
  const paths = files.map(({ path }) => literal(path)).join(', ')
  const isOlder = files.some(({ schemaVersion }) => schemaVersion < LAKE_SCHEMA_VERSION)
  const options = `hive_partitioning=false${isOlder ? ', union_by_name=true' : ''}`
  const scan = `read_parquet([${paths}], ${options})`
  const source = isOlder ? `(SELECT * FROM ${scan} UNION ALL BY NAME ${emptyRelation(table)})` : scan
  return `SELECT ${lakeColumns(table)} FROM ${source}`
}

export interface ParquetShape {
  compression?: 'lz4' | 'zstd'
  rowGroupRows?: number
}

/** Writes what `rows` selects to a file: as the lake's own files are, unless told otherwise. */
export const copyToParquet = (
  rows: string,
  path: string,
  { compression = 'zstd', rowGroupRows = LAKE_ROW_GROUP_ROWS }: ParquetShape = {},
): string =>
  `COPY (${rows}) TO ${literal(path)} (FORMAT parquet, COMPRESSION ${compression}, ROW_GROUP_SIZE ${rowGroupRows})`
