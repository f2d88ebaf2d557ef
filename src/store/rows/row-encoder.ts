// In: rows as the rest of the server gives them. Out: each as JSON text with its table's column names, checked: what is left
// out is null, TIMESTAMP is Unix milliseconds. Never talks to DuckDB. A row that does not fit its table is wrong code: it is
// refused here, before it can spoil a transaction.
import { assert } from '../../lib/assert.ts'
import {
  type Cell,
  type Column,
  type ColumnType,
  LAKE_SCHEMA_VERSION,
  type Row,
  TABLES,
  type Table,
  type TableName,
  type Write,
} from '../../schema/tables.ts'
import type { EncodedRow } from '../log/types.ts'
import type { Provenance } from '../types.ts'

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

/** What a row of a table must fit. */
interface TableRules {
  columns: ReadonlyMap<string, { type: ColumnType; fits(cell: Cell): boolean; isRequired: boolean }>
  required: readonly string[]
  hasProvenance: boolean
}

const isRequired = ({ name, nullable }: Column): boolean => !nullable && name !== KNOWN_AT

const RULES = new Map<string, TableRules>(
  Object.entries(TABLES as Record<string, Table>).map(([name, { columns }]) => [
    name,
    {
      columns: new Map(
        columns.map((column) => [
          column.name,
          { type: column.type, fits: FITS[column.type], isRequired: isRequired(column) },
        ]),
      ),
      required: columns.filter(isRequired).map((column) => column.name),
      hasProvenance: columns.some((column) => column.name === 'simulated'),
    },
  ]),
)

/** A cell that JSON and DuckDB read as it is meant; nearly always the same. */
function meant(cell: Cell, type: ColumnType): Cell {
  // A client's own clock may count fractions of a millisecond; the lake does not.
  if (type === 'TIMESTAMP') return Math.floor(cell as number)
  // Half a surrogate pair is no text in UTF-8.
  return typeof cell === 'string' ? cell.toWellFormed() : cell
}

/** The row with the version of its schema, the one cell that callers may leave out. */
function withVersion(table: TableName, row: Row, required: readonly string[]): Row {
  const complete: Row = { ...row, schema_version: row.schema_version ?? LAKE_SCHEMA_VERSION }
  for (const name of required) if (complete[name] == null) assert(false, `${table}.${name} is never null`)
  return complete
}

/** The two columns in front of the row's own. */
const withProvenance = (json: string, { feed, simulated }: Provenance): string =>
  `{"feed":${JSON.stringify(feed)},"simulated":${simulated},${json.slice(1)}`

/** Checks one row against its table; throws where it does not fit. `known_at` is left to the commit. */
export function encodeWrite({ table, row }: Write, provenance: Provenance | null): EncodedRow {
  const rules = RULES.get(table)
  assert(rules !== undefined, `the table ${table} exists`)
  let written = row
  let found = 0
  for (const name in row) {
    const column = rules.columns.get(name)
    if (column === undefined) assert(false, `${table} has a column ${name}`)
    const cell = row[name]
    if (cell == null) continue
    if (!column.fits(cell)) assert(false, `${table}.${name} is a ${column.type}`)
    if (column.isRequired) found++
    const right = meant(cell, column.type)
    if (right !== cell) written = { ...written, [name]: right }
  }
  if (found < rules.required.length) written = withVersion(table, written, rules.required)
  const json = JSON.stringify(written)
  return { table, json: rules.hasProvenance && provenance !== null ? withProvenance(json, provenance) : json }
}
