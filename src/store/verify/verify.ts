// Verifies the lake of a data folder: files, links, catalog, rows, XP ledger, outcomes. Without a server the state database is
// checked too; while a server has it open, the files are checked against the catalog. Nothing in the folder is written.
import { existsSync, mkdtempSync, realpathSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as after } from 'node:timers/promises'
import type { DuckDBConnection } from '@duckdb/node-api'
import { assert } from '../../lib/assert.ts'
import { errorFirstLine } from '../../lib/error-text.ts'
import { recordFrom } from '../../lib/record.ts'
import type { TableName } from '../../schema/tables.ts'
import { Losses } from '../data-folder/losses.ts'
import { explainDamage, isDamage } from '../duckdb/damaged-state.ts'
import { attachState, openDatabase } from '../duckdb/duckdb.ts'
import { literal } from '../duckdb/sql.ts'
import { notFound, unavailable } from '../errors.ts'
import { CATALOG_FILE } from '../lake/catalog.ts'
import { readKnownLosses } from '../lake/catalog-reader.ts'
import { isResourceError } from '../lake/file-check.ts'
import { relativePath } from '../lake/lake-files.ts'
import { readLakePaths } from '../lake/links.ts'
import {
  groupByTable,
  listAllLiveFiles,
  listKnownPaths,
  listQuarantinedFiles,
  type QuarantinedFile,
} from '../lake/manifest.ts'
import { FINDING_CONFIRM_MS, READER_MEMORY_LIMIT, READER_SPILL_MAX, READER_THREADS } from '../limits.ts'
import { lakeFolder, stateLogPath, statePath } from '../paths.ts'
import { isMissingFileError } from '../query/lake-reader.ts'
import { type Finding, Findings, pluralize } from './findings.ts'
import { verifyBarAccounts } from './verify-bars.ts'
import { CATALOG, checkOutsideLog, listCatalogTables, verifyCatalog } from './verify-catalog.ts'
import { verifyEvents } from './verify-events.ts'
import { type ListedTable, type VerifyContext, verifyFiles } from './verify-files.ts'
import { verifyLedger } from './verify-ledger.ts'
import { readLogTail } from './verify-log.ts'
import { verifyOutcomes } from './verify-outcomes.ts'
import { checkDuplicates, type ReadableTable, verifyRows } from './verify-rows.ts'
import { verifyTrades } from './verify-trades.ts'

export interface VerifyOptions {
  dataDir: string
  nowMs: number
  /** Aborts the verification, which rejects. */
  signal?: AbortSignal
  /** Called with what is checked next. */
  onStage?(stage: string): void
  /** While a server writes, findings are confirmed by a second pass after this time, ms. */
  confirmMs?: number
  memoryLimit?: string
}

export interface Verified {
  /** `files`: only the files and the catalog were checked, since the store could not be opened; see `reason`. */
  scope: 'whole' | 'files'
  reason: string | null
  findings: readonly Finding[]
  /** How many findings are not listed because there were too many. */
  omitted: number
  /** Remarks that are not faults, such as checks that were left out. */
  notes: readonly string[]
  /** What was checked. */
  tables: number
  files: number
  rows: number
}

/** The name under which the store is attached. */
const STORE = 'store'

/** Runs `work` in a database in memory that spills to a temporary folder. */
async function withConnection<T>(
  options: VerifyOptions,
  work: (connection: DuckDBConnection, spillDir: string) => Promise<T>,
): Promise<T> {
  const spillDir = mkdtempSync(join(tmpdir(), 'mintlake-verify-'))
  try {
    const { connection, close } = await openDatabase(':memory:', {
      threads: String(READER_THREADS),
      memory_limit: options.memoryLimit ?? READER_MEMORY_LIMIT,
      temp_directory: spillDir,
      max_temp_directory_size: READER_SPILL_MAX,
      // Rows are only counted and hashed; keeping their order would take memory.
      preserve_insertion_order: 'false',
    })
    const interrupt = (): void => connection.interrupt()
    options.signal?.addEventListener('abort', interrupt)
    try {
      options.signal?.throwIfAborted()
      return await work(connection, spillDir)
    } catch (error) {
      if (!/^Out of Memory Error/.test(errorFirstLine(error))) throw error
      throw unavailable(`too little memory, or room in ${spillDir}: ${errorFirstLine(error)}`)
    } finally {
      options.signal?.removeEventListener('abort', interrupt)
      close()
    }
  } finally {
    rmSync(spillDir, { recursive: true, force: true })
  }
}

/** Attaches the state database. @returns null, or the reason why it cannot be opened now. @throws where it is broken */
async function attachStore(connection: DuckDBConnection, dataDir: string): Promise<string | null> {
  const path = statePath(dataDir)
  if (!existsSync(path)) return `there is no store beside the lake: ${path} is missing`
  try {
    const by = await attachState(connection, dataDir, STORE)
    if (by !== null) return `the server runs${by} and has locked the store`
    await connection.run(`USE ${STORE}`)
    return null
  } catch (error) {
    if (isDamage(error)) throw explainDamage(dataDir, error)
    throw unavailable(`the store ${path} cannot be opened: ${errorFirstLine(error)}`)
  }
}

async function attachCatalog({ connection, lakeDir, findings }: VerifyContext): Promise<boolean> {
  try {
    await connection.run(`ATTACH ${literal(join(lakeDir, CATALOG_FILE))} AS ${CATALOG} (READ_ONLY)`)
    return true
  } catch (error) {
    if (isResourceError(error)) throw error
    findings.add(null, CATALOG_FILE, `cannot be opened: ${errorFirstLine(error)}`)
    return false
  }
}

/** Reports quarantined files: as a finding until `lake repair` acknowledges the loss, then as a note. */
function reportLosses({ findings }: VerifyContext, losses: readonly QuarantinedFile[]): void {
  for (const file of losses) {
    const { reason, rowsLost, quarantinedAtMs, acknowledgedAtMs } = file
    const since = new Date(quarantinedAtMs).toISOString()
    const what = `${reason}; set aside since ${since}, ${pluralize(rowsLost, 'row')} missing`
    if (acknowledgedAtMs === null) findings.addFile(file, `${what}: see mintlake lake repair`)
    else findings.notes.push(`${relativePath(file)}: ${what}, settled`)
  }
}

/** Remarks on other losses that nobody has acknowledged. @returns all of them */
async function reportKnownLosses({ dataDir, nowMs }: VerifyOptions, findings: Findings): Promise<Losses> {
  const losses = new Losses(dataDir)
  await losses.load(nowMs)
  for (const { file, sentence } of losses.unacknowledged)
    if (file === null) findings.notes.push(`${sentence}; mintlake lake repair acknowledges it`)
  return losses
}

async function listStoreTables(connection: DuckDBConnection): Promise<ListedTable[]> {
  const replaced = await listKnownPaths(connection)
  return groupByTable(await listAllLiveFiles(connection)).map((listed) => ({ ...listed, replaced }))
}

async function checkTables(
  context: VerifyContext,
  listed: readonly ListedTable[],
  losses: readonly QuarantinedFile[],
  dataDir: string,
): Promise<ReadableTable[]> {
  const tables: ReadableTable[] = []
  for (const each of listed) {
    const { table, files: listed } = each
    const readable = await verifyFiles(context, each)
    const own = losses.filter((file) => file.table === table.name)
    const isWhole = readable.length === listed.length && own.length === 0
    tables.push({ table, readable, listed, losses: own, isWhole })
  }
  const isOfEvents = ({ table }: ReadableTable): boolean => table.origin === 'journal'
  for (const each of tables.filter((table) => !isOfEvents(table))) {
    context.startStage(`duplicate rows of ${each.table.name}`)
    const what = `${each.table.name}: not checked for duplicate rows`
    await unlessReplaced(context, what, () => checkDuplicates(context, each))
  }
  await unlessReplaced(context, 'recorded events: their sequence was not checked', () =>
    verifyEvents(context, tables.filter(isOfEvents), dataDir),
  )
  return tables
}

/** Compares bars with the recorded trades, where there are any. */
async function compareBars(
  context: VerifyContext,
  tables: readonly ReadableTable[],
  seed: number,
): Promise<void> {
  // Neither the store nor the catalog could be opened.
  if (tables.length === 0) return
  const compared = recordFrom(['bars', 'trades', 'events'], (name) => findTable(tables, name))
  await unlessReplaced(context, 'bars: not compared with trades', () => verifyTrades(context, compared, seed))
}

function findTable(tables: readonly ReadableTable[], name: TableName): ReadableTable {
  const found = tables.find(({ table }) => table.name === name)
  assert(found !== undefined, 'every table of the lake was checked')
  return found
}

/** Runs a check that reads files. Those that a running server has replaced and deleted meanwhile are no fault. */
async function unlessReplaced(
  { hasStore, findings }: VerifyContext,
  what: string,
  check: () => Promise<void>,
): Promise<void> {
  try {
    await check()
  } catch (error) {
    if (hasStore || !isMissingFileError(error)) throw error
    const why = 'files were replaced meanwhile, and deleted after grace-ms of the server’s --lake-tidy'
    findings.notes.push(`${what}: ${why}`)
  }
}

/** True where the database lacks tables or columns that this version has. */
const isOlderVersion = (error: unknown): boolean => /^(Catalog|Binder) Error/.test(errorFirstLine(error))

function rethrowForOlderStore(error: unknown): never {
  if (!isOlderVersion(error)) throw error
  const sentence = 'the store is of an older version: start the server on it once, then verify again'
  throw unavailable(`${sentence} (${errorFirstLine(error)})`)
}

async function checkAgainstStore(
  context: VerifyContext,
  tables: readonly ReadableTable[],
  dataDir: string,
  spillDir: string,
) {
  try {
    context.startStage('the log')
    const tail = await readLogTail(context, dataDir, spillDir)
    for (const each of tables) {
      context.startStage(`committed rows of ${each.table.name}`)
      await verifyRows(context, each, tail)
    }
    context.startStage('closed bars')
    await verifyBarAccounts(context)
    context.startStage('the XP ledger')
    const training = findTable(tables, 'training')
    await verifyLedger(context, training, findTable(tables, 'xp_ledger'), tail)
    context.startStage('outcomes')
    await verifyOutcomes(context, training, findTable(tables, 'outcomes'), tail)
  } catch (error) {
    rethrowForOlderStore(error)
  }
}

/** Lists the files to check, and those that are quarantined: by the store, or by the catalog where the store cannot be opened. */
async function listFiles(
  { connection, hasStore }: VerifyContext,
  hasCatalog: boolean,
): Promise<{ listed: ListedTable[]; losses: QuarantinedFile[] }> {
  if (!hasStore && !hasCatalog) return { listed: [], losses: [] }
  if (!hasStore)
    return { listed: await listCatalogTables(connection), losses: await readKnownLosses(connection, CATALOG) }
  const listed = await listStoreTables(connection).catch(rethrowForOlderStore)
  return { listed, losses: await listQuarantinedFiles(connection) }
}

/** One pass over everything. */
async function verifyOnce(options: VerifyOptions, lakeDir: string): Promise<Verified> {
  const findings = new Findings()
  const startStage = (stage: string): void => {
    options.signal?.throwIfAborted()
    options.onStage?.(stage)
  }
  return withConnection(options, async (connection, spillDir) => {
    const reason = await attachStore(connection, options.dataDir)
    const hasStore = reason === null
    const links = await readLakePaths(lakeDir)
    // Read before the catalog is attached: a catalog swapped in between is then younger than this, not older.
    const catalogWrittenMs = statSync(join(lakeDir, CATALOG_FILE), { throwIfNoEntry: false })?.mtimeMs ?? 0
    const context: VerifyContext = {
      connection,
      lakeDir,
      links,
      findings,
      hasStore,
      // A server that ends in order leaves no log of its state database.
      wasKilled: hasStore && existsSync(stateLogPath(options.dataDir)),
      losses: await reportKnownLosses(options, findings),
      catalogWrittenMs,
      startStage,
    }
    checkOutsideLog(context)
    const hasCatalog = await attachCatalog(context)
    const { listed, losses } = await listFiles(context, hasCatalog)
    if (hasCatalog) await verifyCatalog(context, listed)
    reportLosses(context, losses)
    const tables = await checkTables(context, listed, losses, options.dataDir)
    if (hasStore) await checkAgainstStore(context, tables, options.dataDir, spillDir)
    await compareBars(context, tables, Math.floor(options.nowMs))
    const files = listed.flatMap((each) => each.files)
    return {
      scope: hasStore ? 'whole' : 'files',
      reason,
      findings: findings.list,
      omitted: findings.omitted,
      notes: findings.notes,
      tables: listed.length,
      files: files.length,
      rows: files.reduce((sum, { rows }) => sum + rows, 0),
    }
  })
}

const identify = ({ table, file, message }: Finding): string => `${table} ${file} ${message}`

/**
 * Verifies the lake of a data folder. Rejects with `not_found` where there is none, `unavailable` where the state database is
 * broken.
 */
export const verifyLake = (options: VerifyOptions): Promise<Verified> =>
  verify(options).catch((error) => Promise.reject(explainDamage(options.dataDir, error)))

async function verify(options: VerifyOptions): Promise<Verified> {
  const folder = lakeFolder(options.dataDir)
  if (!existsSync(folder)) throw notFound(`there is no lake in ${options.dataDir}: ${folder} is missing`)
  // Symbolic links resolved, as in the paths of the catalog.
  const lakeDir = lakeFolder(realpathSync(options.dataDir))
  const first = await verifyOnce(options, lakeDir)
  if (first.scope === 'whole' || first.findings.length === 0) return first
  // The server changes files meanwhile: only what a second pass finds as well is a fault.
  await after(options.confirmMs ?? FINDING_CONFIRM_MS, undefined, { signal: options.signal })
  const before = new Set(first.findings.map(identify))
  const second = await verifyOnce(options, lakeDir)
  return { ...second, findings: second.findings.filter((finding) => before.has(identify(finding))) }
}
