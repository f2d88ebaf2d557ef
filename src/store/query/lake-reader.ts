// Reads the lake for people and exports, in a database of its own: read-only, with access to no file but the lake's. The
// server may run and write at the same time; no lock is taken.
import { existsSync, mkdtempSync, realpathSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { DuckDBConnection, StatementType } from '@duckdb/node-api'
import { errorFirstLine, errorMessage, systemCode } from '../../lib/error-text.ts'
import { duckdb, openDatabase } from '../duckdb/duckdb.ts'
import { ResultStream } from '../duckdb/result-stream.ts'
import { literal } from '../duckdb/sql.ts'
import { invalid, notFound, StoreError, unavailable } from '../errors.ts'
import { CATALOG_FILE, createCatalog, filesOf } from '../lake/catalog.ts'
import { findFaultyFiles } from '../lake/file-check.ts'
import { locateCatalogFiles } from '../lake/locate-files.ts'
import type { ListedFile, QuarantinedFile } from '../lake/manifest.ts'
import { LAKE_REOPENINGS_MAX, READER_MEMORY_LIMIT, READER_SPILL_MAX, READER_THREADS } from '../limits.ts'
import { lakeFolder } from '../paths.ts'
import { type Plain, plainRows } from './plain-value.ts'

export interface LakeReaderOptions {
  dataDir: string
  memoryLimit?: string
  threads?: number
  /** The one file outside of the lake that a COPY may write. */
  target?: string | undefined
  /** Where the folder for spilled data is created, and how large it may get. */
  spillParent?: string
  spillMax?: string
  /** Rows of a query's result that are converted at once; see `plainRows`. */
  rowsAtOnce?: number
}

/** The result of a query, in batches of a few thousand rows. */
export interface QueryResult {
  columns: readonly { name: string; type: string }[]
  batches: AsyncGenerator<Plain[][]>
}

export interface LakeReader {
  readonly connection: DuckDBConnection
  /** Another connection to the same catalog, for a second query at the same time. Closed with the reader. */
  connect(): Promise<DuckDBConnection>
  /** Files whose rows are left out: missing or damaged ones, noticed by the server or not, until `lake repair` has settled them. */
  readonly lost: readonly QuarantinedFile[]
  /** Runs a query of this program. */
  stream(sql: string): Promise<ResultStream>
  /** Runs SQL from a user. Rejects with `invalid` when it is wrong or could write; where a file is damaged, with DuckDB's error. */
  query(sql: string): Promise<QueryResult>
  /** Ends the running queries, which reject, and so do all later ones that end early. */
  interrupt(): void
  close(): void
}

/** True when a query was ended by `interrupt`. */
export const isInterrupted = (error: unknown): boolean => /^INTERRUPT Error/i.test(cleanMessage(error))

/**
 * True when a file of the catalog was deleted: the grace period is over. A reader opened now gets a newer catalog. Where access is closed
 * DuckDB looks for a folder of the file's name, and complains of that. No query can make up an error of these kinds.
 */
export const isMissingFileError = (error: unknown): boolean =>
  systemCode(error) === 'ENOENT' ||
  /^(IO|Permission) Error: .*(No files found that match|Cannot open file|No such file|\.parquet\/\*\*\/\*\.parquet" - file system operations)/i.test(
    cleanMessage(error),
  )

/** What a person is told where DuckDB cannot read the lake; other errors, and that of an interruption, stay as they are. */
export const toUnreadable = (error: unknown): unknown =>
  isDuckDBError(error) && !isInterrupted(error)
    ? unavailable(`the lake cannot be read: ${errorFirstLine(error)}; see mintlake lake verify`)
    : error

/** DuckDB's package throws plain errors. */
const isDuckDBError = (error: unknown): boolean =>
  error instanceof Error && error.constructor === Error && systemCode(error) === ''

const cleanMessage = (error: unknown): string =>
  errorMessage(error).replace(/^Failed to extract statements: /, '')

/** The catalog of a data folder, with symbolic links resolved. Throws `not_found` where there is none. */
export function findCatalogPath(dataDir: string): string {
  const path = join(lakeFolder(dataDir), CATALOG_FILE)
  if (existsSync(path)) return realpathSync(path)
  const missing = `there is no lake in ${dataDir}: ${path} is missing. The server creates it at its start`
  // Without the files there is nothing to make one of.
  throw notFound(
    existsSync(dirname(path))
      ? `${missing}; for a folder without a server, run mintlake lake catalog`
      : missing,
  )
}

const readIdentity = (path: string): string => {
  const { ino, mtimeMs } = statSync(path)
  return `${ino} ${mtimeMs}`
}

/** What was found of the files that the catalog lists. */
interface AttachedFiles {
  lost: readonly QuarantinedFile[]
  /** The others by where they are, within the lake's folder. */
  present: PresentFiles
}
type PresentFiles = ReadonlyMap<string, ListedFile>

/**
 * Attaches the catalog. Where its paths are not those of this folder, as in a copied folder, a corrected catalog is made and
 * attached instead. None of its views is bound.
 */
async function attachCatalog(
  connection: DuckDBConnection,
  dataDir: string,
  spillDir: string,
): Promise<AttachedFiles> {
  for (let attempt = 0; ; attempt++) {
    const path = findCatalogPath(dataDir)
    const identity = readIdentity(path)
    await connection.run(`ATTACH ${literal(path)} AS lake (READ_ONLY)`)
    const located = await locateCatalogFiles(connection, 'lake', realpathSync(lakeFolder(dataDir)))
    const lost = located.content.quarantined.filter(({ acknowledgedAtMs }) => acknowledgedAtMs === null)
    const files = filesOf(located.content)
    const present = new Map(files.map((file) => [located.pathOf(file), file]))
    if (located.catalogMatches) return { lost, present }
    await connection.run('DETACH lake')
    // The server has written a new catalog in the meantime and deleted files of this one.
    if (located.missing.length > 0 && readIdentity(path) !== identity && attempt < LAKE_REOPENINGS_MAX)
      continue
    const own = join(spillDir, CATALOG_FILE)
    await createCatalog(located.content, Date.now(), own, located.pathOf)
    await connection.run(`ATTACH ${literal(own)} AS lake (READ_ONLY)`)
    return { lost, present }
  }
}

/**
 * The catalog may come from a stranger, and a view of it may name any file of this machine. So access is closed before any of them is
 * bound. What stays open are the catalog's files, by name: in a folder `EXPORT DATABASE` could write, since it makes its files
 * before its kind of statement is known.
 */
async function attach(
  connection: DuckDBConnection,
  { dataDir, target, spillMax }: LakeReaderOptions,
  spillDir: string,
): Promise<AttachedFiles> {
  await connection.run(`SET temp_directory = ${literal(spillDir)}`)
  await connection.run(`SET max_temp_directory_size = '${spillMax ?? READER_SPILL_MAX}'`)
  await connection.run(`SET TimeZone = 'UTC'`)
  const attached = await attachCatalog(connection, dataDir, spillDir)
  const allowed = [...attached.present.keys(), ...(target === undefined ? [] : [target])]
    .map(literal)
    .join(', ')
  await connection.run(`SET allowed_paths = [${allowed}]`)
  await connection.run('SET enable_external_access = false')
  await connection.run('USE lake')
  if (target !== undefined) {
    await connection.run('SET enable_progress_bar = true')
    await connection.run('SET enable_progress_bar_print = false')
  }
  await connection.run('SET lock_configuration = true')
  return attached
}

/** Opens the lake for reading. Rejects with `not_found` when there is none, `unavailable` when it cannot be read. */
export async function openLakeReader(options: LakeReaderOptions): Promise<LakeReader> {
  findCatalogPath(options.dataDir)
  const spillDir = mkdtempSync(join(options.spillParent ?? tmpdir(), 'mintlake-reader-'))
  const others: DuckDBConnection[] = []
  let database: Awaited<ReturnType<typeof openDatabase>> | null = null
  const close = () => {
    for (const other of others) other.closeSync()
    database?.close()
    rmSync(spillDir, { recursive: true, force: true })
  }
  try {
    database = await openDatabase(':memory:', {
      threads: String(options.threads ?? READER_THREADS),
      memory_limit: options.memoryLimit ?? READER_MEMORY_LIMIT,
    })
    const { instance, connection } = database
    const { lost, present } = await attach(connection, options, spillDir)
    let isInterrupted = false
    const wasInterrupted = () => isInterrupted
    return {
      connection,
      connect: async () => {
        const other = await instance.connect()
        others.push(other)
        return other
      },
      lost,
      stream: (sql) => ResultStream.open(connection, sql, wasInterrupted),
      query: (sql) => runQuery(connection, sql, present, wasInterrupted, options.rowsAtOnce),
      interrupt: () => {
        isInterrupted = true
        for (const each of [connection, ...others]) each.interrupt()
      },
      close,
    }
  } catch (error) {
    close()
    if (error instanceof StoreError) throw error
    throw unavailable(`the lake cannot be read: ${cleanMessage(error)}`)
  }
}

/**
 * Runs `work` with a reader, and closes it. Where files of the catalog are deleted before the work ends, it runs again over the
 * new catalog: `work` must be repeatable.
 */
export async function withLakeReader<T>(
  options: LakeReaderOptions,
  work: (reader: LakeReader) => Promise<T>,
): Promise<T> {
  for (let attempt = 0; ; attempt++) {
    const reader = await openLakeReader(options)
    try {
      return await work(reader)
    } catch (error) {
      if (!isMissingFileError(error) || attempt >= LAKE_REOPENINGS_MAX) throw error
    } finally {
      reader.close()
    }
  }
}

/** Allowed kinds of statements. None can write a file: the catalog is read-only and the configuration locked. */
const ALLOWED: ReadonlySet<StatementType> = new Set([
  duckdb.StatementType.SELECT,
  duckdb.StatementType.SET,
  duckdb.StatementType.CREATE,
])
/** White space, comments and semicolons. DuckDB's error for SQL without a statement is hard to understand. */
const BLANK = String.raw`^(?:\s|;|--[^\n]*(?:\n|$)|/\*[\s\S]*?\*/)*`
const IS_BLANK = new RegExp(`${BLANK}$`)
const EXPLAIN = new RegExp(String.raw`${BLANK}EXPLAIN\s+(ANALYZE\s+)?(\([^)]*\)\s*)?`, 'i')

/** `EXPLAIN ANALYZE` runs the query that it explains, so that must be allowed as well. */
async function checkExplained(connection: DuckDBConnection, sql: string): Promise<void> {
  const explained = sql.replace(EXPLAIN, '')
  if (explained === sql) throw invalid('EXPLAIN must stand at the beginning')
  const statements = await connection.extractStatements(explained)
  const { statementType } = await statements.prepare(0)
  if (statements.count !== 1 || statementType !== duckdb.StatementType.SELECT)
    throw invalid('only queries can be explained here')
}

async function runQuery(
  connection: DuckDBConnection,
  sql: string,
  files: PresentFiles,
  wasInterrupted: () => boolean,
  rowsAtOnce?: number,
): Promise<QueryResult> {
  try {
    const result = await runStatements(connection, sql, wasInterrupted)
    return { columns: result.columns, batches: readBatches(result, files, rowsAtOnce) }
  } catch (error) {
    throw await toQueryError(error, files)
  }
}

/** A query may fail at any row. */
async function* readBatches(
  result: ResultStream,
  files: PresentFiles,
  rowsAtOnce?: number,
): AsyncGenerator<Plain[][]> {
  try {
    yield* plainRows(result, rowsAtOnce)
  } catch (error) {
    throw await toQueryError(error, files)
  }
}

async function toQueryError(error: unknown, files: PresentFiles): Promise<unknown> {
  if (error instanceof StoreError || isMissingFileError(error) || isInterrupted(error)) return error
  const message = cleanMessage(error)
  if (WRITES_LAKE.test(message)) return invalid(LASTS_WITH_QUERY)
  return (await isOfDamagedFile(message, files)) ? error : invalid(message)
}

/** What DuckDB says of a CREATE that would write to the lake. */
const WRITES_LAKE = /^[^\n]*Cannot execute statement of type [^\n]* attached in read-only mode/
const LASTS_WITH_QUERY =
  'the lake is read-only: what a query creates must be temporary, as with CREATE TEMP TABLE, and lasts as long as the query'

/** What DuckDB says of a damaged page without naming the file. No query can make up an error of this kind. */
const DAMAGED_PAGE = /^Invalid Error: TProtocolException/

/** Whether an error comes of a file that is not as it was written. A query may make up one that names a whole file. */
async function isOfDamagedFile(message: string, files: PresentFiles): Promise<boolean> {
  if (DAMAGED_PAGE.test(message)) return true
  const named = [...files].filter(([path]) => message.includes(path))
  for (const [path, file] of named)
    if ((await findFaultyFiles([file], () => path, 'content')).length > 0) return true
  return false
}

/** Runs all statements. @returns the result of the last one */
async function runStatements(
  connection: DuckDBConnection,
  sql: string,
  wasInterrupted: () => boolean,
): Promise<ResultStream> {
  // DuckDB reads up to there, and takes that for the whole.
  if (sql.includes('\0')) throw invalid('the query has a NUL character')
  if (IS_BLANK.test(sql)) throw invalid('there is no query')
  const statements = await connection.extractStatements(sql)
  for (let index = 0; ; index++) {
    const prepared = await statements.prepare(index)
    if (prepared.statementType === duckdb.StatementType.EXPLAIN) await checkExplained(connection, sql)
    else if (!ALLOWED.has(prepared.statementType))
      throw invalid(
        `${duckdb.StatementType[prepared.statementType] ?? 'this'} statements are refused: the lake is read-only`,
      )
    if (index === statements.count - 1) {
      const text = statements.count === 1 ? sql : null
      return ResultStream.ofPrepared(connection, prepared, text, wasInterrupted)
    }
    await prepared.run()
  }
}
