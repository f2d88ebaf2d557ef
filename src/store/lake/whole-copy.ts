// Files of the lake that no list has, or that were set aside: what a list would say of one, and whether a path has it whole.
import { stat } from 'node:fs/promises'
import { countParquetRows } from '../duckdb/query.ts'
import { withScratchDatabase } from '../duckdb/scratch-database.ts'
import { FILE_CHECK_MEMORY_LIMIT } from '../limits.ts'
import { findFaultyFiles, readSchemaVersion } from './file-check.ts'
import { measureFile } from './file-writer.ts'
import type { DataFile } from './lake-files.ts'
import type { ListedFile } from './manifest.ts'

const FILE_CHECK = { threads: '1', memory_limit: FILE_CHECK_MEMORY_LIMIT }

/** Rows of a file; null when it is not a whole Parquet file. */
export const countRows = (path: string): Promise<number | null> =>
  withScratchDatabase(':memory:', FILE_CHECK, (connection) => countParquetRows(connection, path)).catch(
    () => null,
  )

const isWhole = async (file: ListedFile, path: string): Promise<boolean> =>
  (await findFaultyFiles([file], () => path, 'content')).length === 0

/** Measures a file for listing; null where it is missing or damaged. */
export async function measureFound(file: DataFile, path: string): Promise<ListedFile | null> {
  const rows = await countRows(path)
  if (rows === null) return null
  const measured = await measureFile(file, rows, path)
  const writtenAtMs = Math.floor((await stat(path)).mtimeMs)
  const listed: ListedFile = { ...measured, sha256: null, schemaVersion: 1, writtenAtMs }
  if (!(await isWhole(listed, path))) return null
  const schemaVersion =
    (await withScratchDatabase(':memory:', FILE_CHECK, (connection) =>
      readSchemaVersion(connection, path),
    )) ?? 1
  // A file written before its version was released may lack columns of it; it is then read as one of version 1.
  const faults = await findFaultyFiles([{ ...listed, schemaVersion }], () => path, 'end')
  return { ...measured, writtenAtMs, schemaVersion: faults.length === 0 ? schemaVersion : 1 }
}

export interface WholeCopy {
  file: ListedFile
  path: string
}

/** Where a file is whole. Of one whose size no list has any more, any content that can be read is, with as many rows as are known. */
export async function findWholeCopy(file: ListedFile, paths: Iterable<string>): Promise<WholeCopy | null> {
  for (const path of new Set(paths)) {
    const { table, date, first, last } = file
    const found = file.bytes > 0 ? file : await measureFound({ table, date, first, last }, path)
    if (found === null || (file.rows > 0 && found.rows !== file.rows)) continue
    if (await isWhole(found, path)) return { file: found, path }
  }
  return null
}
