// In: a range of rows of a table. Out: those of one date as a published, synced file of the lake, with its figures. Never
// puts it on a list.
import { dirname } from 'node:path'
import type { DuckDBConnection } from '@duckdb/node-api'
import { query } from './database.ts'
import { inRange } from './flush-range.ts'
import {
  contentHash,
  fileBytes,
  makeFolder,
  type Part,
  publish,
  type SeqRange,
  syncFile,
  temporaryPath,
  wholeOrGone,
} from './lake-files.ts'
import type { NewPart } from './manifest.ts'
import type { CrashPoint } from './messages.ts'
import { copyToParquet } from './parquet-sql.ts'
import { identifier, type LakeTable, lakeColumns, lakeOrder, ROW_SEQ, relation } from './sql.ts'

export interface PartWriterOptions {
  pathOf(part: Part): string
  reach(point: CrashPoint): void
}

export interface DateRows {
  /** YYYY-MM-DD, UTC. */
  date: string
  rows: number
  /** The lowest row number among them. */
  first: number
}

const dateOf = (table: LakeTable): string => `CAST(${identifier(table.lakeDateColumn)} AS DATE)`

/** Rows by UTC date that the store has within a range. */
export const rowsByDate = (
  connection: DuckDBConnection,
  table: LakeTable,
  range: SeqRange,
): Promise<DateRows[]> =>
  query(
    connection,
    `SELECT strftime(${dateOf(table)}, '%Y-%m-%d') AS date, count(*)::DOUBLE AS rows, min(${ROW_SEQ})::DOUBLE AS first
     FROM ${relation(table)} WHERE ${inRange(range)} GROUP BY 1 ORDER BY 1`,
  )

async function copyPart(
  connection: DuckDBConnection,
  table: LakeTable,
  part: Part,
  target: string,
): Promise<void> {
  const rows = `SELECT ${lakeColumns(table)} FROM ${relation(table)}
    WHERE ${inRange(part)} AND ${dateOf(table)} = DATE '${part.date}' ORDER BY ${lakeOrder(table)}`
  await connection.run(copyToParquet(rows, target))
}

/** Bytes and hash of a file that is there. */
export const measured = async (part: Part, rows: number, path: string): Promise<NewPart> => ({
  ...part,
  rows,
  bytes: await fileBytes(path),
  sha256: await contentHash(path),
})

/** Writes the `rows` rows that the store has of `part`. */
export async function writePart(
  connection: DuckDBConnection,
  table: LakeTable,
  part: Part,
  rows: number,
  { pathOf, reach }: PartWriterOptions,
): Promise<NewPart> {
  const path = pathOf(part)
  const temporary = temporaryPath(path)
  await makeFolder(dirname(path))
  await wholeOrGone(temporary, () => copyPart(connection, table, part, temporary))
  reach('flush:copied')
  await syncFile(temporary)
  reach('flush:synced')
  await publish(path)
  reach('flush:renamed-first')
  return measured(part, rows, path)
}
