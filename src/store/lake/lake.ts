// The lake: its files, the manifest that lists them, links, catalog and quarantine. A flush writes whole new files and lists
// them in one transaction with the state, so that every row is in exactly one live file. Files of an interrupted flush are
// deleted: their rows are still in the log.
import { join } from 'node:path'
import type { DuckDBConnection } from '@duckdb/node-api'
import type { TableName } from '../../schema/tables.ts'
import { damagedState } from '../duckdb/damaged-state.ts'
import { type Database, isFullError, transaction } from '../duckdb/database.ts'
import { LAKE_TABLES, type LakeTable } from '../duckdb/sql.ts'
import { loadEventPosition } from '../events/event-position.ts'
import type { StagedRows } from '../flush/row-splitter.ts'
import { lakeFolder } from '../paths.ts'
import type { CrashPoint } from '../process/crash-points.ts'
import {
  type LakeFile,
  type LakeTableStatus,
  type LakeTrouble,
  type LogLine,
  NO_TROUBLE,
  type SetAsideFile,
} from '../types.ts'
import { CATALOG_FILE, type CatalogTable, writeCatalog } from './catalog.ts'
import { loadContent } from './catalog-reader.ts'
import { type CheckDepth, findFaultyFiles } from './file-check.ts'
import { listPendingTableFiles, toPendingFile, writePendingFiles } from './file-writer.ts'
import {
  type DataFile,
  type FolderListing,
  fileName,
  relativePath,
  removeFile,
  type SeqRange,
} from './lake-files.ts'
import { type Links, openLinks } from './links.ts'
import { LiveFileReader } from './live-file-reader.ts'
import { readCatalog } from './lost-list.ts'
import {
  groupByTable,
  insertFiles,
  type ListedFile,
  listAllLiveFiles,
  listKnownPaths,
  listLiveFiles,
  listReadableFiles,
  type NewFile,
  nextSeq,
  type QuarantinedFile,
  replaceFiles,
  sizeOf,
} from './manifest.ts'
import { type ListSource, recoverOrphans } from './orphan-files.ts'
import { Quarantine } from './quarantine.ts'

/** What a flush writes to the lake, besides the bars and outcomes that wait in the database. */
export interface FlushBatch {
  /** Rows of the log and of token profiles, by table and date. */
  staged: readonly StagedRows[]
  /** LSNs of the commits whose rows these are. */
  lsns: SeqRange
  /** Other changes in the transaction that lists the files. @param written those files */
  record(connection: DuckDBConnection, written: readonly NewFile[]): Promise<void>
  /** Called when that transaction is committed, whatever fails afterwards. */
  onListed(): void
}

type TableSize = Omit<LakeTableStatus, 'backlog'>

const sizesOf = (tables: readonly CatalogTable[]): TableSize[] =>
  tables.map(({ table, files }) => ({ table: table.name, ...sizeOf(files) }))

export interface LakeOptions {
  /** Called at each named point, so that a test can kill the process there. */
  failpoint(point: CrashPoint): void
  log(line: LogLine): void
  /** Called when what is wrong with the lake has changed. */
  onTrouble(trouble: LakeTrouble): void
}

/** A quarantined file in the form that `/health` and `lake repair` report. */
export const toSetAsideFile = (file: QuarantinedFile): SetAsideFile => ({
  table: file.table,
  date: file.date,
  path: relativePath(file),
  reason: file.reason,
  rowsLost: file.rowsLost,
  sinceMs: file.quarantinedAtMs,
})

/** Runs `work` for each table, even where it fails for some, then throws the first failure. */
export async function forEachOf<Each>(
  tables: readonly Each[],
  work: (table: Each) => Promise<void>,
): Promise<void> {
  const failures: unknown[] = []
  for (const table of tables) await work(table).catch((error: unknown) => failures.push(error))
  if (failures.length > 0) throw failures[0]
}

/** The highest row number of a table whose rows were listed. */
async function lastListedSeq(
  connection: DuckDBConnection,
  { name, origin }: LakeTable,
  flushedLsn: number,
): Promise<number> {
  if (origin === undefined) return flushedLsn
  // The last events may have no row in this table.
  if (origin === 'journal') return (await loadEventPosition(connection)).eventNo
  return (await nextSeq(connection, name)) - 1
}

interface Recovery {
  /** The last commit whose rows are in listed files. */
  flushedLsn: number
  listFrom: ListSource
}

/** A table when a recovery begins. */
interface FoundTable {
  table: LakeTable
  live: readonly ListedFile[]
  listing: FolderListing
  /** Files that no list names. */
  orphans: readonly DataFile[]
  /** The highest row number that was listed. */
  flushedSeq: number
}

/** Opens the lake of a data folder. `recover` must be called before it is used. */
export const openLake = async (database: Database, options: LakeOptions): Promise<Lake> =>
  new Lake(database, await openLinks(lakeFolder(database.dataDir)), options)

export class Lake {
  readonly database: Database
  readonly lakeDir: string
  readonly links: Links
  readonly quarantine: Quarantine
  readonly reader: LiveFileReader
  readonly dataDir: string
  readonly failpoint: LakeOptions['failpoint']
  readonly log: LakeOptions['log']
  readonly #onTrouble: LakeOptions['onTrouble']
  /** The manifest has changed since the catalog was written. */
  #isCatalogStale = true
  /** What the catalog has, by table; null until this process has written one. */
  #catalogued: readonly TableSize[] | null = null
  /** A change of hard links failed: they may differ from the manifest. */
  #areLinksStale = false
  /** What `recover` has still to do; null once it has succeeded. */
  #recovery: Recovery | null = null
  #trouble = NO_TROUBLE

  constructor(database: Database, links: Links, options: LakeOptions) {
    this.database = database
    this.dataDir = database.dataDir
    this.lakeDir = links.lakeDir
    this.links = links
    this.failpoint = options.failpoint
    this.log = options.log
    this.#onTrouble = options.onTrouble
    const onChange = () => this.markCatalogStale()
    this.quarantine = new Quarantine({ links, log: options.log, onChange })
    this.reader = new LiveFileReader(database, links, this.quarantine)
  }

  /** Absolute path of a file. */
  readonly pathOf = (file: DataFile): string => this.links.pathOf(file)

  /** To be called after each change of the manifest: the next `refreshCatalog` writes the catalog. */
  markCatalogStale(): void {
    this.#isCatalogStale = true
  }

  /** What is wrong with the lake, as last published. */
  get trouble(): LakeTrouble {
    return this.#trouble
  }

  /** Changes some members of `trouble` and passes it on to the server. */
  publishTrouble(change: Partial<LakeTrouble>): void {
    this.#trouble = { ...this.#trouble, ...change }
    this.#onTrouble(this.#trouble)
  }

  /**
   * Writes the catalog if the manifest has changed. Where that fails because a file is damaged or missing (its view cannot be
   * created), the file is quarantined and the catalog written without it.
   */
  async refreshCatalog(connection: DuckDBConnection, nowMs: number): Promise<void> {
    if (!this.#isCatalogStale) return
    try {
      await this.#writeCatalog(connection, nowMs)
    } catch (error) {
      const files = isFullError(error) ? [] : await listAllLiveFiles(connection)
      if ((await this.quarantine.check(connection, files, 'end', nowMs)) === 0) throw error
      await this.#writeCatalog(connection, nowMs)
    }
  }

  /**
   * Completes or removes what a crash left. Where it fails, the next flush tries again first.
   * Rejects with `invalid`, and changes nothing, where the manifest is older than the catalog.
   */
  async recover(recovery: Recovery, nowMs: number): Promise<void> {
    this.#recovery = recovery
    await this.database.maintenance.run((connection) => this.#recover(connection, nowMs))
  }

  /** Writes and lists all pending rows, in one transaction with the changes of `batch.record`. */
  async flush(batch: FlushBatch, nowMs: number): Promise<void> {
    return this.database.maintenance.run(async (connection) => {
      await this.#recover(connection, nowMs)
      const pending = [
        ...(await listPendingTableFiles(connection)),
        ...batch.staged.map((staged) => toPendingFile(staged, batch.lsns)),
      ]
      const written = await writePendingFiles(connection, pending, {
        pathOf: this.pathOf,
        failpoint: (step) => this.failpoint(`flush:${step}`),
      })
      await transaction(connection, async () => {
        await insertFiles(connection, written, nowMs)
        await batch.record(connection, written)
      })
      batch.onListed()
      // The log loses commits without a row of the lake too: of these, too, the catalog must tell.
      if (batch.lsns.last >= batch.lsns.first) this.markCatalogStale()
      await this.followList(connection, 'flush', written, [], nowMs)
    })
  }

  /**
   * Completes what a crash or an earlier failure left undone, so that what is listed is durable. Must be called before files are
   * written that `addFiles` will list: it removes files that are not listed.
   */
  settle(nowMs: number): Promise<void> {
    return this.database.maintenance.run(async (connection) => {
      await this.#recover(connection, nowMs)
      if (this.#areLinksStale) await this.#followWithLinks(connection, [], [])
      await this.refreshCatalog(connection, nowMs)
    })
  }

  /** Lists files of recorded events, which were written on another connection, in one transaction with the changes of `record`. */
  addFiles(
    written: readonly NewFile[],
    nowMs: number,
    record: (connection: DuckDBConnection) => Promise<void>,
  ): Promise<void> {
    return this.database.maintenance.run(async (connection) => {
      await transaction(connection, async () => {
        await insertFiles(connection, written, nowMs)
        await record(connection)
      })
      await this.followList(connection, 'events', written, [], nowMs)
    })
  }

  /** After a change of the manifest: makes it durable, and has links and catalog follow it. @param by what has changed it */
  async followList(
    connection: DuckDBConnection,
    by: 'flush' | 'events' | 'merge' | 'retain',
    added: readonly DataFile[],
    removed: readonly DataFile[],
    nowMs: number,
  ): Promise<void> {
    if (added.length + removed.length > 0) this.markCatalogStale()
    this.failpoint(`${by}:listed`)
    await this.#followWithLinks(connection, added, removed)
    this.failpoint(`${by}:linked`)
    await this.refreshCatalog(connection, nowMs)
  }

  async #followWithLinks(
    connection: DuckDBConnection,
    added: readonly DataFile[],
    removed: readonly DataFile[],
  ): Promise<void> {
    const wereStale = this.#areLinksStale
    this.#areLinksStale = true
    await this.database.syncFolder()
    if (wereStale) {
      for (const { name } of LAKE_TABLES) await this.links.sync(name, await listLiveFiles(connection, name))
    } else {
      await this.links.add(added)
      await this.links.remove(removed)
    }
    this.#areLinksStale = false
  }

  /**
   * Checks files and quarantines the faulty ones. The maintenance connection is free during the check.
   * @returns how many were quarantined
   */
  async checkFiles(files: readonly ListedFile[], depth: CheckDepth, nowMs: number): Promise<number> {
    const faulty = await findFaultyFiles(files, this.pathOf, depth)
    if (faulty.length === 0) return 0
    return this.database.maintenance.run(async (connection) => {
      const added = await this.quarantine.add(connection, faulty, nowMs)
      await this.refreshCatalog(connection, nowMs)
      return added
    })
  }

  /** Every live file. For callers that do not run on the maintenance connection. */
  listLiveFiles(): Promise<ListedFile[]> {
    return this.database.maintenance.run(listAllLiveFiles)
  }

  /** Live files, and replaced ones that are kept for readers. Does not wait for maintenance. */
  listFilesForReaders(): Promise<LakeFile[]> {
    return this.database.status.run(async (connection) => {
      const files = await listReadableFiles(connection)
      return files.map((file) => ({ ...file, name: fileName(file), path: this.pathOf(file) }))
    })
  }

  /**
   * Tables as the catalog shows them: what is told here a query finds, though the manifest lists it a moment sooner.
   * @param waiting rows, by table, that wait for a flush in this process's memory
   */
  async status(waiting: Partial<Record<TableName, number>>): Promise<LakeTableStatus[]> {
    const sizes = this.#catalogued ?? sizesOf(groupByTable(await this.database.status.run(listAllLiveFiles)))
    return sizes.map((size) => ({ ...size, backlog: waiting[size.table] ?? 0 }))
  }

  async #recover(connection: DuckDBConnection, nowMs: number): Promise<void> {
    const recovery = this.#recovery
    if (recovery === null) return
    await this.quarantine.restore(connection, nowMs)
    const tables = await this.#findTables(connection, recovery)
    if (recovery.listFrom === 'manifest') await this.#checkNotBehind(tables)
    await forEachOf(tables, (found) =>
      this.#recoverTable(connection, found, recovery.listFrom, nowMs),
    ).finally(async () => {
      await removeFile(`${join(this.lakeDir, CATALOG_FILE)}.tmp`)
      // At every start, since the folder may have been moved.
      await this.refreshCatalog(connection, nowMs)
    })
    await this.database.makeDurable(connection)
    this.#recovery = null
  }

  /** Lists the folders of all tables. Creates those that are missing. */
  async #findTables(connection: DuckDBConnection, { flushedLsn }: Recovery): Promise<FoundTable[]> {
    const known = await listKnownPaths(connection)
    const found: FoundTable[] = []
    for (const { table, files: live } of groupByTable(await listAllLiveFiles(connection))) {
      const listing = await this.links.listFiles(table.name)
      const orphans = listing.files.filter((file) => !known.has(relativePath(file)))
      const flushedSeq = await lastListedSeq(connection, table, flushedLsn)
      found.push({ table, live, listing, orphans, flushedSeq })
    }
    return found
  }

  /** The catalog follows the manifest: a file of it that the manifest does not know shows that the manifest is an old one. */
  async #checkNotBehind(tables: readonly FoundTable[]): Promise<void> {
    const orphans = tables.flatMap((table) => table.orphans.map(relativePath))
    if (orphans.length === 0) return
    const catalog = await readCatalog(this.lakeDir)
    const listed = new Set(catalog?.tables.flatMap(({ files }) => files.map(relativePath)))
    const [first, ...others] = orphans.filter((path) => listed.has(path))
    if (first === undefined) return
    const files = others.length === 0 ? first : `${others.length + 1} files, such as ${first}`
    throw damagedState(this.dataDir, `is older than the lake: it does not know of ${files}`)
  }

  async #recoverTable(
    connection: DuckDBConnection,
    { table, live, listing, orphans, flushedSeq }: FoundTable,
    listFrom: ListSource,
    nowMs: number,
  ): Promise<void> {
    const { links, log } = this
    const quarantined = await this.quarantine.check(connection, live, 'end', nowMs)
    const options = { connection, table, links, log, listFrom, flushedSeq }
    const recovered = await recoverOrphans(orphans, options)
    if (recovered.length > 0) {
      await replaceFiles(connection, [], recovered, nowMs)
      this.markCatalogStale()
    }
    const isChanged = quarantined > 0 || recovered.length > 0
    const linked = await links.sync(
      table.name,
      isChanged ? await listLiveFiles(connection, table.name) : live,
    )
    for (const path of new Set([...listing.temporaries, ...linked.temporaries])) await removeFile(path)
    for (const path of new Set([...listing.foreign, ...linked.foreign]))
      log({ level: 'warn', message: 'a file in the lake is not the store’s; left alone', fields: { path } })
  }

  async #writeCatalog(connection: DuckDBConnection, nowMs: number): Promise<void> {
    const content = await loadContent(connection)
    const { lakeDir, pathOf } = this
    // Tests do not kill the process while it recovers.
    const failpoint = this.#recovery === null ? this.failpoint : () => {}
    await writeCatalog(content, nowMs, { lakeDir, pathOf, failpoint })
    this.#isCatalogStale = false
    this.#catalogued = sizesOf(content.tables)
    await this.quarantine.moveFiles()
    const unacknowledged = content.quarantined.filter(({ acknowledgedAtMs }) => acknowledgedAtMs === null)
    this.publishTrouble({ setAside: unacknowledged.map(toSetAsideFile) })
  }
}
