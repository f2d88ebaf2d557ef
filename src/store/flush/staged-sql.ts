import type { Column, Table } from '../../schema/tables.ts'
import { identifier, literal } from '../duckdb/sql.ts'
import type { StagedRows } from './row-splitter.ts'

/** The SQL type that a column is read as. A TIMESTAMP is a number of Unix ms in JSON. */
const jsonType = ({ type }: Column): string => (type === 'TIMESTAMP' ? 'BIGINT' : type)

function selectColumn(column: Column): string {
  const name = identifier(column.name)
  return column.type === 'TIMESTAMP' ? `epoch_ms(${name}) AS ${name}` : name
}

/** SQL that reads a file of JSON lines as rows of a table, its columns in order and with their types. */
export function selectStaged(table: Pick<Table, 'columns'>, { path }: Pick<StagedRows, 'path'>): string {
  const columns = table.columns
    .map((column) => `${literal(column.name)}: ${literal(jsonType(column))}`)
    .join(', ')
  return `SELECT ${table.columns.map(selectColumn).join(', ')} FROM read_json(${literal(path)},
    format = 'newline_delimited', columns = {${columns}}, maximum_object_size = 67108864)`
}
