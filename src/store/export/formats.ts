// In: an open reader of the lake, and a selection of rows. Out: those rows as bytes of a file format: Arrow IPC and text
// piece by piece, Parquet as a file that DuckDB writes. Never holds more than one of DuckDB's chunks.
import { type Column, TABLES } from '../../schema/tables.ts'
import { identifier } from '../duckdb/sql.ts'
import { copyToParquet } from '../lake/parquet-sql.ts'
import { EXPORT_ROW_GROUP_ROWS } from '../limits.ts'
import type { LakeReader } from '../query/lake-reader.ts'
import { arrowRows } from './arrow-rows.ts'
import { type Selection, selectSql } from './selection.ts'

/** Bytes of a format, and how many rows they hold. */
export interface Extract {
  bytes: Buffer
  rows: number
}

/** The rows as an Arrow IPC stream. What DuckDB has read ahead is a megabyte; then it waits until more is asked for. */
export async function* arrowExtract(
  { connection }: LakeReader,
  selection: Selection,
): AsyncGenerator<Extract> {
  const arrow = arrowRows(TABLES[selection.table].columns)
  const result = await connection.stream(selectSql(selection))
  let chunk = await result.fetchChunk()
  yield { bytes: arrow.head, rows: 0 }
  while (chunk !== null && chunk.rowCount > 0) {
    yield { bytes: arrow.batch(chunk), rows: chunk.rowCount }
    chunk = await result.fetchChunk()
  }
  yield { bytes: arrow.end, rows: 0 }
}

/** A field of RFC 4180. Text is quoted, so that an empty one is not taken for NULL; a list is JSON. */
function csvField({ name, type }: Column): string {
  const cell = identifier(name)
  const text = type === 'VARCHAR' ? cell : type === 'VARCHAR[]' ? `to_json(${cell})::VARCHAR` : null
  const field = text === null ? `${cell}::VARCHAR` : `'"' || replace(${text}, '"', '""') || '"'`
  return `coalesce(${field}, '')`
}

/** A line for each row, made by DuckDB: many times faster than values made into lines here. */
const LINES: Readonly<Record<'csv' | 'jsonl', (columns: readonly Column[]) => string>> = {
  csv: (columns) => `concat_ws(',', ${columns.map(csvField).join(', ')})`,
  jsonl: () => 'to_json(one)::VARCHAR',
}

/** The rows as lines of text, in CSV below one of names. */
export async function* textExtract(
  { connection }: LakeReader,
  selection: Selection,
  format: 'csv' | 'jsonl',
): AsyncGenerator<Extract> {
  const { columns } = TABLES[selection.table]
  const sql = `SELECT ${LINES[format](columns)} AS line FROM (${selectSql(selection)}) AS one`
  const result = await connection.stream(sql)
  let chunk = await result.fetchChunk()
  if (format === 'csv')
    yield { bytes: Buffer.from(`${columns.map(({ name }) => name).join(',')}\n`), rows: 0 }
  while (chunk !== null && chunk.rowCount > 0) {
    yield { bytes: Buffer.from(`${chunk.getColumnValues(0).join('\n')}\n`), rows: chunk.rowCount }
    chunk = await result.fetchChunk()
  }
}

/** Writes the rows to a Parquet file; `path` is the reader's `target`. */
export async function parquetExtract(reader: LakeReader, selection: Selection, path: string): Promise<void> {
  const shape = { rowGroupRows: EXPORT_ROW_GROUP_ROWS }
  await reader.connection.run(copyToParquet(selectSql(selection), path, shape))
}

/** How much of a running statement is done, 0 to 1; null while it is not known. */
export function progressOf({ connection }: LakeReader): number | null {
  const { percentage } = connection.progress
  return percentage < 0 ? null : Math.min(1, percentage / 100)
}
