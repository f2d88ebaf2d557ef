// In: durable rows of the store. Out: each of them in exactly one live Parquet file of the lake, and a list of those files.
// Never writes a file in place, never lists a file that is not whole, and never writes a range twice: a flush that was
// cut off anywhere is finished with the same range, so the files it had already published are adopted.
import { dirname, join } from 'node:path'
import type { DuckDBConnection } from '@duckdb/node-api'
import pLimit from 'p-limit'
import type { TableName } from '../schema/tables.ts'
import { CATALOG_FILE, writeCatalog } from './catalog.ts'
import { type Database, query } from './database.ts'
import { inRange, planRange, waitingRows } from './flush-range.ts'
import { journalRows, WAITING } from './journal.ts'
import {
  fileBytes,
  makeFolder,
  type Part,
  partPath,
  publish,
  removeFile,
  type SeqRange,
  syncFile,
  temporaryPath,
  wholeOrGone,
} from './lake-files.ts'
import { MERGE_ROOM } from './limits.ts'
import {
  exchangeParts,
  forgetParts,
  knownPaths,
  type ListedPart,
  listParts,
  liveParts,
  nextSeq,
  nextSeqs,
  replacedParts,
  setBytes,
} from './manifest.ts'
import { planMerges } from './merge-plan.ts'
import { openMerger } from './merger.ts'
import { mergeParts } from './merging.ts'
import type { CrashPoint, LogLine } from './messages.ts'
import { copyToParquet } from './parquet-sql.ts'
import { lakeFolder, spillFolder } from './paths.ts'
import { type RetainedDays, retireOverdue } from './retention.ts'
import { openRoom } from './room.ts'
import { openShelf } from './shelf.ts'
import {
  identifier,
  LAKE_TABLES,
  type LakeTable,
  lakeColumns,
  lakeOrder,
  literal,
  MANIFEST,
  relation,
} from './sql.ts'
import type { LakeTableStatus } from './types.ts'

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
  tidy(nowMs: number, quietMs: number): Promise<{ merged: number; removed: number }>
  status(ackedSeq: number): Promise<LakeTableStatus[]>
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
}

interface WrittenPart extends Part {
  rows: number
  bytes: number
}

const dateOf = (table: LakeTable): string => `CAST(${identifier(table.lakeDateColumn)} AS DATE)`

/** Rows by UTC date within a range. */
async function rowsByDate(connection: DuckDBConnection, table: LakeTable, range: SeqRange) {
  return query<{ date: string; rows: number }>(
    connection,
    `SELECT strftime(${dateOf(table)}, '%Y-%m-%d') AS date, count(*)::DOUBLE AS rows
     FROM ${relation(table)} WHERE ${inRange(range)} GROUP BY 1 ORDER BY 1`,
  )
}

async function copyPart(
  connection: DuckDBConnection,
  table: LakeTable,
  part: Part,
  path: string,
): Promise<void> {
  const rows = `SELECT ${lakeColumns(table)} FROM ${relation(table)}
    WHERE ${inRange(part)} AND ${dateOf(table)} = DATE '${part.date}' ORDER BY ${lakeOrder(table)}`
  await connection.run(copyToParquet(rows, temporaryPath(path)))
}

/** Rows of a published file; null when it is not there or is no whole Parquet file. */
async function rowsOfFile(connection: DuckDBConnection, path: string): Promise<number | null> {
  try {
    const sql = `SELECT sum(num_rows)::DOUBLE AS rows FROM parquet_file_metadata(${literal(path)})`
    return (await query<{ rows: number }>(connection, sql))[0].rows
  } catch {
    return null
  }
}

/** The lake below `dataDir`, fed from `database`. */
export async function openLake(database: Database, options: LakeOptions): Promise<Lake> {
  const lakeDir = lakeFolder(options.dataDir)
  const shelf = await openShelf(lakeDir)
  const room = openRoom(lakeDir, options.diskReserveMb)
  const { reach, log } = options
  const merger = openMerger()
  const tidies = pLimit(1)
  /** Tables whose last flush failed half-way: they are settled before the next one. */
  const unsettled = new Set<string>(LAKE_TABLES.map((table) => table.name))
  /** The catalog no longer says what the list says. */
  let catalogIsStale = true

  async function refreshCatalog(connection: DuckDBConnection, nowMs: number, at = reach): Promise<void> {
    if (!catalogIsStale) return
    const tables = []
    for (const table of LAKE_TABLES) tables.push({ table, parts: await liveParts(connection, table.name) })
    await writeCatalog(tables, nowMs, { lakeDir, pathOf: shelf.pathOf, reach: at })
    catalogIsStale = false
  }

  async function writePart(connection: DuckDBConnection, table: LakeTable, part: Part): Promise<void> {
    const path = shelf.pathOf(part)
    await makeFolder(dirname(path))
    await wholeOrGone(temporaryPath(path), () => copyPart(connection, table, part, path))
    reach('flush:copied')
    await syncFile(temporaryPath(path))
    reach('flush:synced')
    await publish(path)
    reach('flush:renamed-first')
  }

  /** Writes one range, or finishes it: files of it that are there already are taken as they are. */
  async function writeRange(connection: DuckDBConnection, table: LakeTable, range: SeqRange, nowMs: number) {
    const parts: WrittenPart[] = []
    for (const { date, rows } of await rowsByDate(connection, table, range)) {
      const part = { table: table.name, date, ...range }
      const path = shelf.pathOf(part)
      // Only an unsettled table can have a file of this range already.
      const present = unsettled.has(table.name) && (await rowsOfFile(connection, path)) === rows
      if (!present) await writePart(connection, table, part)
      parts.push({ ...part, rows, bytes: await fileBytes(path) })
    }
    reach('flush:renamed-all')
    if (parts.length > 0) {
      await listParts(connection, parts, nowMs)
      catalogIsStale = true
    }
    reach('flush:listed')
    await shelf.show(parts)
    reach('flush:shown')
    return parts
  }

  /** A listed file that is gone or broken is written again, where the store still has every row of it. */
  async function restoreListed(
    connection: DuckDBConnection,
    table: LakeTable,
    listed: readonly ListedPart[],
  ) {
    for (const part of listed) {
      const path = shelf.pathOf(part)
      if ((await fileBytes(path).catch(() => -1)) === part.bytes) continue
      const stored = (await rowsByDate(connection, table, part)).find(({ date }) => date === part.date)
      if (stored?.rows !== part.rows) {
        log({
          level: 'error',
          message: 'a lake file is lost, and the store no longer has its rows',
          fields: { path },
        })
        continue
      }
      log({ level: 'warn', message: 'a lake file is missing or damaged; writing it again', fields: { path } })
      await writePart(connection, table, part)
      await setBytes(connection, part, await fileBytes(path))
      catalogIsStale = true
    }
  }

  /** Files that no list names: of the next range they are adopted, anything else would show rows twice. */
  async function settleOrphans(
    connection: DuckDBConnection,
    table: LakeTable,
    orphans: Part[],
    nowMs: number,
  ) {
    const first = await nextSeq(connection, table.name)
    const cutOff = orphans.find((part) => part.first === first)
    const adopted = new Set<string>()
    if (cutOff !== undefined) {
      const range = { first, last: cutOff.last }
      for (const part of await writeRange(connection, table, range, nowMs)) adopted.add(partPath(part))
    }
    for (const part of orphans.filter((each) => !adopted.has(partPath(each)))) {
      log({
        level: 'warn',
        message: 'removing a lake file that no list names',
        fields: { path: partPath(part) },
      })
      await removeFile(shelf.pathOf(part))
    }
  }

  async function settleTable(connection: DuckDBConnection, table: LakeTable, nowMs: number): Promise<void> {
    unsettled.add(table.name)
    const held = await shelf.listing(table.name)
    const listed = await liveParts(connection, table.name)
    await restoreListed(connection, table, listed)
    const known = await knownPaths(connection, table.name)
    const orphans = held.parts.filter((part) => !known.has(partPath(part)))
    if (orphans.length > 0) await settleOrphans(connection, table, orphans, nowMs)
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

  async function flush(ackedSeq: number, nowMs: number): Promise<Flushed> {
    room.require()
    return database.maintenance.run(async (connection) => {
      const total: Flushed = { files: 0, rows: 0 }
      const firsts = await nextSeqs(connection)
      const waiting = await waitingRows(connection, firsts, ackedSeq)
      for (const table of LAKE_TABLES) {
        let first = firsts.get(table.name) ?? 1
        if (unsettled.has(table.name)) {
          await settleTable(connection, table, nowMs)
          first = await nextSeq(connection, table.name)
        } else if (waiting.get(table.name) === 0) continue
        const { files, rows } = await flushTable(connection, table, first, ackedSeq, nowMs)
        total.files += files
        total.rows += rows
      }
      await refreshCatalog(connection, nowMs)
      return total
    })
  }

  async function settle(nowMs: number): Promise<void> {
    await database.maintenance.run(async (connection) => {
      for (const table of LAKE_TABLES) await settleTable(connection, table, nowMs)
      await removeFile(`${join(lakeDir, CATALOG_FILE)}.tmp`)
      // At every opening: the folder may have been moved. Not a point where a test would cut the work off.
      await refreshCatalog(connection, nowMs, () => {})
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
    const groups = planMerges(live, nowMs - quietMs)
    for (const parts of groups) await mergeGroup(table, parts, nowMs)
    return groups.length
  }

  /** Removes files that were replaced before the grace: whoever began with them has ended. */
  async function removeReplaced(nowMs: number): Promise<number> {
    return database.maintenance.run(async (connection) => {
      const gone = await replacedParts(connection, nowMs - options.graceMs)
      await shelf.hide(gone)
      for (const part of gone) await removeFile(shelf.pathOf(part))
      reach('expire:removed')
      await forgetParts(connection, gone)
      reach('expire:forgotten')
      return gone.length
    })
  }

  /** Dates that are over their table's time leave the catalog and the folders; their files go after the grace. */
  async function retireDates(nowMs: number): Promise<void> {
    await database.maintenance.run(async (connection) => {
      const parts = await retireOverdue(connection, options.retainDays, nowMs)
      if (parts.length === 0) return
      catalogIsStale = true
      reach('retain:listed')
      await shelf.hide(parts)
      reach('retain:hidden')
      await refreshCatalog(connection, nowMs)
      log({ level: 'info', message: 'old dates left the lake', fields: { files: parts.length } })
    })
  }

  async function mergeAll(nowMs: number, quietMs: number): Promise<number> {
    let merged = 0
    const failures: unknown[] = []
    for (const table of LAKE_TABLES) {
      try {
        // A merge may make its table ready for the next one.
        let groups = await mergeTable(table, nowMs, quietMs)
        for (; groups > 0; groups = await mergeTable(table, nowMs, quietMs)) merged += groups
      } catch (error) {
        // A table that cannot be merged is no reason to let the others fall to pieces.
        failures.push(error)
      }
    }
    await merger.rest()
    if (failures.length > 0) throw failures[0]
    return merged
  }

  async function tidyNow(nowMs: number, quietMs: number) {
    await retireDates(nowMs)
    const [merging] = await Promise.allSettled([mergeAll(nowMs, quietMs)])
    // Though nothing could be merged: where a disk is full, this is what makes room.
    const removed = await removeReplaced(nowMs)
    if (merging.status === 'rejected') throw merging.reason
    return { merged: merging.value, removed }
  }

  /** One at a time: what one merges another must not. */
  const tidy = (nowMs: number, quietMs: number) => tidies(() => tidyNow(nowMs, quietMs))

  async function status(ackedSeq: number): Promise<LakeTableStatus[]> {
    return database.status.run(async (connection) => {
      const stored = await waitingRows(connection, await nextSeqs(connection), ackedSeq)
      const sizes = await query<{ name: string; files: number; rows: number; bytes: number; queued: number }>(
        connection,
        `SELECT name, sum(files)::DOUBLE AS files, sum(rows)::DOUBLE AS rows, sum(bytes)::DOUBLE AS bytes,
           sum(queued)::DOUBLE AS queued
         FROM (SELECT table_name AS name, 1 AS files, row_count AS rows, byte_count AS bytes, 0 AS queued
             FROM ${MANIFEST} WHERE replaced_at IS NULL
           UNION ALL SELECT table_name, 0, 0, 0, 1 FROM (${journalRows(WAITING)})) GROUP BY name`,
      )
      const byName = new Map(sizes.map((size) => [size.name, size]))
      return LAKE_TABLES.map(({ name }) => {
        const { files = 0, rows = 0, bytes = 0, queued = 0 } = byName.get(name) ?? {}
        return { table: name as TableName, files, rows, bytes, backlog: (stored.get(name) ?? 0) + queued }
      })
    })
  }

  return { pathOf: shelf.pathOf, settle, flush, tidy, status, close: merger.close }
}
