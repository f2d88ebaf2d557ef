// The SQL that reads the columns of a Parquet file in the types that it declares: Unix ms, doubles and text.
import { identifier } from '../../store/duckdb/sql.ts'
import { invalid } from './trade-columns.ts'

export interface ParquetColumn {
  /** As the file has it. */
  name: string
  /** DuckDB's name of it: another one where two differ by case only. */
  sqlName: string
  /** DuckDB's name of its type. */
  type: string
}

const WHOLE = /^U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?$/
const FLOATING = /^(DOUBLE|FLOAT|REAL)/
const DECIMAL = /^DECIMAL/
const TEXT = /^(VARCHAR|ENUM|UUID)/

export const isWhole = ({ type }: ParquetColumn): boolean => WHOLE.test(type)
const isNumber = (column: ParquetColumn): boolean =>
  isWhole(column) || FLOATING.test(column.type) || DECIMAL.test(column.type)

export const textSql = ({ sqlName }: ParquetColumn): string => `${identifier(sqlName)}::VARCHAR`

/** Whether the file declares the column as moments, and not as numbers or text, which are read by our own rules. */
export const isTimestamp = ({ type }: ParquetColumn): boolean => /^(TIMESTAMP|DATE)/.test(type)

/** SQL for Unix ms as a double where the column has timestamps, and for the value as it is otherwise. */
export function timeSql(column: ParquetColumn): string {
  const name = identifier(column.sqlName)
  if (isTimestamp(column)) {
    const moment = /^TIMESTAMP WITH TIME ZONE/.test(column.type) ? name : `${name}::TIMESTAMP`
    return `CASE WHEN isfinite(${moment}) THEN epoch_ms(${moment})::DOUBLE END`
  }
  if (isWhole(column)) return `${name}::HUGEINT`
  if (FLOATING.test(column.type)) return `${name}::DOUBLE`
  if (DECIMAL.test(column.type) || TEXT.test(column.type) || column.type === 'TIME') return textSql(column)
  throw invalid(`the column "${column.name}" is a ${column.type}, which is not a time`)
}

/** SQL for a double, or for the text that is to be read as a number. */
export function numberSql(column: ParquetColumn): string {
  if (isNumber(column)) return `${identifier(column.sqlName)}::DOUBLE`
  if (TEXT.test(column.type)) return textSql(column)
  throw invalid(`the column "${column.name}" is a ${column.type}, which is not a number`)
}
