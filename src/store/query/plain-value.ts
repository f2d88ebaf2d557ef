// Converts rows of DuckDB to JSON values: wide numbers become text where a double would not be exact.
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
/** A double holds any number of up to this many decimal digits exactly. */
const EXACT_DIGITS_MAX = 15

/** A number where JSON keeps its exact value, else its text. */
function numberOrText(value: DuckDBValue): Plain {
  const text = String(value)
  return text.replace(/\D/g, '').length <= EXACT_DIGITS_MAX ? Number(text) : text
}

const toPlain: DuckDBValueConverter<Plain> = (value: DuckDBValue, type: DuckDBType, self) =>
  value !== null && WIDE_NUMBERS.has(type.typeId)
    ? numberOrText(value)
    : JsonDuckDBValueConverter(value, type, self)

/** Yields the rows of a result, one DuckDB chunk at a time. */
export async function* plainRows(result: DuckDBResult): AsyncGenerator<Plain[][]> {
  for await (const rows of result.yieldConvertedRows(toPlain)) yield rows
}
