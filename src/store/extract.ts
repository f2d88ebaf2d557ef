// In: an open reader of the lake, and a selection of rows. Out: those rows as bytes of a file format: Arrow IPC and rows
// piece by piece, Parquet as a file that DuckDB writes. Never holds more than one of DuckDB's chunks.
import { TABLES } from '../schema/tables.ts'
import { arrowRows } from './arrow-rows.ts'
import type { LakeAnswer, LakeReader } from './lake-reader.ts'
import { EXPORT_ROW_GROUP_ROWS } from './limits.ts'
import { type Selection, selectSql } from './selection.ts'
import { literal } from './sql.ts'

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

/** The rows as plain values. */
export const rowsExtract = (reader: LakeReader, selection: Selection): Promise<LakeAnswer> =>
  reader.query(selectSql(selection))

/** Writes the rows to a Parquet file; `path` is the reader's `target`. */
export async function parquetExtract(reader: LakeReader, selection: Selection, path: string): Promise<void> {
  await reader.connection.run(
    `COPY (${selectSql(selection)}) TO ${literal(path)}
     (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE ${EXPORT_ROW_GROUP_ROWS})`,
  )
}

/** How much of a running statement is done, 0 to 1; null while it is not known. */
export function progressOf({ connection }: LakeReader): number | null {
  const { percentage } = connection.progress
  return percentage < 0 ? null : Math.min(1, percentage / 100)
}
