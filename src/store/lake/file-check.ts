// In: files of the lake's list. Out: for each what is wrong with it: it is not there, has another size, does not end as a
// Parquet file does, or has other content than was written. Reads files in a database of its own, since what is fatal to
// DuckDB in a damaged file must not be fatal to the store. Never changes a file or a list.
import { stat } from 'node:fs/promises'
import type { DuckDBConnection } from '@duckdb/node-api'
import { errorFirstLine, systemCode } from '../../lib/error-text.ts'
import { LAKE_SCHEMA_VERSION } from '../../schema/tables.ts'
import { query } from '../duckdb/query.ts'
import { inScratchDatabase } from '../duckdb/scratch-database.ts'
import { type LakeTable, lakeTableOf, literal } from '../duckdb/sql.ts'
import { FILE_CHECK_MEMORY_LIMIT } from '../limits.ts'
import { contentHash } from './lake-files.ts'
import type { ListedPart } from './manifest.ts'

/**
 * How far a file is looked at. `size`: that it is there. `end`: its Parquet footer too. `content`: every byte, by its hash,
 * or where none was noted by unpacking it.
 */
export type CheckDepth = 'size' | 'end' | 'content'

/** SQL of a file's rows as they stand in it. */
export const scanOf = (path: string): string => `read_parquet(${literal(path)}, hive_partitioning=false)`

export interface FaultyPart {
  part: ListedPart
  /** What is wrong, as the end of a sentence that begins with the file's name. */
  fault: string
}

/** What is wrong with the size of a file; null where nothing is. */
export async function sizeFault(part: ListedPart, path: string): Promise<string | null> {
  const found = await stat(path).catch((error: unknown) => {
    if (['ENOENT', 'ENOTDIR'].includes(systemCode(error))) return null
    throw error
  })
  if (found === null) return 'is listed and not there'
  if (!found.isFile()) return 'is no file'
  return found.size === part.bytes ? null : `has ${found.size} bytes, not the ${part.bytes} listed`
}

/** What is wrong with the content of a file by its hash; null where nothing is, or no hash was noted. */
export async function hashFault({ sha256 }: ListedPart, path: string): Promise<string | null> {
  if (sha256 === null || (await contentHash(path)) === sha256) return null
  return 'has other content than was written'
}

/** What is wrong with the columns of a file; null where nothing is. @throws when it cannot be read */
export async function schemaFault(
  connection: DuckDBConnection,
  { columns }: LakeTable,
  version: number,
  path: string,
): Promise<string | null> {
  const found = await query<{ name: string; type: string }>(
    connection,
    `SELECT column_name AS name, column_type AS type FROM (DESCRIBE SELECT * FROM ${scanOf(path)})`,
  )
  if (version > LAKE_SCHEMA_VERSION)
    return `has schema version ${version}, younger than this program’s ${LAKE_SCHEMA_VERSION}`
  const types = new Map<string, string>(columns.map(({ name, type }) => [name, type]))
  for (const { name, type } of found) {
    const expected = types.get(name)
    if (expected === undefined) return `has a column ${name} that its table has not`
    if (expected !== type) return `has ${name} as ${type}, not ${expected}`
  }
  // An older file lacks the columns that came after it.
  if (version < LAKE_SCHEMA_VERSION) return null
  const missing = columns.find(({ name }) => !found.some((column) => column.name === name))
  if (missing !== undefined) return `lacks the column ${missing.name}`
  return columns.some(({ name }, index) => found[index].name !== name)
    ? 'has its columns in another order'
    : null
}

/** Rows of a Parquet file by its footer. @throws when it is none */
export async function rowsByFooter(connection: DuckDBConnection, path: string): Promise<number> {
  const sql = `SELECT sum(num_rows)::DOUBLE AS rows FROM parquet_file_metadata(${literal(path)})`
  return (await query<{ rows: number }>(connection, sql))[0].rows
}

/** The highest schema version that rows of a Parquet file say; null where none says one. @throws when it cannot be read */
export async function schemaVersionIn(connection: DuckDBConnection, path: string): Promise<number | null> {
  const sql = `SELECT max(schema_version)::INTEGER AS version FROM ${scanOf(path)}`
  return (await query<{ version: number | null }>(connection, sql))[0].version
}

/** A failure that says nothing of the file that is looked at. */
export const isVerifierError = (error: unknown): boolean =>
  /^(INTERRUPT|Out of Memory) Error|Too many open files|EMFILE|ENFILE/i.test(errorFirstLine(error))

async function footerFault(
  connection: DuckDBConnection,
  part: ListedPart,
  path: string,
): Promise<string | null> {
  const rows = await rowsByFooter(connection, path)
  if (rows !== part.rows) return `has ${rows} rows, not the ${part.rows} listed`
  return schemaFault(connection, lakeTableOf(part.table)!, part.schemaVersion, path)
}

/** What is wrong with a file that is there and has its size. */
async function innerFault(
  connection: DuckDBConnection,
  part: ListedPart,
  path: string,
  depth: CheckDepth,
): Promise<string | null> {
  const known = await footerFault(connection, part, path)
  if (known !== null || depth !== 'content') return known
  if (part.sha256 !== null) return hashFault(part, path)
  await connection.run(`SELECT bit_xor(hash(file)) FROM ${scanOf(path)} AS file`)
  return null
}

/** Runs a check. @returns what it found; a failure of the check is one of the file, unless it tells of who looks. */
async function asFault(check: () => Promise<string | null>): Promise<string | null> {
  try {
    return await check()
  } catch (error) {
    if (isVerifierError(error)) throw error
    return `cannot be read: ${errorFirstLine(error)}`
  }
}

/** Files of `parts` that are not as listed. */
export async function findFaults(
  parts: readonly ListedPart[],
  pathOf: (part: ListedPart) => string,
  depth: CheckDepth,
): Promise<FaultyPart[]> {
  const faulty: FaultyPart[] = []
  const sound: ListedPart[] = []
  for (const part of parts) {
    const fault = await asFault(() => sizeFault(part, pathOf(part)))
    if (fault === null) sound.push(part)
    else faulty.push({ part, fault })
  }
  if (depth === 'size' || sound.length === 0) return faulty
  const settings = { threads: '1', memory_limit: FILE_CHECK_MEMORY_LIMIT }
  await inScratchDatabase(':memory:', settings, async (connection) => {
    for (const part of sound) {
      const fault = await asFault(() => innerFault(connection, part, pathOf(part), depth))
      if (fault !== null) faulty.push({ part, fault })
    }
  })
  return faulty
}
