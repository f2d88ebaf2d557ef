// In: SQL of rows. Out: those rows as a published, synced file of the lake, with its figures. Never puts it on a list.
import { dirname } from 'node:path'
import type { DuckDBConnection } from '@duckdb/node-api'
import { makeFolder, syncPath } from '../../lib/files.ts'
import { query } from '../duckdb/query.ts'
import { identifier, type LakeTable, ROW_SEQ, relation } from '../duckdb/sql.ts'
import type { CrashPoint } from '../process/protocol.ts'
import {
  contentHash,
  fileBytes,
  type Part,
  publish,
  type SeqRange,
  temporaryPath,
  wholeOrGone,
} from './lake-files.ts'
import type { NewPart } from './manifest.ts'
import { copyToParquet } from './parquet-sql.ts'

export interface FileWriterOptions {
  pathOf(part: Part): string
  failpoint(point: CrashPoint): void
}

export interface DateRows {
  /** YYYY-MM-DD, UTC. */
  date: string
  rows: number
}

/** SQL of the date that a row of a table is filed under. */
export const dateOf = (table: LakeTable): string => `CAST(${identifier(table.lakeDateColumn)} AS DATE)`

/** Rows by UTC date that the database has within a range. */
export const rowsByDate = (
  connection: DuckDBConnection,
  table: LakeTable,
  { first, last }: SeqRange,
): Promise<DateRows[]> =>
  query(
    connection,
    `SELECT strftime(${dateOf(table)}, '%Y-%m-%d') AS date, count(*)::DOUBLE AS rows
     FROM ${relation(table)} WHERE ${ROW_SEQ} BETWEEN ${first} AND ${last} GROUP BY 1 ORDER BY 1`,
  )

/** Bytes and hash of a file that is there. */
export const measured = async (part: Part, rows: number, path: string): Promise<NewPart> => ({
  ...part,
  rows,
  bytes: await fileBytes(path),
  sha256: await contentHash(path),
})

/** Writes the `rows` rows that `select` gives. The file, then its name, are durable once this resolves. */
export async function writeFile(
  connection: DuckDBConnection,
  part: Part,
  { rows, select }: { rows: number; select: string },
  { pathOf, failpoint }: FileWriterOptions,
): Promise<NewPart> {
  const path = pathOf(part)
  const temporary = temporaryPath(path)
  await makeFolder(dirname(path))
  await wholeOrGone(temporary, async () => void (await connection.run(copyToParquet(select, temporary))))
  failpoint('flush:copied')
  await syncPath(temporary)
  failpoint('flush:synced')
  await publish(path)
  failpoint('flush:published')
  return measured(part, rows, path)
}
