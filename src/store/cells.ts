// In: rows as other rooms give them. Out: each as JSON text with its table's column names, checked. Never talks to
// DuckDB. A row that does not fit its table is wrong code: it is refused here, before it can spoil a transaction.
import { assert } from '../lib/assert.ts'
import {
  type Cell,
  type Column,
  type ColumnType,
  LAKE_SCHEMA_VERSION,
  TABLES,
  type Table,
  type TableName,
  type Write,
} from '../schema/tables.ts'

/** One checked row as the journal keeps it. */
export interface EncodedWrite {
  table: TableName
  /** JSON object by column name; what is null is left out. TIMESTAMP is Unix milliseconds. */
  json: string
}

/** Filled when the row becomes durable, whatever the caller put there. */
export const KNOWN_AT = 'known_at'

const INT32_MAX = 2 ** 31 - 1
/** What both a JavaScript Date and DuckDB can hold. */
const TIMESTAMP_MS_MAX = 8.64e15

const FITS: Record<ColumnType, (cell: Cell) => boolean> = {
  VARCHAR: (cell) => typeof cell === 'string',
  DOUBLE: (cell) => Number.isFinite(cell),
  BIGINT: (cell) => Number.isSafeInteger(cell),
  INTEGER: (cell) => Number.isSafeInteger(cell) && Math.abs(cell as number) <= INT32_MAX,
  BOOLEAN: (cell) => typeof cell === 'boolean',
  TIMESTAMP: (cell) => Number.isFinite(cell) && Math.abs(cell as number) <= TIMESTAMP_MS_MAX,
  'VARCHAR[]': (cell) => Array.isArray(cell) && cell.every((item) => typeof item === 'string'),
}

const NAMES = new Map(
  Object.entries(TABLES as Record<string, Table>).map(([name, table]) => [
    name,
    new Set(table.columns.map((column) => column.name)),
  ]),
)

function cellOf(write: Write, column: Column): Cell | undefined {
  if (column.name === KNOWN_AT) return undefined
  const cell = write.row[column.name]
  if (cell === undefined && column.name === 'schema_version') return LAKE_SCHEMA_VERSION
  if (cell === undefined || cell === null) {
    assert(column.nullable, `${write.table}.${column.name} is never null`)
    return undefined
  }
  assert(FITS[column.type](cell), `${write.table}.${column.name} is a ${column.type}`)
  // A client's own clock may count fractions of a millisecond; the lake does not.
  if (column.type === 'TIMESTAMP') return Math.floor(cell as number)
  // Half a surrogate pair is no text in UTF-8.
  return typeof cell === 'string' ? cell.toWellFormed() : cell
}

/** Checks one row against its table; throws where it does not fit. `known_at` is left to the commit. */
export function encodeWrite(write: Write): EncodedWrite {
  const table: Table | undefined = TABLES[write.table]
  assert(table !== undefined, `the table ${write.table} exists`)
  const names = NAMES.get(write.table)!
  for (const name in write.row) assert(names.has(name), `${write.table} has a column ${name}`)
  const cells: Record<string, Cell | undefined> = {}
  for (const column of table.columns) cells[column.name] = cellOf(write, column)
  return { table: write.table, json: JSON.stringify(cells) }
}
