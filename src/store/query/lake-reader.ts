// In: the data folder. Out: SQL over the lake's catalog for people, in a database of its own: read-only, no file but the
// lake's, nothing loaded, while the server writes. Never waits for the server, never takes a lock that it wants.

import { existsSync, mkdtempSync, realpathSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { DuckDBConnection, DuckDBResult, StatementType } from '@duckdb/node-api'
import { errorMessage } from '../../lib/error-text.ts'
import { CLOSED_TO_EXTENSIONS, duckdb } from '../duckdb/duckdb.ts'
import { literal } from '../duckdb/sql.ts'
import { StoreError } from '../errors.ts'
import { CATALOG_FILE, fillCatalog } from '../lake/catalog.ts'
import { locateFiles } from '../lake/located-files.ts'
import type { ListedPart } from '../lake/manifest.ts'
import { LAKE_REOPENINGS_MAX, READER_MEMORY_LIMIT, READER_SPILL_MAX, READER_THREADS } from '../limits.ts'
import { lakeFolder } from '../paths.ts'
import { type Plain, plainRows } from './plain-value.ts'

export interface LakeReaderOptions {
  dataDir: string
  memoryLimit?: string
  threads?: number
  /** The one file besides the lake's that a COPY may write; it need not be there. */
  target?: string
  /** Where a folder for what does not fit in memory is made, and how much it may take. */
  spillParent?: string
  spillMax?: string
}

/** What a query answers, row by row: memory holds a few thousand rows at a time. */
export interface LakeAnswer {
  columns: { name: string; type: string }[]
  batches: AsyncGenerator<Plain[][]>
}

export interface LakeReader {
  readonly connection: DuckDBConnection
  /** Files that the catalog lists and that are not there: their rows are left out. */
  readonly missing: readonly ListedPart[]
  /** SQL of a person: reads only. Rejects with `invalid` when it is wrong or would write. */
  query(sql: string): Promise<LakeAnswer>
  /** Ends what is running; it rejects. */
  interrupt(): void
  close(): void
}

/** A query was ended by `interrupt`. */
export const isInterrupted = (error: unknown): boolean => /^INTERRUPT Error/i.test(sentenceOf(error))

/** Files that the catalog named are gone: it is older than the grace. Opened anew, it names others. */
export const isOutdated = (error: unknown): boolean =>
  /No files found that match|Cannot open file|No such file/i.test(sentenceOf(error))

const sentenceOf = (error: unknown): string =>
  errorMessage(error).replace(/^Failed to extract statements: /, '')
const refuse = (sentence: string): StoreError => new StoreError('invalid', sentence)

/** Where readers find the lake: the one place that knows. */
export function catalogPath(dataDir: string): string {
  const path = join(lakeFolder(dataDir), CATALOG_FILE)
  if (existsSync(path)) return realpathSync(path)
  throw new StoreError(
    'not_found',
    `there is no lake in ${dataDir}: ${path} is missing. The server makes it when it starts, mintlake lake catalog for files without one`,
  )
}

const identityOf = (path: string): string => {
  const { ino, mtimeMs } = statSync(path)
  return `${ino} ${mtimeMs}`
}

/**
 * Attaches the catalog, or where it does not name every file as it lies in this folder, one that does: a catalog that was
 * copied would send its readers to the files of the original. @returns what is missing.
 */
async function attachCatalog(
  connection: DuckDBConnection,
  dataDir: string,
  spillDir: string,
): Promise<readonly ListedPart[]> {
  for (let attempt = 0; ; attempt++) {
    const path = catalogPath(dataDir)
    const identity = identityOf(path)
    await connection.run(`ATTACH ${literal(path)} AS lake (READ_ONLY)`)
    const files = await locateFiles(connection, 'lake', realpathSync(lakeFolder(dataDir)))
    if (files.isRight) return []
    await connection.run('DETACH lake')
    // The server has put another in its place meanwhile, and removed files that this one lists.
    if (files.missing.length > 0 && identityOf(path) !== identity && attempt < LAKE_REOPENINGS_MAX) continue
    const own = join(spillDir, CATALOG_FILE)
    await fillCatalog(files.content, Date.now(), own, files)
    await connection.run(`ATTACH ${literal(own)} AS lake (READ_ONLY)`)
    return files.missing
  }
}

async function attach(
  connection: DuckDBConnection,
  { dataDir, target, spillMax }: LakeReaderOptions,
  spillDir: string,
): Promise<readonly ListedPart[]> {
  await connection.run(`SET temp_directory = ${literal(spillDir)}`)
  await connection.run(`SET max_temp_directory_size = '${spillMax ?? READER_SPILL_MAX}'`)
  await connection.run(`SET TimeZone = 'UTC'`)
  const missing = await attachCatalog(connection, dataDir, spillDir)
  await connection.run('USE lake')
  await connection.run(`SET allowed_directories = [${literal(`${realpathSync(lakeFolder(dataDir))}/`)}]`)
  if (target !== undefined) {
    await connection.run(`SET allowed_paths = [${literal(target)}]`)
    await connection.run('SET enable_progress_bar = true')
    await connection.run('SET enable_progress_bar_print = false')
  }
  await connection.run('SET enable_external_access = false')
  await connection.run('SET lock_configuration = true')
  return missing
}

/** Opens the lake for reading. Rejects with `not_found` when there is none, `unavailable` when it cannot be read. */
export async function openLakeReader(options: LakeReaderOptions): Promise<LakeReader> {
  catalogPath(options.dataDir)
  const spillDir = mkdtempSync(join(options.spillParent ?? tmpdir(), 'mintlake-reader-'))
  const removeSpill = () => rmSync(spillDir, { recursive: true, force: true })
  try {
    const instance = await duckdb.DuckDBInstance.create(':memory:', {
      threads: String(options.threads ?? READER_THREADS),
      memory_limit: options.memoryLimit ?? READER_MEMORY_LIMIT,
      ...CLOSED_TO_EXTENSIONS,
    })
    const connection = await instance.connect()
    const close = () => {
      connection.closeSync()
      instance.closeSync()
      removeSpill()
    }
    let missing: readonly ListedPart[]
    try {
      missing = await attach(connection, options, spillDir)
    } catch (error) {
      close()
      throw error
    }
    return {
      connection,
      missing,
      query: (sql) => query(connection, sql),
      interrupt: () => connection.interrupt(),
      close,
    }
  } catch (error) {
    removeSpill()
    if (error instanceof StoreError) throw error
    throw new StoreError('unavailable', `the lake cannot be read: ${sentenceOf(error)}`)
  }
}

/**
 * Runs `work` with a reader that is closed afterwards. Where the catalog was swapped and the files it named are gone
 * before the work was done, it is done again over the new one: `work` must bear that.
 */
export async function withLake<T>(
  options: LakeReaderOptions,
  work: (reader: LakeReader) => Promise<T>,
): Promise<T> {
  for (let attempt = 0; ; attempt++) {
    const reader = await openLakeReader(options)
    try {
      return await work(reader)
    } catch (error) {
      if (!isOutdated(error) || attempt >= LAKE_REOPENINGS_MAX) throw error
    } finally {
      reader.close()
    }
  }
}

/** Statements that cannot reach a file: the catalog is attached read-only and the configuration is locked. */
const HARMLESS: ReadonlySet<StatementType> = new Set([
  duckdb.StatementType.SELECT,
  duckdb.StatementType.SET,
  duckdb.StatementType.CREATE,
])
/** Space, comments and semicolons: what may stand before a statement. DuckDB finds none in these alone, and says so badly. */
const NOTHING = String.raw`^(?:\s|;|--[^\n]*(?:\n|$)|/\*[\s\S]*?\*/)*`
const IS_NOTHING = new RegExp(`${NOTHING}$`)
const EXPLAIN = new RegExp(String.raw`${NOTHING}EXPLAIN\s+(ANALYZE\s+)?(\([^)]*\)\s*)?`, 'i')

/** `EXPLAIN ANALYZE` runs what it explains: that must be harmless too. */
async function checkExplained(connection: DuckDBConnection, sql: string): Promise<void> {
  const explained = sql.replace(EXPLAIN, '')
  if (explained === sql) throw refuse('EXPLAIN must stand at the beginning')
  const statements = await connection.extractStatements(explained)
  const { statementType } = await statements.prepare(0)
  if (statements.count !== 1 || statementType !== duckdb.StatementType.SELECT)
    throw refuse('only queries can be explained here')
}

async function query(connection: DuckDBConnection, sql: string): Promise<LakeAnswer> {
  try {
    const result = await start(connection, sql)
    const columns = result
      .deduplicatedColumnNames()
      .map((name, index) => ({ name, type: String(result.columnType(index)) }))
    return { columns, batches: plainRows(result) }
  } catch (error) {
    if (error instanceof StoreError || isOutdated(error) || isInterrupted(error)) throw error
    throw refuse(sentenceOf(error))
  }
}

/** Runs every statement; the last one's rows are the answer. */
async function start(connection: DuckDBConnection, sql: string): Promise<DuckDBResult> {
  if (IS_NOTHING.test(sql)) throw refuse('there is no query')
  const statements = await connection.extractStatements(sql)
  for (let index = 0; ; index++) {
    const prepared = await statements.prepare(index)
    if (prepared.statementType === duckdb.StatementType.EXPLAIN) await checkExplained(connection, sql)
    else if (!HARMLESS.has(prepared.statementType))
      throw refuse(
        `${duckdb.StatementType[prepared.statementType] ?? 'this'} statements are refused: the lake is read-only`,
      )
    if (index === statements.count - 1) return prepared.stream()
    await prepared.run()
  }
}
