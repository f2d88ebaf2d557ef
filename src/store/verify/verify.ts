// In: a data folder. Out: what is wrong with its lake, in plain words: files, names, catalog, rows, the XP ledger. The
// whole is checked where the store can be opened too; while a server has it, the files against the catalog. Never
// writes to the folder, holds a bounded part of it in memory.

import { existsSync, mkdtempSync, realpathSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as after } from 'node:timers/promises'
import type { DuckDBConnection, DuckDBInstance } from '@duckdb/node-api'
import { errorFirstLine } from '../../lib/error-text.ts'
import { holderOf } from '../data-folder/folder-lock.ts'
import { CLOSED_TO_EXTENSIONS, duckdb, lockHolder, openWhenFree } from '../duckdb/duckdb.ts'
import { LAKE_TABLES, literal } from '../duckdb/sql.ts'
import { StoreError } from '../errors.ts'
import { CATALOG_FILE } from '../lake/catalog.ts'
import { type CataloguedLoss, cataloguedLosses } from '../lake/catalog-list.ts'
import { isVerifierError } from '../lake/file-check.ts'
import { partPath } from '../lake/lake-files.ts'
import { viewLinks } from '../lake/links.ts'
import { knownPaths, liveParts, type SetAsidePart, setAsideParts } from '../lake/manifest.ts'
import { FINDING_STANDS_MS, READER_MEMORY_LIMIT, READER_SPILL_MAX, READER_THREADS } from '../limits.ts'
import { lakeFolder, statePath } from '../paths.ts'
import { isOutdated } from '../query/lake-reader.ts'
import { counted, type Finding, Findings } from './findings.ts'
import { CATALOG, cataloguedTables, verifyCatalog } from './verify-catalog.ts'
import { type ListedTable, type VerifyContext, verifyFiles } from './verify-files.ts'
import { verifyLedger } from './verify-ledger.ts'
import { readTail } from './verify-log.ts'
import { verifyOutcomes } from './verify-outcomes.ts'
import { checkTwice, type ReadableTable, verifyRows } from './verify-rows.ts'

export interface VerifyOptions {
  dataDir: string
  nowMs: number
  /** Ends the work; it rejects. */
  signal?: AbortSignal
  /** Called with what is looked at next. */
  onStage?(stage: string): void
  /** How long a finding must stand while a server writes, ms. */
  standsMs?: number
  memoryLimit?: string
  threads?: number
}

export interface Verified {
  /** `files`: the store could not be opened, and `reason` says why. */
  scope: 'whole' | 'files'
  reason: string | null
  findings: readonly Finding[]
  /** Found, and too many to list. */
  omitted: number
  /** No faults: what waits, what was left out. */
  notes: readonly string[]
  /** What was looked at. */
  tables: number
  files: number
  rows: number
}

/** The name under which the store is attached. */
const STORE = 'store'

const openInstance = (spillDir: string, options: VerifyOptions): Promise<DuckDBInstance> =>
  duckdb.DuckDBInstance.create(':memory:', {
    threads: String(options.threads ?? READER_THREADS),
    memory_limit: options.memoryLimit ?? READER_MEMORY_LIMIT,
    temp_directory: spillDir,
    max_temp_directory_size: READER_SPILL_MAX,
    // Rows are counted and hashed: their order is of no account, and costs memory.
    preserve_insertion_order: 'false',
    ...CLOSED_TO_EXTENSIONS,
  })

/** Runs `work` on a database of its own in memory, that spills to a folder of its own. */
async function withConnection<T>(
  options: VerifyOptions,
  work: (connection: DuckDBConnection, spillDir: string) => Promise<T>,
): Promise<T> {
  const spillDir = mkdtempSync(join(tmpdir(), 'mintlake-verify-'))
  try {
    const instance = await openInstance(spillDir, options)
    const connection = await instance.connect()
    const interrupt = (): void => connection.interrupt()
    options.signal?.addEventListener('abort', interrupt)
    try {
      options.signal?.throwIfAborted()
      return await work(connection, spillDir)
    } catch (error) {
      if (!/^Out of Memory Error/.test(errorFirstLine(error))) throw error
      throw new StoreError(
        'unavailable',
        `too little memory, or room in ${spillDir}: ${errorFirstLine(error)}`,
      )
    } finally {
      options.signal?.removeEventListener('abort', interrupt)
      connection.closeSync()
      instance.closeSync()
    }
  } finally {
    rmSync(spillDir, { recursive: true, force: true })
  }
}

const attach = (connection: DuckDBConnection, path: string, name: string) =>
  connection.run(`ATTACH ${literal(path)} AS ${name} (READ_ONLY)`)

/** Attaches the store. @returns null, or why it cannot be had although nothing is wrong with it. */
async function attachStore(connection: DuckDBConnection, dataDir: string): Promise<string | null> {
  const path = statePath(dataDir)
  if (!existsSync(path)) return `there is no store beside the lake: ${path} is missing`
  try {
    await openWhenFree(
      () => attach(connection, path, STORE),
      () => holderOf(dataDir) === null,
    )
    await connection.run(`USE ${STORE}`)
    return null
  } catch (error) {
    const message = errorFirstLine(error)
    // The lake process has the database; people know the server.
    const pid = holderOf(dataDir)
    const by = pid === null ? lockHolder(message) : ` (process ${pid})`
    if (lockHolder(message) !== null) return `the server runs${by} and has the store to itself`
    throw new StoreError('unavailable', `the store ${path} cannot be opened: ${message}`)
  }
}

async function attachCatalog({ connection, lakeDir, findings }: VerifyContext): Promise<boolean> {
  try {
    await attach(connection, join(lakeDir, CATALOG_FILE), CATALOG)
    return true
  } catch (error) {
    if (isVerifierError(error)) throw error
    findings.add(null, CATALOG_FILE, `cannot be opened: ${errorFirstLine(error)}`)
    return false
  }
}

/** Files that are gone or damaged and known to be: a finding until `lake repair` settles it, a note from then on. */
function tellLosses({ findings }: VerifyContext, losses: readonly CataloguedLoss[]): void {
  for (const { table, path, reason, rowsLost, setAsideAtMs, settledAtMs } of losses) {
    const since = new Date(setAsideAtMs).toISOString()
    const what = `${reason}; set aside since ${since}, ${counted(rowsLost, 'row')} missing`
    if (settledAtMs === null) findings.add(table, path, `${what}: see mintlake lake repair`)
    else findings.notes.push(`${path}: ${what}, settled`)
  }
}

const ofStore = async (connection: DuckDBConnection): Promise<CataloguedLoss[]> =>
  (await setAsideParts(connection)).map((part) => ({ ...part, path: partPath(part) }))

async function liveTables(connection: DuckDBConnection): Promise<ListedTable[]> {
  const tables: ListedTable[] = []
  for (const table of LAKE_TABLES) {
    const parts = await liveParts(connection, table.name)
    tables.push({ table, parts, replaced: await knownPaths(connection, table.name) })
  }
  return tables
}

async function readableTables(
  context: VerifyContext,
  listed: readonly ListedTable[],
  losses: readonly SetAsidePart[],
): Promise<ReadableTable[]> {
  const readable: ReadableTable[] = []
  for (const each of listed) {
    const parts = await verifyFiles(context, each)
    readable.push({
      table: each.table,
      parts,
      listed: each.parts,
      isWhole: parts.length === each.parts.length && !losses.some(({ table }) => table === each.table.name),
      losses,
    })
  }
  for (const each of readable) {
    context.enter(`rows of ${each.table.name}, each once`)
    try {
      await checkTwice(context, each)
    } catch (error) {
      if (context.isStill || !isOutdated(error)) throw error
      const why = 'files were replaced meanwhile, and gone after --lake-grace-ms of the server'
      context.findings.notes.push(`${each.table.name}: not looked through for rows that are twice: ${why}`)
    }
  }
  return readable
}

/** Tables or columns are not there that this program has. */
const isOlder = (error: unknown): boolean => /^(Catalog|Binder) Error/.test(errorFirstLine(error))

function olderStore(error: unknown): never {
  if (!isOlder(error)) throw error
  const sentence = 'the store is of an older version: start the server on it once, then verify again'
  throw new StoreError('unavailable', `${sentence} (${errorFirstLine(error)})`)
}

async function checkAgainstStore(
  context: VerifyContext,
  readable: readonly ReadableTable[],
  dataDir: string,
  spillDir: string,
) {
  const tableOf = (name: string): ReadableTable => readable.find(({ table }) => table.name === name)!
  try {
    context.enter('the log')
    const tail = await readTail(context, dataDir, spillDir)
    for (const each of readable) {
      context.enter(`rows of ${each.table.name}, as they were committed`)
      await verifyRows(context, each, tail)
    }
    context.enter('the XP ledger')
    await verifyLedger(context, tableOf('training'), tableOf('xp_ledger'), tail)
    context.enter('outcomes')
    await verifyOutcomes(context, tableOf('training'), tableOf('outcomes'), tail)
  } catch (error) {
    olderStore(error)
  }
}

/** What is to be checked: the live files by the store, or by the catalog where the store cannot be had. */
async function listedTables(
  { connection, isStill }: VerifyContext,
  hasCatalog: boolean,
): Promise<ListedTable[]> {
  if (isStill) return liveTables(connection).catch(olderStore)
  return hasCatalog ? cataloguedTables(connection) : []
}

/** One look at everything. */
async function verifyOnce(options: VerifyOptions, lakeDir: string): Promise<Verified> {
  const findings = new Findings()
  const enter = (stage: string): void => {
    options.signal?.throwIfAborted()
    options.onStage?.(stage)
  }
  return withConnection(options, async (connection, spillDir) => {
    const reason = await attachStore(connection, options.dataDir)
    const isStill = reason === null
    const links = await viewLinks(lakeDir)
    // Asked before it is attached: one that is put in its place between is younger than is said here.
    const catalogWrittenMs = statSync(join(lakeDir, CATALOG_FILE), { throwIfNoEntry: false })?.mtimeMs ?? 0
    const context: VerifyContext = { connection, lakeDir, links, findings, isStill, catalogWrittenMs, enter }
    const hasCatalog = await attachCatalog(context)
    const listed = await listedTables(context, hasCatalog)
    if (hasCatalog) await verifyCatalog(context, listed)
    const losses = isStill ? await setAsideParts(connection) : []
    if (isStill) tellLosses(context, await ofStore(connection))
    else if (hasCatalog) tellLosses(context, await cataloguedLosses(connection, CATALOG))
    const readable = await readableTables(context, listed, losses)
    if (isStill) await checkAgainstStore(context, readable, options.dataDir, spillDir)
    const parts = listed.flatMap((each) => each.parts)
    return {
      scope: isStill ? 'whole' : 'files',
      reason,
      findings: findings.list,
      omitted: findings.omitted,
      notes: findings.notes,
      tables: listed.length,
      files: parts.length,
      rows: parts.reduce((sum, { rows }) => sum + rows, 0),
    }
  })
}

const nameOf = ({ table, file, message }: Finding): string => `${table} ${file} ${message}`

/**
 * Checks the lake of `dataDir`. Rejects with `not_found` when there is none, `unavailable` when the store beside
 * it is broken.
 */
export async function verifyLake(options: VerifyOptions): Promise<Verified> {
  const folder = lakeFolder(options.dataDir)
  if (!existsSync(folder))
    throw new StoreError('not_found', `there is no lake in ${options.dataDir}: ${folder} is missing`)
  // As the store names it: paths of the catalog begin so.
  const lakeDir = lakeFolder(realpathSync(options.dataDir))
  const first = await verifyOnce(options, lakeDir)
  if (first.scope === 'whole' || first.findings.length === 0) return first
  // The server writes, merges and replaces meanwhile: what is no fault is gone at the next look.
  await after(options.standsMs ?? FINDING_STANDS_MS, undefined, { signal: options.signal })
  const before = new Set(first.findings.map(nameOf))
  const second = await verifyOnce(options, lakeDir)
  return { ...second, findings: second.findings.filter((finding) => before.has(nameOf(finding))) }
}
