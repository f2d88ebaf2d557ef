// The status of the store for `/health`: figures, and a sentence for each thing that is wrong.

import { statSync } from 'node:fs'
import type { TableName } from '../schema/tables.ts'
import type { DiskSpace } from './data-folder/disk-space.ts'
import type { FlushScheduler } from './flush-scheduler.ts'
import { SET_ASIDE_TOLD_MAX, STATUS_TIMEOUT_MS, UNFLUSHED_BYTES_MAX } from './limits.ts'
import { stateLogPath, statePath } from './paths.ts'
import type { EventFlushes } from './recorded-events.ts'
import type { StoreParts } from './store-parts.ts'
import type { LakeLosses, LakeTableStatus, StoreFigures, StoreStatus } from './types.ts'

/** Commits are refused while the lake is too far behind, or while the disk lacks the space to flush them. */
export const mayCommit = (unflushedBytes: number, space: DiskSpace): boolean =>
  unflushedBytes < UNFLUSHED_BYTES_MAX && space.mayWrite(unflushedBytes)

export class StatusReporter {
  readonly #parts: StoreParts
  readonly #flushes: Pick<FlushScheduler, 'barAudit' | 'damage' | 'lagMs'>
  readonly #events: Pick<EventFlushes, 'waiting'>
  /** As last reported by the lake process. */
  #lake: LakeTableStatus[] = []

  constructor(parts: StoreParts, flushes: FlushScheduler, events: EventFlushes) {
    this.#parts = parts
    this.#flushes = flushes
    this.#events = events
  }

  async report(isClosing: boolean): Promise<Omit<StoreStatus, 'folderId'>> {
    await this.#refreshLake()
    const { client, commits, faults } = this.#parts
    const { isWritable, lake, log, lakeProcess, freeBytes, databaseBytes, setAside } = this.figures(isClosing)
    const { unflushedCommits, unflushedBytes, damage } = log
    return {
      healthy: isWritable && client.isRunning && faults.current.length === 0,
      isWritable,
      reasons: this.#reasons(),
      lake,
      log: { state: commits.status().state, unflushedCommits, unflushedBytes, damage },
      lakeProcess,
      freeBytes,
      databaseBytes,
      setAside,
    }
  }

  figures(isClosing: boolean): StoreFigures {
    const { client, commits, dataDir, losses, space } = this.#parts
    const { barAudit, damage, lagMs } = this.#flushes
    const { state, slowestGroupMs, totals, unflushedBytes, unflushedCommits } = commits.status()
    return {
      isWritable: !isClosing && state === 'ready' && mayCommit(unflushedBytes, space),
      lake: this.#lake.map((each) => ({ ...each, backlog: each.backlog + this.#backlogOf(each.table) })),
      lakeLagMs: lagMs,
      lakeProcess: { isRunning: client.isRunning, starts: client.starts },
      barsMissing: barAudit.missing,
      log: {
        unflushedCommits,
        unflushedBytes,
        damage: damage.length,
        slowestGroupMs,
        ...totals,
      },
      freeBytes: space.freeBytes,
      databaseBytes: fileBytes(statePath(dataDir)) + fileBytes(stateLogPath(dataDir)),
      setAside: this.#lakeLosses(),
      losses: losses.count,
    }
  }

  /** Rows that no process has but the server. Recorded events count as trades, which nearly all of them are. */
  #backlogOf(table: TableName): number {
    return table === 'trades' ? this.#events.waiting : this.#parts.unflushed.count(table)
  }

  #lakeLosses(): LakeLosses {
    const { setAside } = this.#parts.client.trouble
    const rowsLost = setAside.reduce((sum, file) => sum + file.rowsLost, 0)
    return { files: setAside.length, rowsLost, first: setAside.slice(0, SET_ASIDE_TOLD_MAX) }
  }

  async #refreshLake(): Promise<void> {
    try {
      this.#lake = await this.#parts.client.ask('status', {}, STATUS_TIMEOUT_MS)
    } catch {
      // The status matters most while the lake process fails: the last figures are kept, and `reasons` tells the rest.
    }
  }

  #reasons(): string[] {
    const { client, faults, losses } = this.#parts
    const reasons = this.#reasonsNotWritable()
    if (!client.isRunning) reasons.push(`the lake process does not run: ${client.lastFailure}`)
    const { eventsLost, retentionHeld, setAside } = client.trouble
    reasons.push(...faults.current, ...this.#flushes.barAudit.reasons)
    if (retentionHeld !== null) reasons.push(retentionHeld)
    reasons.push(...losses.sentences)
    if (setAside.length > 0)
      reasons.push(`files of the lake that are lost or damaged: ${setAside.length}; see mintlake lake repair`)
    if (eventsLost > 0) reasons.push(`recorded events that are lost: ${eventsLost}; see mintlake lake repair`)
    return reasons
  }

  #reasonsNotWritable(): string[] {
    const { commits, space } = this.#parts
    const { state, unflushedBytes } = commits.status()
    const reasons: string[] = []
    if (state === 'hanging') reasons.push('the disk does not answer')
    if (state === 'recovering') reasons.push('a write to the log failed; a new segment is being started')
    if (unflushedBytes >= UNFLUSHED_BYTES_MAX)
      reasons.push('the log is full: the lake could not be written for a long time')
    if (space.unlocked !== null) reasons.push(`commits and market events are refused: ${space.unlocked}`)
    else if (!space.mayWrite(unflushedBytes))
      reasons.push('the disk is nearly full: commits are refused until there is room')
    return reasons
  }
}

const fileBytes = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0
