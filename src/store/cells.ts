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

/** Rows of one table as one entry of the journal: a row on each line, which a line of JSON never breaks. */
export interface JournalEntry {
  table: TableName
  rows: number
  lines: string
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

/** A column as it is written: what JSON calls it, and what fits. */
interface Writer {
  column: Column
  /** `"name":` */
  key: string
  fits(cell: Cell): boolean
  /** The cell where the caller gives none; undefined: it is left out. */
  otherwise: Cell | undefined
}

interface TableWriters {
  names: ReadonlySet<string>
  writers: readonly Writer[]
}

const writerOf = (column: Column): Writer => ({
  column,
  key: `${JSON.stringify(column.name)}:`,
  fits: FITS[column.type],
  otherwise: column.name === 'schema_version' ? LAKE_SCHEMA_VERSION : undefined,
})

const WRITERS = new Map<string, TableWriters>(
  Object.entries(TABLES as Record<string, Table>).map(([name, { columns }]) => [
    name,
    {
      names: new Set(columns.map((column) => column.name)),
      writers: columns.filter((column) => column.name !== KNOWN_AT).map(writerOf),
    },
  ]),
)

/** A cell as JSON. The sums of numbers and strings are plain: JSON.stringify of a whole row costs several times as much. */
function jsonOf(cell: Cell, { type }: Column): string {
  // A client's own clock may count fractions of a millisecond; the lake does not.
  if (type === 'TIMESTAMP') return `${Math.floor(cell as number)}`
  // Half a surrogate pair is no text in UTF-8.
  if (typeof cell === 'string') return JSON.stringify(cell.toWellFormed())
  return typeof cell === 'object' ? JSON.stringify(cell) : `${cell}`
}

/** Checks one row against its table; throws where it does not fit. `known_at` is left to the commit. */
export function encodeWrite({ table, row }: Write): EncodedWrite {
  const known = WRITERS.get(table)
  assert(known !== undefined, `the table ${table} exists`)
  for (const name in row) if (!known.names.has(name)) assert(false, `${table} has a column ${name}`)
  let json = ''
  for (const writer of known.writers) {
    const { column, key } = writer
    const cell = row[column.name] ?? writer.otherwise
    if (cell === undefined) {
      if (!column.nullable) assert(false, `${table}.${column.name} is never null`)
      continue
    }
    if (!writer.fits(cell)) assert(false, `${table}.${column.name} is a ${column.type}`)
    json += `${json === '' ? '' : ','}${key}${jsonOf(cell, column)}`
  }
  return { table, json: `{${json}}` }
}

/** How many rows those entries are. */
export const rowsOf = (entries: readonly JournalEntry[]): number =>
  entries.reduce((rows, entry) => rows + entry.rows, 0)

/** Rows of one commit by their tables, in order: an entry for each table costs the store far less than one for each row. */
export function journalEntries(writes: readonly EncodedWrite[]): JournalEntry[] {
  const byTable = new Map<TableName, string[]>()
  for (const { table, json } of writes) {
    const rows = byTable.get(table)
    if (rows === undefined) byTable.set(table, [json])
    else rows.push(json)
  }
  return Array.from(byTable, ([table, rows]) => ({ table, rows: rows.length, lines: rows.join('\n') }))
}
