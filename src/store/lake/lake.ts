// In: rows that wait, as files for DuckDB and as rows of its tables. Out: each of them in exactly one live Parquet file, and
// the list of those files, changed in one transaction with the state. Never writes a file in place, never lists a file that
// is not whole, and never adopts a file of a flush that was cut off: its rows are in the log still.
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { DuckDBConnection } from '@duckdb/node-api'
import { TABLES, type TableName } from '../../schema/tables.ts'
import { type Database, isFullError, transaction } from '../duckdb/database.ts'
import { query } from '../duckdb/query.ts'
import {
  LAKE_TABLES,
  type LakeTable,
  lakeColumns,
  lakeOrder,
  MANIFEST,
  ROW_SEQ,
  relation,
} from '../duckdb/sql.ts'
import type { StagedRows } from '../flush/row-splitter.ts'
import { selectStaged } from '../flush/staged-sql.ts'
import { lakeFolder } from '../paths.ts'
import type { CrashPoint, LogLine } from '../process/protocol.ts'
import type { LakeTableStatus, LakeTrouble, SetAsideFile } from '../types.ts'
import { CATALOG_FILE, writeCatalog } from './catalog.ts'
import { type CheckDepth, findFaults } from './file-check.ts'
import { dateOf, rowsByDate, writeFile } from './file-writer.ts'
import { type Part, partPath, removeFile, type SeqRange } from './lake-files.ts'
import { type Links, openLinks } from './links.ts'
import {
  allLiveParts,
  byTable,
  IS_LIVE,
  insertParts,
  knownPaths,
  type ListedPart,
  listParts,
  liveParts,
  type NewPart,
  nextSeq,
  type SetAsidePart,
  setAsideParts,
} from './manifest.ts'
import { openSetAside, type SetAside } from './set-aside.ts'
import { recoverUnlisted } from './unlisted-files.ts'

export interface Flushed {
  files: number
  rows: number
}

/** What a flush brings to the lake, besides the rows of bars and outcomes that wait in the database. */
export interface FlushBatch {
  /** Rows of the log by table and date, and of token profiles. */
  staged: readonly StagedRows[]
  /** The commits that they are of. */
  lsns: SeqRange
  /** What else changes in the transaction that lists the files. */
  record(connection: DuckDBConnection): Promise<void>
  /** Called when that transaction has ended well, whatever fails after it. */
  onListed(): void
}

export interface LakeOptions {
  dataDir: string
  /** Called at each named point, so that a test can cut the work off there. */
  failpoint(point: CrashPoint): void
  log(line: LogLine): void
  /** Called when something else is wrong with the lake than before. */
  onTrouble(trouble: LakeTrouble): void
}

/** A file to be written. */
interface PendingFile {
  part: Part
  rows: number
  table: LakeTable
  /** SQL of its rows. */
  select: string
}

/** A file that was set aside, as people are told of it. */
export const toldOf = (part: SetAsidePart): SetAsideFile => ({
  table: part.table,
  date: part.date,
  path: partPath(part),
  reason: part.reason,
  rowsLost: part.rowsLost,
  sinceMs: part.setAsideAtMs,
})

/** Does work for every table, though it fails for some: one table is no reason to let the others fall behind. */
export async function eachTable(work: (table: LakeTable) => Promise<void>): Promise<void> {
  const failures: unknown[] = []
  for (const table of LAKE_TABLES) await work(table).catch((error: unknown) => failures.push(error))
  if (failures.length > 0) throw failures[0]
}

/** The lake below `dataDir`, as `database` lists it. */
export async function openLake(database: Database, options: LakeOptions): Promise<Lake> {
  const lakeDir = lakeFolder(options.dataDir)
  return new Lake(database, lakeDir, await openLinks(lakeDir), options)
}

export class Lake {
  readonly database: Database
  readonly lakeDir: string
  readonly links: Links
  /** Reading of live files that bears damaged ones. */
  readonly files: SetAside
  readonly #options: LakeOptions
  /** The catalog no longer says what the list says. */
  #isCatalogStale = true
  /** Second names may not be those of the list: a change of them failed. */
  #areLinksStale = false
  /** What a crash left is not settled yet. */
  #unsettled: { flushedLsn: number; isListLost: boolean } | null = null
  #trouble: LakeTrouble = { setAside: [], retentionHeld: null, stateRebuiltAtMs: null }

  constructor(database: Database, lakeDir: string, links: Links, options: LakeOptions) {
    this.database = database
    this.lakeDir = lakeDir
    this.links = links
    this.#options = options
    this.files = openSetAside({
      ...{ database, lakeDir, links, log: options.log },
      onChange: () => this.listChanged(),
    })
  }

  /** Absolute path of a file on the list. */
  readonly pathOf = (part: Part): string => this.links.pathOf(part)

  /** The list has changed: the catalog is written anew when it is refreshed next. */
  listChanged(): void {
    this.#isCatalogStale = true
  }

  /** Tells of what is wrong with the lake, when it is other than before. */
  tell(change: Partial<LakeTrouble>): void {
    this.#trouble = { ...this.#trouble, ...change }
    this.#options.onTrouble(this.#trouble)
  }

  get trouble(): LakeTrouble {
    return this.#trouble
  }

  /**
   * Writes the catalog where the list has changed since. A file that was lost since it was looked at is set aside: its view
   * could not be made.
   */
  async refreshCatalog(
    connection: DuckDBConnection,
    nowMs: number,
    failpoint = this.#options.failpoint,
  ): Promise<void> {
    if (!this.#isCatalogStale) return
    try {
      await this.#putCatalog(connection, nowMs, failpoint)
    } catch (error) {
      const parts = isFullError(error) ? [] : await allLiveParts(connection)
      if ((await this.files.check(connection, parts, 'end', nowMs)) === 0) throw error
      await this.#putCatalog(connection, nowMs, failpoint)
    }
  }

  /**
   * Finishes or removes what a crash left. Where it fails, the next flush does it first.
   * @param flushedLsn the last commit whose rows are in listed files
   * @param isListLost then whole files that no list names are on it again
   */
  async settle(flushedLsn: number, isListLost: boolean, nowMs: number): Promise<void> {
    this.#unsettled = { flushedLsn, isListLost }
    await this.database.maintenance.run((connection) => this.#settle(connection, nowMs))
  }

  /** Writes what waits, lists it, and does what the batch records with it: all of it or nothing. */
  async flush(batch: FlushBatch, nowMs: number): Promise<Flushed> {
    const { failpoint } = this.#options
    return this.database.maintenance.run(async (connection) => {
      await this.#settle(connection, nowMs)
      const pending = [...(await this.#waitingInTables(connection)), ...stagedFiles(batch)]
      const written = await this.#writeFiles(connection, pending)
      await transaction(connection, async () => {
        await insertParts(connection, written, nowMs)
        await batch.record(connection)
      })
      batch.onListed()
      if (written.length > 0) this.listChanged()
      failpoint('flush:listed')
      await this.followList(connection, written, [])
      failpoint('flush:linked')
      await this.refreshCatalog(connection, nowMs)
      return { files: written.length, rows: written.reduce((sum, { rows }) => sum + rows, 0) }
    })
  }

  /** After a change of the list: it is durable, and what those see who list folders is what it says. */
  async followList(
    connection: DuckDBConnection,
    added: readonly Part[],
    removed: readonly Part[],
  ): Promise<void> {
    const wereStale = this.#areLinksStale
    this.#areLinksStale = true
    await this.database.syncNames()
    if (wereStale) {
      for (const { name } of LAKE_TABLES) await this.links.settle(name, await liveParts(connection, name))
    } else {
      await this.links.add(added)
      await this.links.remove(removed)
    }
    this.#areLinksStale = false
  }

  /** Looks at files while others use the list; what is faulty leaves the list and the catalog. @returns how many. */
  async checkBeside(parts: readonly ListedPart[], depth: CheckDepth, nowMs: number): Promise<number> {
    const faulty = await findFaults(parts, this.pathOf, depth)
    if (faulty.length === 0) return 0
    return this.database.maintenance.run(async (connection) => {
      const removed = await this.files.remove(connection, faulty, nowMs)
      await this.refreshCatalog(connection, nowMs)
      return removed
    })
  }

  /** Every live file, for who does not have the connection. */
  allLive(): Promise<ListedPart[]> {
    return this.database.maintenance.run(allLiveParts)
  }

  /** @param waiting rows of a table that wait in this process, where the database does not have them */
  async status(waiting: Partial<Record<TableName, number>>): Promise<LakeTableStatus[]> {
    return this.database.status.run(async (connection) => {
      const sizes = await query<{ name: string; files: number; rows: number; bytes: number }>(
        connection,
        `SELECT table_name AS name, count(*)::DOUBLE AS files, sum(row_count)::DOUBLE AS rows,
           sum(byte_count)::DOUBLE AS bytes FROM ${MANIFEST} WHERE ${IS_LIVE} GROUP BY 1`,
      )
      const byName = new Map(sizes.map((size) => [size.name, size]))
      return LAKE_TABLES.map(({ name }) => {
        const { files = 0, rows = 0, bytes = 0 } = byName.get(name) ?? {}
        return { table: name as TableName, files, rows, bytes, backlog: waiting[name as TableName] ?? 0 }
      })
    })
  }

  async #settle(connection: DuckDBConnection, nowMs: number): Promise<void> {
    const due = this.#unsettled
    if (due === null) return
    await this.files.takeBack(connection, nowMs)
    await eachTable((table) => this.#settleTable(connection, table, { ...due, nowMs })).finally(async () => {
      await removeFile(`${join(this.lakeDir, CATALOG_FILE)}.tmp`)
      // At every opening: the folder may have been moved. Not a point where a test would cut the work off.
      await this.refreshCatalog(connection, nowMs, () => {})
    })
    await this.database.renew(connection)
    this.#unsettled = null
  }

  async #putCatalog(
    connection: DuckDBConnection,
    nowMs: number,
    failpoint: LakeOptions['failpoint'],
  ): Promise<void> {
    const parts = await allLiveParts(connection)
    const setAside = await setAsideParts(connection)
    await writeCatalog({ tables: byTable(parts), setAside }, nowMs, {
      lakeDir: this.lakeDir,
      pathOf: this.pathOf,
      failpoint,
    })
    this.#isCatalogStale = false
    await this.files.moveAway()
    this.tell({ setAside: setAside.filter(({ settledAtMs }) => settledAtMs === null).map(toldOf) })
  }

  async #settleTable(
    connection: DuckDBConnection,
    table: LakeTable,
    { flushedLsn, isListLost, nowMs }: { flushedLsn: number; isListLost: boolean; nowMs: number },
  ): Promise<void> {
    const { links, lakeDir } = this
    const { log } = this.#options
    const held = await links.listing(table.name)
    await this.files.check(connection, await liveParts(connection, table.name), 'end', nowMs)
    const known = await knownPaths(connection, table.name)
    const unlisted = held.parts.filter((part) => !known.has(partPath(part)))
    const kept = await recoverUnlisted(unlisted, {
      ...{ connection, table, lakeDir, links, log, isListLost },
      // Beyond it the log has the rows still; and market data of a flush that was cut off is lost as it is with the process.
      flushedSeq: table.origin === undefined ? flushedLsn : (await nextSeq(connection, table.name)) - 1,
    })
    if (kept.length > 0) {
      await listParts(connection, kept, nowMs)
      this.listChanged()
    }
    const linked = await links.settle(table.name, await liveParts(connection, table.name))
    for (const path of new Set([...held.temporaries, ...linked.temporaries])) await removeFile(path)
    for (const path of new Set([...held.foreign, ...linked.foreign]))
      log({ level: 'warn', message: 'a file in the lake is not the store’s; left alone', fields: { path } })
  }

  /** Rows of tables that others have filled: bars, and outcomes. */
  async #waitingInTables(connection: DuckDBConnection): Promise<PendingFile[]> {
    const pending: PendingFile[] = []
    for (const table of [TABLES.bars, TABLES.outcomes]) {
      const first = await nextSeq(connection, table.name)
      const sql = `SELECT coalesce(max(${ROW_SEQ}), 0)::DOUBLE AS last FROM ${relation(table)}`
      const range = { first, last: (await query<{ last: number }>(connection, sql))[0].last }
      if (range.last < first) continue
      for (const { date, rows } of await rowsByDate(connection, table, range)) {
        const select = `SELECT ${lakeColumns(table)} FROM ${relation(table)}
          WHERE ${ROW_SEQ} BETWEEN ${range.first} AND ${range.last} AND ${dateOf(table)} = DATE '${date}'`
        pending.push({ part: { table: table.name, date, ...range }, rows, table, select })
      }
    }
    return pending
  }

  /** What one of them fails to write is no reason to leave the others lying: nothing lists them. */
  async #writeFiles(connection: DuckDBConnection, pending: readonly PendingFile[]): Promise<NewPart[]> {
    const written: NewPart[] = []
    const options = { pathOf: this.pathOf, failpoint: this.#options.failpoint }
    try {
      for (const { part, rows, table, select } of pending) {
        const sorted = `${select} ORDER BY ${lakeOrder(table)}`
        written.push(await writeFile(connection, part, { rows, select: sorted }, options))
      }
      return written
    } catch (error) {
      for (const part of written) await rm(this.pathOf(part), { force: true })
      throw error
    }
  }
}

/** Files of a batch's staged rows. Those of market data count table by table, those of the log by its commits. */
function stagedFiles({ staged, lsns }: FlushBatch): PendingFile[] {
  return staged.map((each) => ({
    part: { table: each.table.name, date: each.date, ...(each.range ?? lsns) },
    rows: each.rows,
    table: each.table,
    select: selectStaged(each.table, each),
  }))
}
