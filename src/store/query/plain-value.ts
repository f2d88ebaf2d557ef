// Converts rows of DuckDB to JSON values: wide numbers become text where a double would not be exact.
import type { DuckDBType, DuckDBValue, DuckDBValueConverter, Json } from '@duckdb/node-api'
import { duckdb } from '../duckdb/duckdb.ts'
import type { ResultStream } from '../duckdb/result-stream.ts'

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

/**
 * Yields the rows of a result.
 * @param rowsAtOnce rows that are converted before they are yielded: with 1, no more than one row of long texts is in memory.
 *   By default those of one DuckDB chunk.
 */
export async function* plainRows(
  result: ResultStream,
  rowsAtOnce = Number.POSITIVE_INFINITY,
): AsyncGenerator<Plain[][]> {
  for await (const chunk of result) {
    let rows: Plain[][] = []
    for (let at = 0; at < chunk.rowCount; at++) {
      rows.push(chunk.convertRowValues(at, toPlain))
      if (rows.length < rowsAtOnce && at < chunk.rowCount - 1) continue
      yield rows
      rows = []
    }
  }
}
