// In: rows as DuckDB hands them over. Out: values that JSON can bear: numbers where they are exact, texts elsewhere, lists
// and objects. Never holds more than one of DuckDB's chunks.
import type { DuckDBResult, DuckDBType, DuckDBValue, DuckDBValueConverter, Json } from '@duckdb/node-api'
import { duckdb } from '../duckdb/duckdb.ts'

export type Plain = Json

const { DuckDBTypeId, JsonDuckDBValueConverter } = duckdb

const WIDE_NUMBERS: ReadonlySet<DuckDBType['typeId']> = new Set([
  DuckDBTypeId.BIGINT,
  DuckDBTypeId.UBIGINT,
  DuckDBTypeId.HUGEINT,
  DuckDBTypeId.UHUGEINT,
  DuckDBTypeId.DECIMAL,
])
/** Decimal digits that a double holds whatever they are. */
const EXACT_DIGITS_MAX = 15

/** A number where JSON's reader gets the same value back, else its text. */
function numberOrText(value: DuckDBValue): Plain {
  const text = String(value)
  return text.replace(/\D/g, '').length <= EXACT_DIGITS_MAX ? Number(text) : text
}

const toPlain: DuckDBValueConverter<Plain> = (value: DuckDBValue, type: DuckDBType, self) =>
  value !== null && WIDE_NUMBERS.has(type.typeId)
    ? numberOrText(value)
    : JsonDuckDBValueConverter(value, type, self)

/** Rows of a result, a chunk at a time. */
export async function* plainRows(result: DuckDBResult): AsyncGenerator<Plain[][]> {
  for await (const rows of result.yieldConvertedRows(toPlain)) yield rows
}
