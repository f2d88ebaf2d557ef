// Housekeeping of the lake: merges small files into larger ones, expires dates, deletes replaced files after the readers' grace
// period, and repairs. One round runs at a time.

import type { DuckDBConnection } from '@duckdb/node-api'
import pLimit from 'p-limit'
import type { Instant } from '../../lib/clock.ts'
import { TABLES } from '../../schema/tables.ts'
import { requireSpace } from '../data-folder/disk-space.ts'
import { isFullError } from '../duckdb/database.ts'
import { LAKE_TABLES, type LakeTable } from '../duckdb/sql.ts'
import { acknowledgeLostEvents, countLostEvents } from '../events/event-position.ts'
import { listExpiredEvents } from '../events/event-retention.ts'
import { ClockGuard, knownTimeOf } from '../lake/clock-guard.ts'
import { forEachOf, type Lake, toSetAsideFile } from '../lake/lake.ts'
import { relativePath, removeFile } from '../lake/lake-files.ts'
import {
  acknowledgeLosses,
  deleteReplaced,
  groupByTable,
  type ListedFile,
  listLiveFiles,
  listQuarantinedFiles,
  listReplacedFiles,
  replaceFiles,
} from '../lake/manifest.ts'
import { findRepeating } from '../lake/repeated-bars.ts'
import { type Expiry, expireFiles, listExpiredFiles } from '../lake/retention.ts'
import { MERGE_DISK_FACTOR } from '../limits.ts'
import { settleMissingBars } from '../market-data/bar-account.ts'
import type { LakeProcessOptions } from '../process/protocol.ts'
import type { LakeRepair } from '../types.ts'
import { mergeFiles } from './merge-files.ts'
import { planMerges } from './merge-plan.ts'
import { Merger } from './merger.ts'

export type CompactorOptions = Pick<LakeProcessOptions, 'lakeGraceMs' | 'retain' | 'diskReserveMb'>

export class Compactor {
  readonly #lake: Lake
  readonly #options: CompactorOptions
  readonly #merger = new Merger()
  readonly #clock = new ClockGuard()
  /** One round at a time: two must not merge the same files. */
  readonly #rounds = pLimit(1)

  constructor(lake: Lake, options: CompactorOptions) {
    this.#lake = lake
    this.#options = options
  }

  /** Expires dates, merges small files, and deletes files replaced before the grace period. `quietMs`: see merge-plan.ts. */
  compact(now: Instant, quietMs: number): Promise<{ merged: number; removed: number }> {
    return this.#rounds(() => this.#compact(now, quietMs))
  }

  /**
   * Checks the content of every file, quarantines damaged ones and restores those that are whole again.
   * @param acknowledges records the remaining losses as acknowledged
   */
  repair(nowMs: number, acknowledges: boolean): Promise<Omit<LakeRepair, 'losses'>> {
    return this.#rounds(() => this.#repair(nowMs, acknowledges))
  }

  /** Expires dates although the clock may have jumped: an operator has confirmed it. @returns how many files expired */
  retire(now: Instant): Promise<number> {
    return this.#rounds(() => this.#expireDates(now, true))
  }

  /** Ends the running merge, and refuses further ones. */
  close(): Promise<void> {
    return this.#merger.close()
  }

  async #compact(now: Instant, quietMs: number): Promise<{ merged: number; removed: number }> {
    const [merging] = await Promise.allSettled([this.#expireAndMerge(now, quietMs)])
    // Even where that failed: on a full disk, deleting files is what frees space.
    const removed = await this.#deleteReplaced(now.wallMs)
    if (merging.status === 'rejected') throw merging.reason
    return { merged: merging.value, removed }
  }

  /** @returns how many merges were made */
  async #expireAndMerge(now: Instant, quietMs: number): Promise<number> {
    await this.#lake.checkFiles(await this.#lake.listLiveFiles(), 'size', now.wallMs)
    await this.#expireDates(now, false)
    // A recovery that a full disk has put off would remove a merged file that is not listed yet.
    await this.#lake.settle(now.wallMs)
    return this.#mergeAll(now.wallMs, quietMs)
  }

  async #mergeAll(nowMs: number, quietMs: number): Promise<number> {
    let merged = 0
    await forEachOf(LAKE_TABLES, async (table) => {
      // Merged files may be enough to merge again, into the next tier.
      let groups = await this.#mergeTable(table, nowMs, quietMs)
      for (; groups > 0; groups = await this.#mergeTable(table, nowMs, quietMs)) merged += groups
    }).finally(() => this.#merger.stop())
    return merged
  }

  async #mergeTable(table: LakeTable, nowMs: number, quietMs: number): Promise<number> {
    const { maintenance } = this.#lake.database
    const live = await maintenance.run((connection) => listLiveFiles(connection, table.name))
    const groups = planMerges(live, nowMs, quietMs, await maintenance.run(listQuarantinedFiles))
    for (const files of groups) await this.#mergeOrCheck(table, files, nowMs)
    return groups.length
  }

  /** Where a merge fails, damaged files are quarantined, and the others are merged in the next round. */
  async #mergeOrCheck(table: LakeTable, files: readonly ListedFile[], nowMs: number): Promise<void> {
    try {
      await this.#mergeGroup(table, files, nowMs)
    } catch (error) {
      if (isFullError(error) || (await this.#lake.checkFiles(files, 'content', nowMs)) === 0) throw error
    }
  }

  /** Merges one group of files: written in the merge process, then swapped on the manifest in one transaction. */
  async #mergeGroup(table: LakeTable, files: readonly ListedFile[], nowMs: number): Promise<void> {
    const { database, failpoint, lakeDir, log } = this.#lake
    failpoint('merge:planned')
    const bytesBefore = files.reduce((sum, { bytes }) => sum + bytes, 0)
    requireSpace(lakeDir, this.#options.diskReserveMb, MERGE_DISK_FACTOR * bytesBefore)
    const started = performance.now()
    const merged = await mergeFiles(this.#lake, this.#merger, table, files)
    await database.maintenance.run(async (connection) => {
      await replaceFiles(connection, files, [merged], nowMs)
      await this.#lake.followList(connection, 'merge', [merged], files, nowMs)
    })
    const { rows, bytes, peakBytes } = merged
    const ms = Math.round(performance.now() - started)
    const fields = { table: table.name, files: files.length, rows, bytes, ms, peakBytes }
    log({ level: 'info', message: 'files of the lake were merged', fields })
  }

  /** Deletes files that were replaced before the grace period. */
  #deleteReplaced(nowMs: number): Promise<number> {
    const { lakeGraceMs } = this.#options
    const { database, failpoint, links } = this.#lake
    return database.maintenance.run(async (connection) => {
      const expired = await listReplacedFiles(connection, nowMs - lakeGraceMs)
      await links.remove(expired)
      for (const file of expired) await removeFile(links.pathOf(file))
      for (const file of expired) await removeFile(links.setAsidePathOf(file))
      failpoint('expire:removed')
      await deleteReplaced(connection, expired)
      failpoint('expire:forgotten')
      return expired.length
    })
  }

  /**
   * Removes expired dates and events from the catalog and the folders; their files are deleted after the grace period. What is in
   * doubt does not leave for its age, unless an operator has given word. @returns how many files expired
   */
  #expireDates(now: Instant, isConfirmed: boolean): Promise<number> {
    const nowMs = now.wallMs
    const { database, log } = this.#lake
    return database.maintenance.run(async (connection) => {
      if (isConfirmed) await this.#clock.trust(knownTimeOf(connection), now)
      const expired = await this.#listExpired(connection, now)
      const held = isConfirmed ? [] : expired.filter(({ doubt }) => doubt !== null)
      this.#reportHold(held.flatMap(({ doubt }) => doubt ?? []))
      const files = expired.filter((each) => !held.includes(each)).flatMap((each) => each.files)
      const leaving = [...new Map(files.map((file) => [relativePath(file), file])).values()]
      if (leaving.length === 0) return 0
      await expireFiles(connection, leaving, nowMs)
      await this.#lake.followList(connection, 'retain', [], leaving, nowMs)
      for (const { table, files: ofTable } of groupByTable(leaving)) {
        if (ofTable.length === 0) continue
        const dates = ofTable.map(({ date }) => date).sort()
        const rows = ofTable.reduce((sum, file) => sum + file.rows, 0)
        const fields = { table: table.name, files: ofTable.length, rows, from: dates[0], to: dates.at(-1) }
        log({ level: 'info', message: 'old rows left the lake', fields })
      }
      return leaving.length
    })
  }

  /** What is over its time, or beyond its share of the disk. */
  async #listExpired(connection: DuckDBConnection, now: Instant): Promise<Expiry[]> {
    const { retain } = this.#options
    const clockDoubt = await this.#clock.check(knownTimeOf(connection), now)
    const { aged, evicted } = await listExpiredEvents(connection, retain, this.#lake.lakeDir, now.wallMs)
    const dated = [...(await listExpiredFiles(connection, retain, now.wallMs)), aged]
    return [
      { files: evicted, doubt: null },
      ...dated.map(({ files, doubt }) => ({ files, doubt: clockDoubt ?? doubt })),
    ].filter(({ files }) => files.length > 0)
  }

  #reportHold(doubts: readonly string[]): void {
    const reasons = [...new Set(doubts)].join('; ')
    const held =
      reasons === ''
        ? null
        : `no row leaves the lake for its age: ${reasons}; if they are to be deleted: mintlake lake retire`
    const { retentionHeld } = this.#lake.trouble
    if (held !== null && retentionHeld === null) this.#lake.log({ level: 'warn', message: held, fields: {} })
    if (held !== retentionHeld) this.#lake.publishTrouble({ retentionHeld: held })
  }

  async #repair(nowMs: number, acknowledges: boolean): Promise<Omit<LakeRepair, 'losses'>> {
    const lake = this.#lake
    const checked = await lake.listLiveFiles()
    await lake.checkFiles(checked, 'content', nowMs)
    await this.#rewriteRepeating(nowMs)
    return lake.database.maintenance.run(async (connection) => {
      const restored = (await lake.quarantine.restore(connection, nowMs)).map(relativePath)
      const open = (await listQuarantinedFiles(connection)).filter(
        ({ acknowledgedAtMs }) => acknowledgedAtMs === null,
      )
      const eventsLost = await countLostEvents(connection)
      if (acknowledges) {
        await acknowledgeLosses(connection, open, nowMs)
        await acknowledgeLostEvents(connection, nowMs)
        await settleMissingBars(connection)
        lake.publishTrouble({ eventsLost: 0 })
      }
      lake.markCatalogStale()
      await lake.refreshCatalog(connection, nowMs)
      return { filesChecked: checked.length, restored, lost: open.map(toSetAsideFile), eventsLost }
    })
  }

  /** Writes files of bars that repeat others anew. Flushes go on between one date and the next. */
  async #rewriteRepeating(nowMs: number): Promise<void> {
    const { database, pathOf, quarantine } = this.#lake
    const live = await database.maintenance.run((connection) => listLiveFiles(connection, TABLES.bars.name))
    for (const date of new Set(live.map((file) => file.date))) {
      await database.maintenance.run(async (connection) => {
        const files = (await listLiveFiles(connection, TABLES.bars.name)).filter((file) => file.date === date)
        if (files.length === 0) return
        await quarantine.rewriteRepeating(connection, await findRepeating(connection, files, pathOf), nowMs)
        await this.#lake.refreshCatalog(connection, nowMs)
      })
    }
  }
}
