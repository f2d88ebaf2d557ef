// Encodes selected rows of the lake: Arrow IPC and text chunk by chunk, Parquet as a file that DuckDB writes.
import { escapeLineBreaks } from '../../lib/text/json-text.ts'
import type { Column } from '../../schema/tables.ts'
import { identifier } from '../duckdb/sql.ts'
import { unavailable } from '../errors.ts'
import { copyToParquet } from '../lake/parquet-sql.ts'
import { EXPORT_ROW_GROUP_ROWS } from '../limits.ts'
import type { LakeReader } from '../query/lake-reader.ts'
import { ArrowEncoder } from './arrow-rows.ts'
import { relationOf, type Selection, selectSql } from './selection.ts'

/** Encoded rows, and how many they are: 0 for headers. */
export interface EncodedRows {
  bytes: Buffer
  rows: number
}

/** The rows that were counted before, and are promised to whoever reads them. */
export interface CountedSelection extends Selection {
  rows: number
}

/** @throws StoreError `unavailable` where a count that was promised is not kept. */
function requireRows(promised: number, rows: number): void {
  if (rows === promised) return
  throw unavailable(`the lake gave ${rows} of ${promised} rows: see mintlake lake verify`)
}

/**
 * Yields the rows as an Arrow IPC stream. DuckDB reads about a megabyte ahead, then waits until more is fetched. The end marker is there
 * only after as many rows as were counted.
 */
export async function* streamArrow(
  reader: LakeReader,
  selection: CountedSelection,
): AsyncGenerator<EncodedRows> {
  const arrow = new ArrowEncoder(relationOf(selection.table).columns)
  const result = await reader.stream(selectSql(selection))
  let chunk = await result.next()
  yield { bytes: arrow.head, rows: 0 }
  for (; chunk !== null; chunk = await result.next())
    yield { bytes: arrow.encodeBatch(chunk), rows: chunk.rowCount }
  requireRows(selection.rows, result.rows)
  yield { bytes: arrow.end, rows: 0 }
}

/** SQL of a CSV field (RFC 4180). Text is quoted, so that an empty text differs from NULL; a list is JSON. */
function csvFieldSql({ name, type }: Column): string {
  const cell = identifier(name)
  const text = type === 'VARCHAR' ? cell : type === 'VARCHAR[]' ? `to_json(${cell})::VARCHAR` : null
  const field = text === null ? `${cell}::VARCHAR` : `'"' || replace(${text}, '"', '""') || '"'`
  return `coalesce(${field}, '')`
}

/** SQL of a row's line of text. Much faster in DuckDB than in JavaScript. */
const LINE_SQL: Readonly<Record<'csv' | 'jsonl', (columns: readonly Column[]) => string>> = {
  csv: (columns) => `concat_ws(',', ${columns.map(csvFieldSql).join(', ')})`,
  jsonl: () => 'to_json(one)::VARCHAR',
}

/** Yields the rows as lines of text; CSV begins with a line of column names. Rejects at the end where rows are missing. */
export async function* streamText(
  reader: LakeReader,
  selection: CountedSelection,
  format: 'csv' | 'jsonl',
): AsyncGenerator<EncodedRows> {
  const { columns } = relationOf(selection.table)
  const sql = `SELECT ${LINE_SQL[format](columns)} AS line FROM (${selectSql(selection)}) AS one`
  const result = await reader.stream(sql)
  let chunk = await result.next()
  if (format === 'csv')
    yield { bytes: Buffer.from(`${columns.map(({ name }) => name).join(',')}\n`), rows: 0 }
  for (; chunk !== null; chunk = await result.next()) {
    const text = `${chunk.getColumnValues(0).join('\n')}\n`
    yield { bytes: Buffer.from(format === 'jsonl' ? escapeLineBreaks(text) : text), rows: chunk.rowCount }
  }
  requireRows(selection.rows, result.rows)
}

/** Writes the rows to a Parquet file. `path` must be the reader's `target`. */
export async function writeParquet(
  reader: LakeReader,
  selection: CountedSelection,
  path: string,
): Promise<void> {
  const shape = { rowGroupRows: EXPORT_ROW_GROUP_ROWS }
  const { rowsChanged } = await reader.connection.run(copyToParquet(selectSql(selection), path, shape))
  requireRows(selection.rows, rowsChanged)
}

/** The share of the running statement that is done, 0 to 1; null while it is unknown. */
export function readProgress({ connection }: LakeReader): number | null {
  const { percentage } = connection.progress
  return percentage < 0 ? null : Math.min(1, percentage / 100)
}
