// In: durable rows of the store. Out: each of them in exactly one live Parquet file of the lake, and a list of those files.
// Never writes a file in place, never lists a file that is not whole, and never writes a range twice: a flush that was
// cut off anywhere is finished with the same range, so the files it had already published are adopted.
import { join } from 'node:path'
import type { DuckDBConnection } from '@duckdb/node-api'
import pLimit from 'p-limit'
import type { Instant } from '../lib/clock.ts'
import type { TableName } from '../schema/tables.ts'
import { CATALOG_FILE, writeCatalog } from './catalog.ts'
import { openClockGuard } from './clock-guard.ts'
import { type Database, isFullError, query } from './database.ts'
import { type CheckDepth, findFaults } from './file-check.ts'
import { planRange, waitingRows } from './flush-range.ts'
import { journalRows, WAITING } from './journal.ts'
import { type Part, partPath, removeFile, type SeqRange } from './lake-files.ts'
import { MERGE_ROOM } from './limits.ts'
import {
  exchangeParts,
  forgetParts,
  IS_LIVE,
  isListEmpty,
  knownPaths,
  type ListedPart,
  listParts,
  liveParts,
  type NewPart,
  nextSeq,
  nextSeqs,
  replacedParts,
  type SetAsidePart,
  setAsideParts,
  settleParts,
} from './manifest.ts'
import { planMerges } from './merge-plan.ts'
import { openMerger } from './merger.ts'
import { mergeParts } from './merging.ts'
import type { CrashPoint, LogLine } from './messages.ts'
import { openOrphans } from './orphans.ts'
import { measured, rowsByDate, writePart } from './part-writer.ts'
import { lakeFolder, spillFolder } from './paths.ts'
import { overdueParts, type RetainedDays, retireParts } from './retention.ts'
import { openRoom } from './room.ts'
import { openSetAside, SET_ASIDE_FOLDER, type SetAside } from './set-aside.ts'
import { openShelf } from './shelf.ts'
import { LAKE_TABLES, type LakeTable, MANIFEST } from './sql.ts'
import type { LakeRepair, LakeTableStatus, LakeTrouble, SetAsideFile } from './types.ts'

export interface Flushed {
  files: number
  rows: number
}

export interface Lake {
  /** Absolute path of a file on the list. */
  pathOf(part: Part): string
  /** Finishes or removes what a crash left. Before the first flush. */
  settle(nowMs: number): Promise<void>
  /** Writes all rows up to `ackedSeq` that no file holds yet. */
  flush(ackedSeq: number, nowMs: number): Promise<Flushed>
  /** Merges small files; removes those that were replaced before the grace. `quietMs`: see merge-plan.ts. */
  tidy(now: Instant, quietMs: number): Promise<{ merged: number; removed: number }>
  status(ackedSeq: number): Promise<LakeTableStatus[]>
  /** Reads every file to its end, sets damaged ones aside, takes back those that are whole again, and `settles` the rest. */
  repair(nowMs: number, settles: boolean): Promise<LakeRepair>
  /** The operator says that the clock is right: dates that are over their time leave. @returns files that left. */
  retire(now: Instant): Promise<number>
  /** Reading of live files that bears damaged ones. */
  files: Pick<SetAside, 'read' | 'readBeside'>
  /** Ends what is being merged; merges are refused from here on. */
  close(): Promise<void>
}

export interface LakeOptions {
  dataDir: string
  /** How long a replaced file stays for readers who have begun, ms. */
  graceMs: number
  retainDays: RetainedDays
  /** Nothing is written while less of the lake's disk is free, MB. */
  diskReserveMb: number
  /** Called at each named point, so that a test can cut the work off there. */
  reach(point: CrashPoint): void
  log(line: LogLine): void
  /** Called when something else is wrong with the lake than before. */
  onTrouble(trouble: LakeTrouble): void
}

const told = ({ table, date, reason, rowsLost, setAsideAtMs, ...part }: SetAsidePart): SetAsideFile => ({
  table,
  date,
  path: partPath({ table, date, ...part }),
  reason,
  rowsLost,
  sinceMs: setAsideAtMs,
})

const LIST_LOST =
  'the store’s database was lost: the files of the lake are on a new list, and what no file has is gone, as agents and keys'

/** Does work for every table, though it fails for some: one table is no reason to let the others fall behind. */
async function eachTable(work: (table: LakeTable) => Promise<void>): Promise<void> {
  const failures: unknown[] = []
  for (const table of LAKE_TABLES) await work(table).catch((error: unknown) => failures.push(error))
  if (failures.length > 0) throw failures[0]
}

/** The lake below `dataDir`, fed from `database`. */
export async function openLake(database: Database, options: LakeOptions): Promise<Lake> {
  const lakeDir = lakeFolder(options.dataDir)
  const shelf = await openShelf(lakeDir)
  const room = openRoom(lakeDir, options.diskReserveMb)
  const { reach, log } = options
  const merger = openMerger()
  const tidies = pLimit(1)
  /** At the opening there was no list, though there may be files: whole ones are put on it again. */
  let isListLost = false
  /** Tables whose last flush failed half-way: they are settled before the next one. */
  const unsettled = new Set<string>(LAKE_TABLES.map((table) => table.name))
  /** The catalog no longer says what the list says. */
  let catalogIsStale = true
  const setAside = openSetAside({
    ...{ database, lakeDir, shelf, log, reach, pathOf: shelf.pathOf },
    onChange: () => {
      catalogIsStale = true
    },
  })
  const clock = openClockGuard()
  let trouble: LakeTrouble = { setAside: [], retentionHeld: null }
  const orphans = openOrphans({ lakeDir, shelf, log })

  async function everyLivePart(connection: DuckDBConnection): Promise<ListedPart[]> {
    const parts: ListedPart[] = []
    for (const table of LAKE_TABLES) parts.push(...(await liveParts(connection, table.name)))
    return parts
  }

  async function putCatalog(connection: DuckDBConnection, nowMs: number, at: LakeOptions['reach']) {
    const parts = await everyLivePart(connection)
    const tables = LAKE_TABLES.map((table) => ({
      table,
      parts: parts.filter((part) => part.table === table.name),
    }))
    const aside = await setAsideParts(connection)
    await writeCatalog({ tables, setAside: aside }, nowMs, { lakeDir, pathOf: shelf.pathOf, reach: at })
    catalogIsStale = false
    tell({ setAside: aside.filter(({ settledAtMs }) => settledAtMs === null).map(told) })
  }

  /** A file that was lost since it was looked at is set aside: its view could not be made. */
  async function refreshCatalog(connection: DuckDBConnection, nowMs: number, at = reach): Promise<void> {
    if (!catalogIsStale) return
    try {
      await putCatalog(connection, nowMs, at)
    } catch (error) {
      const parts = isFullError(error) ? [] : await everyLivePart(connection)
      if ((await setAside.check(connection, parts, 'end', nowMs)) === 0) throw error
      await putCatalog(connection, nowMs, at)
    }
  }

  /** Writes one range, or finishes it: files of it that are there already are taken as they are. */
  async function writeRange(connection: DuckDBConnection, table: LakeTable, range: SeqRange, nowMs: number) {
    const parts: NewPart[] = []
    for (const { date, rows } of await rowsByDate(connection, table, range)) {
      const part = { table: table.name, date, ...range }
      const path = shelf.pathOf(part)
      // Only an unsettled table can have a file of this range already.
      const isThere = unsettled.has(table.name) && (await orphans.rowsOf(part)) === rows
      parts.push(
        isThere
          ? await measured(part, rows, path)
          : await writePart(connection, table, part, rows, { pathOf: shelf.pathOf, reach }),
      )
    }
    reach('flush:renamed-all')
    await list(connection, parts, nowMs)
    reach('flush:shown')
    return parts
  }

  async function list(connection: DuckDBConnection, parts: readonly NewPart[], nowMs: number): Promise<void> {
    if (parts.length > 0) {
      await listParts(connection, parts, nowMs)
      catalogIsStale = true
    }
    reach('flush:listed')
    await shelf.show(parts)
  }

  /** Files that no list names: of the next range they are adopted; what is left is removed where its rows are elsewhere. */
  async function settleOrphans(connection: DuckDBConnection, table: LakeTable, found: Part[], nowMs: number) {
    const isFirstEver = await isListEmpty(connection)
    const first = await nextSeq(connection, table.name)
    const cutOff = found.find((part) => part.first === first)
    const adopted = new Set<string>()
    if (cutOff !== undefined) {
      const range = { first, last: cutOff.last }
      for (const part of await writeRange(connection, table, range, nowMs)) adopted.add(partPath(part))
    }
    const left = found.filter((part) => !adopted.has(partPath(part)))
    const kept = await orphans.settle(connection, table, left, isFirstEver || isListLost)
    if (isFirstEver && kept.length > 0) log({ level: 'error', message: LIST_LOST, fields: {} })
    await list(connection, kept, nowMs)
  }

  /** @param isOpening then every file is looked at, though the table is settled. */
  async function settleTable(
    connection: DuckDBConnection,
    table: LakeTable,
    nowMs: number,
    isOpening: boolean,
  ): Promise<void> {
    unsettled.add(table.name)
    const held = await shelf.listing(table.name)
    const depth = isOpening ? 'end' : 'size'
    await setAside.check(connection, await liveParts(connection, table.name), depth, nowMs)
    const known = await knownPaths(connection, table.name)
    const unknown = held.parts.filter((part) => !known.has(partPath(part)))
    if (unknown.length > 0) await settleOrphans(connection, table, unknown, nowMs)
    const shown = await shelf.settle(table.name, await liveParts(connection, table.name))
    for (const path of new Set([...held.temporaries, ...shown.temporaries])) await removeFile(path)
    for (const path of new Set([...held.strangers, ...shown.strangers])) {
      log({ level: 'warn', message: 'a file in the lake is not the store’s; left alone', fields: { path } })
    }
    unsettled.delete(table.name)
  }

  async function flushTable(
    connection: DuckDBConnection,
    table: LakeTable,
    first: number,
    ackedSeq: number,
    nowMs: number,
  ) {
    const flushed: Flushed = { files: 0, rows: 0 }
    let range = await planRange(connection, table, first, ackedSeq)
    while (range !== null) {
      reach('flush:planned')
      unsettled.add(table.name)
      const parts = await writeRange(connection, table, range, nowMs)
      unsettled.delete(table.name)
      flushed.files += parts.length
      flushed.rows += parts.reduce((sum, part) => sum + part.rows, 0)
      range = await planRange(connection, table, range.last + 1, ackedSeq)
    }
    return flushed
  }

  async function flushOrSettle(
    connection: DuckDBConnection,
    table: LakeTable,
    known: { firsts: ReadonlyMap<string, number>; waiting: ReadonlyMap<string, number> },
    ackedSeq: number,
    nowMs: number,
  ): Promise<Flushed> {
    let first = known.firsts.get(table.name) ?? 1
    if (unsettled.has(table.name)) {
      await settleTable(connection, table, nowMs, false)
      first = await nextSeq(connection, table.name)
    } else if (known.waiting.get(table.name) === 0) return { files: 0, rows: 0 }
    return flushTable(connection, table, first, ackedSeq, nowMs)
  }

  async function flush(ackedSeq: number, nowMs: number): Promise<Flushed> {
    room.require()
    return database.maintenance.run(async (connection) => {
      const total: Flushed = { files: 0, rows: 0 }
      const firsts = await nextSeqs(connection)
      const known = { firsts, waiting: await waitingRows(connection, firsts, ackedSeq) }
      await eachTable(async (table) => {
        const { files, rows } = await flushOrSettle(connection, table, known, ackedSeq, nowMs)
        total.files += files
        total.rows += rows
      }).finally(() => refreshCatalog(connection, nowMs))
      return total
    })
  }

  async function settle(nowMs: number): Promise<void> {
    await database.maintenance.run(async (connection) => {
      isListLost = await isListEmpty(connection)
      await setAside.takeBack(connection, nowMs)
      await eachTable((table) => settleTable(connection, table, nowMs, true)).finally(async () => {
        await removeFile(`${join(lakeDir, CATALOG_FILE)}.tmp`)
        // At every opening: the folder may have been moved. Not a point where a test would cut the work off.
        await refreshCatalog(connection, nowMs, () => {})
      })
    })
  }

  /** Merges one group of files: written away from the store's lanes, exchanged on the list in one step. */
  async function mergeGroup(table: LakeTable, parts: readonly ListedPart[], nowMs: number): Promise<void> {
    reach('merge:planned')
    room.require(MERGE_ROOM * parts.reduce((sum, { bytes }) => sum + bytes, 0))
    const started = performance.now()
    const merged = await mergeParts(table, parts, {
      pathOf: shelf.pathOf,
      merger,
      spillDir: join(spillFolder(options.dataDir), 'merge'),
      reach,
    })
    await database.maintenance.run(async (connection) => {
      await exchangeParts(connection, parts, [merged], nowMs)
      catalogIsStale = true
      reach('merge:listed')
      await shelf.show([merged])
      await shelf.hide(parts)
      reach('merge:shown')
      await refreshCatalog(connection, nowMs)
    })
    const { rows, bytes, peakBytes } = merged
    const ms = Math.round(performance.now() - started)
    const fields = { table: table.name, files: parts.length, rows, bytes, ms, peakBytes }
    log({ level: 'info', message: 'files of the lake were merged', fields })
  }

  async function mergeTable(table: LakeTable, nowMs: number, quietMs: number): Promise<number> {
    const live = await database.maintenance.run((connection) => liveParts(connection, table.name))
    const aside = await database.maintenance.run(setAsideParts)
    const groups = planMerges(live, nowMs - quietMs, aside)
    for (const parts of groups) await mergeWhole(table, parts, nowMs)
    return groups.length
  }

  /** A damaged file among them is set aside; the others are merged with the next round. */
  async function mergeWhole(table: LakeTable, parts: readonly ListedPart[], nowMs: number): Promise<void> {
    try {
      await mergeGroup(table, parts, nowMs)
    } catch (error) {
      if (isFullError(error) || (await checkBeside(parts, 'content', nowMs)) === 0) throw error
    }
  }

  /** Looks at files while others use the list; what is faulty leaves the list and the catalog. */
  async function checkBeside(
    parts: readonly ListedPart[],
    depth: CheckDepth,
    nowMs: number,
  ): Promise<number> {
    const faulty = await findFaults(parts, shelf.pathOf, depth)
    if (faulty.length === 0) return 0
    return database.maintenance.run(async (connection) => {
      const removed = await setAside.remove(connection, faulty, nowMs)
      await refreshCatalog(connection, nowMs)
      return removed
    })
  }

  /** Removes files that were replaced before the grace: whoever began with them has ended. */
  async function removeReplaced(nowMs: number): Promise<number> {
    return database.maintenance.run(async (connection) => {
      const gone = await replacedParts(connection, nowMs - options.graceMs)
      await shelf.hide(gone)
      for (const part of gone) await removeFile(shelf.pathOf(part))
      for (const part of gone) await removeFile(join(lakeDir, SET_ASIDE_FOLDER, partPath(part)))
      reach('expire:removed')
      await forgetParts(connection, gone)
      reach('expire:forgotten')
      return gone.length
    })
  }

  /** Tells of what is wrong with the lake, when it is other than before. */
  function tell(change: Partial<LakeTrouble>): void {
    trouble = { ...trouble, ...change }
    options.onTrouble(trouble)
  }

  function holdDates(doubt: string | null): void {
    const held =
      doubt === null ? null : `no date leaves the lake for its age: ${doubt}; see mintlake lake retire`
    if (held !== null && trouble.retentionHeld === null) log({ level: 'warn', message: held, fields: {} })
    if (held !== trouble.retentionHeld) tell({ retentionHeld: held })
  }

  /**
   * Dates that are over their table's time leave the catalog and the folders; their files go after the grace. Where the
   * clock may be wrong they stay, unless the operator believes it. @returns files that left.
   */
  async function retireDates(now: Instant, isClockRight = false): Promise<number> {
    const nowMs = now.wallMs
    return database.maintenance.run(async (connection) => {
      if (isClockRight) await clock.believe(connection, now)
      const doubt = await clock.doubt(connection, now)
      const parts = await overdueParts(connection, options.retainDays, nowMs)
      holdDates(parts.length === 0 ? null : doubt)
      if (parts.length === 0 || doubt !== null) return 0
      await retireParts(connection, parts, nowMs)
      catalogIsStale = true
      reach('retain:listed')
      await shelf.hide(parts)
      reach('retain:hidden')
      await refreshCatalog(connection, nowMs)
      log({ level: 'info', message: 'old dates left the lake', fields: { files: parts.length } })
      return parts.length
    })
  }

  async function mergeAll(nowMs: number, quietMs: number): Promise<number> {
    let merged = 0
    await eachTable(async (table) => {
      // A merge may make its table ready for the next one.
      let groups = await mergeTable(table, nowMs, quietMs)
      for (; groups > 0; groups = await mergeTable(table, nowMs, quietMs)) merged += groups
    }).finally(merger.rest)
    return merged
  }

  async function tidyNow(now: Instant, quietMs: number) {
    const nowMs = now.wallMs
    await checkBeside(await database.maintenance.run(everyLivePart), 'size', nowMs)
    await retireDates(now)
    const [merging] = await Promise.allSettled([mergeAll(nowMs, quietMs)])
    // Though nothing could be merged: where a disk is full, this is what makes room.
    const removed = await removeReplaced(nowMs)
    if (merging.status === 'rejected') throw merging.reason
    return { merged: merging.value, removed }
  }

  /** One at a time: what one merges another must not. */
  const tidy = (now: Instant, quietMs: number) => tidies(() => tidyNow(now, quietMs))

  async function status(ackedSeq: number): Promise<LakeTableStatus[]> {
    return database.status.run(async (connection) => {
      const stored = await waitingRows(connection, await nextSeqs(connection), ackedSeq)
      const sizes = await query<{ name: string; files: number; rows: number; bytes: number; queued: number }>(
        connection,
        `SELECT name, sum(files)::DOUBLE AS files, sum(rows)::DOUBLE AS rows, sum(bytes)::DOUBLE AS bytes,
           sum(queued)::DOUBLE AS queued
         FROM (SELECT table_name AS name, 1 AS files, row_count AS rows, byte_count AS bytes, 0 AS queued
             FROM ${MANIFEST} WHERE ${IS_LIVE}
           UNION ALL SELECT table_name, 0, 0, 0, 1 FROM (${journalRows(WAITING)})) GROUP BY name`,
      )
      const byName = new Map(sizes.map((size) => [size.name, size]))
      return LAKE_TABLES.map(({ name }) => {
        const { files = 0, rows = 0, bytes = 0, queued = 0 } = byName.get(name) ?? {}
        return { table: name as TableName, files, rows, bytes, backlog: (stored.get(name) ?? 0) + queued }
      })
    })
  }

  async function repairNow(nowMs: number, settles: boolean): Promise<LakeRepair> {
    const checked = await database.maintenance.run(everyLivePart)
    await checkBeside(checked, 'content', nowMs)
    return database.maintenance.run(async (connection) => {
      const takenBack = (await setAside.takeBack(connection, nowMs)).map(partPath)
      const open = (await setAsideParts(connection)).filter(({ settledAtMs }) => settledAtMs === null)
      if (settles) await settleParts(connection, open, nowMs)
      catalogIsStale = true
      await refreshCatalog(connection, nowMs)
      return { filesChecked: checked.length, takenBack, lost: open.map(told) }
    })
  }

  return {
    pathOf: shelf.pathOf,
    files: setAside,
    settle,
    flush,
    tidy,
    status,
    repair: (nowMs, settles) => tidies(() => repairNow(nowMs, settles)),
    retire: (now) => tidies(() => retireDates(now, true)),
    close: merger.close,
  }
}
