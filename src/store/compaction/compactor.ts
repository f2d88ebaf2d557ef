// In: the lake's list of files. Out: fewer and larger files, dates that are over their time gone, files that were replaced
// removed after the readers' grace, losses settled. Never changes a row, and never does two of these at once.

import { join } from 'node:path'
import pLimit from 'p-limit'
import type { Instant } from '../../lib/clock.ts'
import { requireSpace } from '../data-folder/disk-space.ts'
import { isFullError } from '../duckdb/database.ts'
import type { LakeTable } from '../duckdb/sql.ts'
import { openClockGuard } from '../lake/clock-guard.ts'
import { eachTable, type Lake, toldOf } from '../lake/lake.ts'
import { partPath, removeFile } from '../lake/lake-files.ts'
import {
  exchangeParts,
  forgetParts,
  type ListedPart,
  liveParts,
  recoverParts,
  replacedParts,
  setAsideParts,
} from '../lake/manifest.ts'
import { overdueParts, type RetainedDays, retireParts } from '../lake/retention.ts'
import { SET_ASIDE_FOLDER } from '../lake/set-aside.ts'
import { MERGE_ROOM } from '../limits.ts'
import { spillFolder } from '../paths.ts'
import type { CrashPoint, LogLine } from '../process/protocol.ts'
import { noteStateRebuilt } from '../state/state-database.ts'
import type { LakeRepair } from '../types.ts'
import { planMerges } from './merge-plan.ts'
import { type Merger, openMerger } from './merger.ts'
import { mergeParts } from './merging.ts'

export interface CompactorOptions {
  dataDir: string
  /** How long a replaced file stays for readers who have begun, ms. */
  lakeGraceMs: number
  retainDays: RetainedDays
  /** Nothing is merged while less of the lake's disk is free, MB. */
  diskReserveMb: number
  failpoint(point: CrashPoint): void
  log(line: LogLine): void
}

export class Compactor {
  readonly #lake: Lake
  readonly #options: CompactorOptions
  readonly #merger: Merger = openMerger()
  readonly #clock = openClockGuard()
  /** What one merges another must not. */
  readonly #rounds = pLimit(1)

  constructor(lake: Lake, options: CompactorOptions) {
    this.#lake = lake
    this.#options = options
  }

  /** Merges small files; removes those that were replaced before the grace. `quietMs`: see merge-plan.ts. */
  compact(now: Instant, quietMs: number): Promise<{ merged: number; removed: number }> {
    return this.#rounds(() => this.#compact(now, quietMs))
  }

  /** Reads every file to its end, sets damaged ones aside, takes back those that are whole again, and `settles` the rest. */
  repair(nowMs: number, settles: boolean): Promise<LakeRepair> {
    return this.#rounds(() => this.#repair(nowMs, settles))
  }

  /** The operator says that the clock is right: dates that are over their time leave. @returns files that left. */
  retire(now: Instant): Promise<number> {
    return this.#rounds(() => this.#retireDates(now, true))
  }

  /** Ends what is being merged; merges are refused from here on. */
  close(): Promise<void> {
    return this.#merger.close()
  }

  async #compact(now: Instant, quietMs: number): Promise<{ merged: number; removed: number }> {
    const [merging] = await Promise.allSettled([this.#replace(now, quietMs)])
    // Though no date could leave and nothing be merged: where a disk is full, this is what makes room.
    const removed = await this.#removeReplaced(now.wallMs)
    if (merging.status === 'rejected') throw merging.reason
    return { merged: merging.value, removed }
  }

  /** Takes off the list what is damaged, over its time, or merged into others. @returns merges. */
  async #replace(now: Instant, quietMs: number): Promise<number> {
    await this.#lake.checkBeside(await this.#lake.allLive(), 'size', now.wallMs)
    await this.#retireDates(now, false)
    return this.#mergeAll(now.wallMs, quietMs)
  }

  async #mergeAll(nowMs: number, quietMs: number): Promise<number> {
    let merged = 0
    await eachTable(async (table) => {
      // A merge may make its table ready for the next one.
      let groups = await this.#mergeTable(table, nowMs, quietMs)
      for (; groups > 0; groups = await this.#mergeTable(table, nowMs, quietMs)) merged += groups
    }).finally(this.#merger.rest)
    return merged
  }

  async #mergeTable(table: LakeTable, nowMs: number, quietMs: number): Promise<number> {
    const { maintenance } = this.#lake.database
    const live = await maintenance.run((connection) => liveParts(connection, table.name))
    const groups = planMerges(live, nowMs - quietMs, await maintenance.run(setAsideParts))
    for (const parts of groups) await this.#mergeWhole(table, parts, nowMs)
    return groups.length
  }

  /** A damaged file among them is set aside; the others are merged with the next round. */
  async #mergeWhole(table: LakeTable, parts: readonly ListedPart[], nowMs: number): Promise<void> {
    try {
      await this.#mergeGroup(table, parts, nowMs)
    } catch (error) {
      if (isFullError(error) || (await this.#lake.checkBeside(parts, 'content', nowMs)) === 0) throw error
    }
  }

  /** Merges one group of files: written away from the database, exchanged on the list in one step. */
  async #mergeGroup(table: LakeTable, parts: readonly ListedPart[], nowMs: number): Promise<void> {
    const { dataDir, diskReserveMb, failpoint, log } = this.#options
    const { database, lakeDir, links } = this.#lake
    failpoint('merge:planned')
    requireSpace(lakeDir, diskReserveMb, MERGE_ROOM * parts.reduce((sum, { bytes }) => sum + bytes, 0))
    const started = performance.now()
    const merged = await mergeParts(table, parts, {
      ...{ pathOf: links.pathOf, merger: this.#merger, failpoint },
      spillDir: join(spillFolder(dataDir), 'merge'),
    })
    await database.maintenance.run(async (connection) => {
      await exchangeParts(connection, parts, [merged], nowMs)
      this.#lake.listChanged()
      failpoint('merge:listed')
      await this.#lake.followList(connection, [merged], parts)
      failpoint('merge:linked')
      await this.#lake.refreshCatalog(connection, nowMs)
    })
    const { rows, bytes, peakBytes } = merged
    const ms = Math.round(performance.now() - started)
    const fields = { table: table.name, files: parts.length, rows, bytes, ms, peakBytes }
    log({ level: 'info', message: 'files of the lake were merged', fields })
  }

  /** Removes files that were replaced before the grace: whoever began with them has ended. */
  #removeReplaced(nowMs: number): Promise<number> {
    const { lakeGraceMs, failpoint } = this.#options
    const { database, lakeDir, links } = this.#lake
    return database.maintenance.run(async (connection) => {
      const gone = await replacedParts(connection, nowMs - lakeGraceMs)
      await links.remove(gone)
      for (const part of gone) await removeFile(links.pathOf(part))
      for (const part of gone) await removeFile(join(lakeDir, SET_ASIDE_FOLDER, partPath(part)))
      failpoint('expire:removed')
      await forgetParts(connection, gone)
      failpoint('expire:forgotten')
      return gone.length
    })
  }

  /**
   * Dates that are over their table's time leave the catalog and the folders; their files go after the grace. Where the
   * clock may be wrong they stay, unless the operator believes it. @returns files that left.
   */
  #retireDates(now: Instant, isClockRight: boolean): Promise<number> {
    const nowMs = now.wallMs
    const { retainDays, failpoint, log } = this.#options
    const { database } = this.#lake
    return database.maintenance.run(async (connection) => {
      if (isClockRight) await this.#clock.believe(connection, now)
      const doubt = await this.#clock.doubt(connection, now)
      const parts = await overdueParts(connection, retainDays, nowMs)
      this.#holdDates(parts.length === 0 ? null : doubt)
      if (parts.length === 0 || doubt !== null) return 0
      await retireParts(connection, parts, nowMs)
      this.#lake.listChanged()
      failpoint('retain:listed')
      await this.#lake.followList(connection, [], parts)
      failpoint('retain:unlinked')
      await this.#lake.refreshCatalog(connection, nowMs)
      log({ level: 'info', message: 'old dates left the lake', fields: { files: parts.length } })
      return parts.length
    })
  }

  #holdDates(doubt: string | null): void {
    const held =
      doubt === null ? null : `no date leaves the lake for its age: ${doubt}; see mintlake lake retire`
    const { retentionHeld } = this.#lake.trouble
    if (held !== null && retentionHeld === null)
      this.#options.log({ level: 'warn', message: held, fields: {} })
    if (held !== retentionHeld) this.#lake.tell({ retentionHeld: held })
  }

  async #repair(nowMs: number, settles: boolean): Promise<LakeRepair> {
    const lake = this.#lake
    const checked = await lake.allLive()
    await lake.checkBeside(checked, 'content', nowMs)
    return lake.database.maintenance.run(async (connection) => {
      const takenBack = (await lake.files.takeBack(connection, nowMs)).map(partPath)
      const open = (await setAsideParts(connection)).filter(({ settledAtMs }) => settledAtMs === null)
      if (settles) {
        await recoverParts(connection, open, nowMs)
        await noteStateRebuilt(connection, null)
        lake.tell({ stateRebuiltAtMs: null })
      }
      lake.listChanged()
      await lake.refreshCatalog(connection, nowMs)
      return { filesChecked: checked.length, takenBack, lost: open.map(toldOf) }
    })
  }
}
