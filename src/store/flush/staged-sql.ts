// In: a file of JSON lines. Out: SQL that reads it as rows of a table of the lake. Never runs it.
import type { Column } from '../../schema/tables.ts'
import { identifier, type LakeTable, literal } from '../duckdb/sql.ts'
import type { StagedRows } from './row-splitter.ts'

/** The type that JSON is read as: TIMESTAMP is a number there, Unix ms. */
const jsonType = ({ type }: Column): string => (type === 'TIMESTAMP' ? 'BIGINT' : type)

function cell(column: Column): string {
  const name = identifier(column.name)
  return column.type === 'TIMESTAMP' ? `epoch_ms(${name}) AS ${name}` : name
}

/** A SELECT of a table's columns, in their order and types. */
export function selectStaged(table: LakeTable, { path }: Pick<StagedRows, 'path'>): string {
  const columns = table.columns
    .map((column) => `${literal(column.name)}: ${literal(jsonType(column))}`)
    .join(', ')
  return `SELECT ${table.columns.map(cell).join(', ')} FROM read_json(${literal(path)},
    format = 'newline_delimited', columns = {${columns}}, maximum_object_size = 67108864)`
}
