// Checks rows against their tables and encodes them as JSON. Columns that are left out are null; a TIMESTAMP is Unix ms. A row
// that does not fit is a programming error: the assertion fails here, before the row can make a transaction fail.
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

/** Filled in when the row becomes durable. What a caller puts there is overwritten. */
export const KNOWN_AT = 'known_at'

const INT32_MAX = 2 ** 31 - 1
/** The range that both a JavaScript Date and DuckDB can hold. */
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

/** The rules that a row of a table must satisfy. */
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

/** The cell in a form that JSON and DuckDB can hold; nearly always unchanged. */
function normalizeCell(cell: Cell, type: ColumnType): Cell {
  // A client's clock may have fractions of a millisecond; the lake does not.
  if (type === 'TIMESTAMP') return Math.floor(cell as number)
  // A lone surrogate cannot be written as UTF-8.
  return typeof cell === 'string' ? cell.toWellFormed() : cell
}

/** Adds the schema version, the only required cell that callers may leave out. */
function withVersion(table: TableName, row: Row, required: readonly string[]): Row {
  const complete: Row = { ...row, schema_version: row.schema_version ?? LAKE_SCHEMA_VERSION }
  for (const name of required) if (complete[name] == null) assert(false, `${table}.${name} is never null`)
  return complete
}

/** Puts the two columns before those of the row. */
const withProvenance = (json: string, { feed, simulated }: Provenance): string =>
  `{"feed":${JSON.stringify(feed)},"simulated":${simulated},${json.slice(1)}`

/** Throws where the row does not fit its table. `known_at` is added by the commit. */
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
    const normalized = normalizeCell(cell, column.type)
    if (normalized !== cell) written = { ...written, [name]: normalized }
  }
  if (found < rules.required.length) written = withVersion(table, written, rules.required)
  const json = JSON.stringify(written)
  return { table, json: rules.hasProvenance && provenance !== null ? withProvenance(json, provenance) : json }
}
