// Writes pending rows, of the database or staged in text files, to new files of the lake. Listing them is for the caller.
import { rm } from 'node:fs/promises'
import type { DuckDBConnection } from '@duckdb/node-api'
import { TABLES } from '../../schema/tables.ts'
import { queryRows, queryValue } from '../duckdb/query.ts'
import { identifier, type LakeTable, lakeColumns, ROW_SEQ, relation, sortOrderSql } from '../duckdb/sql.ts'
import type { StagedRows } from '../flush/row-splitter.ts'
import { selectStaged } from '../flush/staged-sql.ts'
import {
  type DataFile,
  fileSizeBytes,
  hashFile,
  type SeqRange,
  type WriteStep,
  writeDurably,
} from './lake-files.ts'
import { type NewFile, nextSeq } from './manifest.ts'
import { copyToParquet, shapeOf } from './parquet-sql.ts'

export interface FileWriterOptions {
  pathOf(file: DataFile): string
  failpoint(step: WriteStep): void
}

/** A file to be written. */
export interface PendingFile {
  file: DataFile
  rows: number
  table: LakeTable
  /** SQL of its rows; of those of a table that names its order, in that order. */
  select: string
}

/** SQL of the UTC date whose folder a row belongs to. */
export const dateSql = (table: LakeTable): string => `CAST(${identifier(table.lakeDateColumn)} AS DATE)`

/** The file for staged rows. Those of market data have row numbers of their own, those of the log the LSNs of its commits. */
export const toPendingFile = (staged: StagedRows, lsns: SeqRange): PendingFile => ({
  file: { table: staged.table.name, date: staged.date, ...(staged.range ?? lsns) },
  rows: staged.rows,
  table: staged.table,
  select: selectStaged(staged.table, staged),
})

/** The files for rows that wait in the database: bars and outcomes, by UTC date. */
export async function listPendingTableFiles(connection: DuckDBConnection): Promise<PendingFile[]> {
  const pending: PendingFile[] = []
  for (const table of [TABLES.bars, TABLES.outcomes]) {
    const first = await nextSeq(connection, table.name)
    const sql = `SELECT coalesce(max(${ROW_SEQ}), 0)::DOUBLE AS last FROM ${relation(table)}`
    const last = await queryValue(connection, sql, 'number')
    if (last < first) continue
    const inRange = `FROM ${relation(table)} WHERE ${ROW_SEQ} BETWEEN ${first} AND ${last}`
    const dates = await queryRows(
      connection,
      `SELECT strftime(${dateSql(table)}, '%Y-%m-%d') AS date, count(*)::DOUBLE AS rows ${inRange} GROUP BY 1 ORDER BY 1`,
      { date: 'string', rows: 'number' },
    )
    for (const { date, rows } of dates) {
      const select = `SELECT ${lakeColumns(table)} ${inRange} AND ${dateSql(table)} = DATE '${date}'`
      pending.push({ file: { table: table.name, date, first, last }, rows, table, select })
    }
  }
  return pending
}

/** Writes files, each sorted. Where one fails, those written before it are deleted: nothing lists them. */
export async function writePendingFiles(
  connection: DuckDBConnection,
  pending: readonly PendingFile[],
  options: FileWriterOptions,
): Promise<NewFile[]> {
  const written: NewFile[] = []
  try {
    for (const each of pending) written.push(await writeDataFile(connection, each, options))
    return written
  } catch (error) {
    for (const file of written) await rm(options.pathOf(file), { force: true })
    throw error
  }
}

/** Adds row count, size and hash to a file on the disk. */
export const measureFile = async (file: DataFile, rows: number, path: string): Promise<NewFile> => ({
  ...file,
  rows,
  bytes: await fileSizeBytes(path),
  sha256: await hashFile(path),
})

async function writeDataFile(
  connection: DuckDBConnection,
  { file, rows, table, select }: PendingFile,
  { pathOf, failpoint }: FileWriterOptions,
): Promise<NewFile> {
  const path = pathOf(file)
  const ordered = table.sortedBy === undefined ? `${select} ORDER BY ${sortOrderSql(table)}` : select
  const copy = (to: string) => connection.run(copyToParquet(ordered, to, shapeOf(table)))
  await writeDurably(path, copy, failpoint)
  return measureFile(file, rows, path)
}
