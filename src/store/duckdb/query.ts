// Runs SQL and returns its rows as objects.
import type { DuckDBConnection } from '@duckdb/node-api'
import { hasFailed } from './result-stream.ts'
import { literal } from './sql.ts'

/** Types that a cell of a result may have. With `?` it may also be null. */
interface CellTypes {
  string: string
  'string?': string | null
  number: number
  'number?': number | null
  boolean: boolean
  'boolean?': boolean | null
}

/** Names and types of the columns of a result. */
export type ResultColumns = Readonly<Record<string, keyof CellTypes>>
export type ResultRow<Columns extends ResultColumns> = {
  -readonly [Name in keyof Columns]: CellTypes[Columns[Name]]
}
type Parameters = Record<string, string | number>

const hasType = (value: unknown, type: keyof CellTypes): boolean =>
  value === null ? type.endsWith('?') : type.startsWith(typeof value)

/** Runs `sql` and returns its rows, each cell checked against `columns`. Throws where a row does not match. */
export async function queryRows<const Columns extends ResultColumns>(
  connection: DuckDBConnection,
  sql: string,
  columns: Columns,
  parameters: Parameters = {},
): Promise<ResultRow<Columns>[]> {
  const types = Object.entries(columns)
  const isRow = (row: unknown): row is ResultRow<Columns> =>
    types.every(([name, type]) => hasType(Reflect.get(Object(row), name), type))
  const rows: unknown[] = await query(connection, sql, parameters)
  if (!rows.every(isRow)) throw new TypeError(`a query returned unexpected columns or types: ${sql}`)
  return rows
}

/** The same for a query that returns exactly one row, such as a sum without GROUP BY. */
export async function queryOne<const Columns extends ResultColumns>(
  connection: DuckDBConnection,
  sql: string,
  columns: Columns,
  parameters: Parameters = {},
): Promise<ResultRow<Columns>> {
  const rows = await queryRows(connection, sql, columns, parameters)
  if (rows.length !== 1) throw new TypeError(`a query returned ${rows.length} rows, not one: ${sql}`)
  return rows[0]
}

/** The only cell of a result, such as a sum without GROUP BY. */
export async function queryValue<Type extends keyof CellTypes>(
  connection: DuckDBConnection,
  sql: string,
  type: Type,
  parameters: Parameters = {},
): Promise<CellTypes[Type]> {
  const cells = (await query<object>(connection, sql, parameters)).flatMap((row) => Object.values(row))
  const isCell = (cell: unknown): cell is CellTypes[Type] => hasType(cell, type)
  if (cells.length !== 1 || !isCell(cells[0]))
    throw new TypeError(`a query returned something else than one ${type}: ${sql}`)
  return cells[0]
}

/** Runs statements, one after another. */
export async function runAll(connection: DuckDBConnection, statements: Iterable<string>): Promise<void> {
  for (const statement of statements) await connection.run(statement)
}

/** Rows of a Parquet file according to its footer. @throws when the file is not Parquet */
export function countParquetRows(connection: DuckDBConnection, path: string): Promise<number> {
  const sql = `SELECT sum(num_rows)::DOUBLE FROM parquet_file_metadata(${literal(path)})`
  return queryValue(connection, sql, 'number')
}

/**
 * Whether a database has a table of this name. A view is no table: its rows come from wherever its author wants.
 * @param database SQL of the database's name
 */
export async function hasTable(
  connection: DuckDBConnection,
  database: string,
  table: string,
): Promise<boolean> {
  const sql = `SELECT count(*)::DOUBLE AS count FROM duckdb_tables()
    WHERE database_name = ${database} AND schema_name = 'main' AND table_name = ${literal(table)}`
  return (await queryValue(connection, sql, 'number')) > 0
}

/**
 * Runs `sql` and returns its rows unchecked: the caller states their type. Meant for the columns of a table in
 * schema/tables.ts, whose types the table itself guarantees. Everything else uses `queryRows`.
 */
export async function query<T>(
  connection: DuckDBConnection,
  sql: string,
  parameters: Parameters = {},
): Promise<T[]> {
  const result = await connection.run(sql, parameters)
  const rows = (await result.getRowObjectsJS()) as T[]
  // The rows are all there before the first is read, but what was spilled to the disk may not come back.
  if (hasFailed(result) || rows.length !== result.rowCount)
    throw new Error(`only ${rows.length} of ${result.rowCount} rows of a result could be read: ${sql}`)
  return rows
}
