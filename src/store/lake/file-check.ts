// Checks files against the manifest: presence, size, Parquet footer, content. Files are opened in a scratch database, since a
// damaged one may make DuckDB unusable.
import { stat } from 'node:fs/promises'
import type { DuckDBConnection } from '@duckdb/node-api'
import { assert } from '../../lib/assert.ts'
import { errorFirstLine, systemCode } from '../../lib/error-text.ts'
import { LAKE_SCHEMA_VERSION } from '../../schema/tables.ts'
import { countParquetRows, queryRows, queryValue } from '../duckdb/query.ts'
import { withScratchDatabase } from '../duckdb/scratch-database.ts'
import { findLakeTable, type LakeTable, literal } from '../duckdb/sql.ts'
import { FILE_CHECK_MEMORY_LIMIT } from '../limits.ts'
import { hashFile } from './lake-files.ts'
import type { ListedFile } from './manifest.ts'

/**
 * How thorough a check is. `size`: the file exists and has its size. `end`: the Parquet footer too. `content`: every byte, by
 * the recorded hash, or without one by decoding all columns.
 */
export type CheckDepth = 'size' | 'end' | 'content'

/** SQL that reads the rows of a file, with its own columns. */
export const readParquetSql = (path: string): string =>
  `read_parquet(${literal(path)}, hive_partitioning=false)`

export interface FaultyFile {
  file: ListedFile
  /** What is wrong, worded to follow the file's name in a sentence. */
  fault: string
}

/** Returns what is wrong with the size of a file, or null. */
export async function findSizeFault(file: ListedFile, path: string): Promise<string | null> {
  const found = await stat(path).catch((error: unknown) => {
    if (['ENOENT', 'ENOTDIR'].includes(systemCode(error))) return null
    throw error
  })
  if (found === null) return 'is listed and not there'
  if (!found.isFile()) return 'is not a file'
  return found.size === file.bytes ? null : `has ${found.size} bytes, not the ${file.bytes} listed`
}

/** Compares a file with its recorded hash, where there is one. Returns what is wrong, or null. */
export async function findHashFault({ sha256 }: ListedFile, path: string): Promise<string | null> {
  if (sha256 === null || (await hashFile(path)) === sha256) return null
  return 'has other content than was written'
}

/** Compares the columns of a file with its table. Returns what is wrong, or null. @throws when it cannot be read */
export async function findSchemaFault(
  connection: DuckDBConnection,
  { columns }: LakeTable,
  version: number,
  path: string,
): Promise<string | null> {
  const found = await queryRows(
    connection,
    `SELECT column_name AS name, column_type AS type FROM (DESCRIBE SELECT * FROM ${readParquetSql(path)})`,
    { name: 'string', type: 'string' },
  )
  if (version > LAKE_SCHEMA_VERSION)
    return `has schema version ${version}, newer than this program’s ${LAKE_SCHEMA_VERSION}`
  const types = new Map<string, string>(columns.map(({ name, type }) => [name, type]))
  for (const { name, type } of found) {
    const expected = types.get(name)
    if (expected === undefined) return `has a column ${name} that its table lacks`
    if (expected !== type) return `has ${name} as ${type}, not ${expected}`
  }
  // An older file may lack columns that were added later.
  if (version < LAKE_SCHEMA_VERSION) return null
  const missing = columns.find(({ name }) => !found.some((column) => column.name === name))
  if (missing !== undefined) return `lacks the column ${missing.name}`
  return columns.some(({ name }, index) => found[index].name !== name)
    ? 'has its columns in another order'
    : null
}

/** The highest `schema_version` in the rows of a Parquet file; null without any. @throws when it cannot be read */
export async function readSchemaVersion(connection: DuckDBConnection, path: string): Promise<number | null> {
  const sql = `SELECT max(schema_version)::INTEGER AS version FROM ${readParquetSql(path)}`
  return queryValue(connection, sql, 'number?')
}

/** A failure of the check itself (interrupted, out of memory or file handles), which says nothing about the file. */
export const isResourceError = (error: unknown): boolean =>
  /^(INTERRUPT|Out of Memory) Error|Too many open files|EMFILE|ENFILE/i.test(errorFirstLine(error))

async function findFooterFault(
  connection: DuckDBConnection,
  file: ListedFile,
  path: string,
): Promise<string | null> {
  const rows = await countParquetRows(connection, path)
  if (rows !== file.rows) return `has ${rows} rows, not the ${file.rows} listed`
  const table = findLakeTable(file.table)
  assert(table !== undefined, 'the table of a listed file is one of the lake')
  return findSchemaFault(connection, table, file.schemaVersion, path)
}

/** Checks a file that exists and has its size. */
async function findContentFault(
  connection: DuckDBConnection,
  file: ListedFile,
  path: string,
  depth: CheckDepth,
): Promise<string | null> {
  const fault = await findFooterFault(connection, file, path)
  if (fault !== null || depth !== 'content') return fault
  if (file.sha256 !== null) return findHashFault(file, path)
  await connection.run(`SELECT bit_xor(hash(file)) FROM ${readParquetSql(path)} AS file`)
  return null
}

/** Runs a check of a file. A read error is a fault of the file, unless the check itself failed. */
export async function errorAsFault(check: () => Promise<string | null>): Promise<string | null> {
  try {
    return await check()
  } catch (error) {
    if (isResourceError(error)) throw error
    return `cannot be read: ${errorFirstLine(error)}`
  }
}

/** Returns the files that differ from what the manifest says of them. Runs in a scratch database. */
export async function findFaultyFiles(
  files: readonly ListedFile[],
  pathOf: (file: ListedFile) => string,
  depth: CheckDepth,
): Promise<FaultyFile[]> {
  const faulty: FaultyFile[] = []
  const present: ListedFile[] = []
  for (const file of files) {
    const fault = await errorAsFault(() => findSizeFault(file, pathOf(file)))
    if (fault === null) present.push(file)
    else faulty.push({ file, fault })
  }
  if (depth === 'size' || present.length === 0) return faulty
  const settings = { threads: '1', memory_limit: FILE_CHECK_MEMORY_LIMIT }
  await withScratchDatabase(':memory:', settings, async (connection) => {
    for (const file of present) {
      const fault = await errorAsFault(() => findContentFault(connection, file, pathOf(file), depth))
      if (fault !== null) faulty.push({ file, fault })
    }
  })
  return faulty
}
