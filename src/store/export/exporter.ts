// Runs exports of the training set, each in a child process, with a time limit and bounded memory: at most EXPORTS_AT_ONCE.

import type { ChildProcess } from 'node:child_process'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { within } from '../../lib/wait.ts'
import { StoreError, unavailable } from '../errors.ts'
import {
  DISK_RESERVE_MB_DEFAULT,
  EXPORT_DRAIN_MS,
  EXPORT_IDLE_MS,
  EXPORT_MS_MAX,
  EXPORT_RETRY_AFTER_S,
  EXPORT_ROWS_MAX,
  EXPORTS_AT_ONCE,
} from '../limits.ts'
import { exportFolder } from '../paths.ts'
import type { Exporter, ExportJob, ExportRequest, StoreLog } from '../types.ts'
import { ProcessExportJob, startExportProcess } from './export-job.ts'
import { parseCursor, type Selection } from './selection.ts'

export interface ExportServiceOptions {
  dataDir: string
  log: StoreLog
  /** Disk space that exports leave to the store, MB. */
  diskReserveMb?: number
  /** Called when the lake could not be read: a file may be damaged. */
  onUnreadable?(): void
  /** How long one export may take, ms. */
  msMax?: number
  /** How long running exports may go on after `close`, ms. */
  drainMs?: number
}

/** Keeps idle processes for the next export: starting one takes longer than a small export. */
class ProcessPool {
  readonly #idle = new Map<ChildProcess, NodeJS.Timeout>()

  take(): ChildProcess {
    const [kept] = this.#idle
    if (kept === undefined) return this.#start()
    const [child, timer] = kept
    clearTimeout(timer)
    this.#idle.delete(child)
    child.ref()
    child.channel?.ref()
    return child
  }

  giveBack(child: ChildProcess): void {
    child.unref()
    child.channel?.unref()
    const timer = setTimeout(() => this.#end(child), EXPORT_IDLE_MS)
    this.#idle.set(child, timer.unref())
  }

  /** Ends the idle processes. */
  async close(): Promise<void> {
    await Promise.all([...this.#idle.keys()].map((child) => this.#end(child)))
  }

  #start(): ChildProcess {
    const child = startExportProcess()
    child.once('exit', () => {
      clearTimeout(this.#idle.get(child))
      this.#idle.delete(child)
    })
    return child
  }

  async #end(child: ChildProcess): Promise<void> {
    // Removed first, so that it is not taken for another export while it ends.
    clearTimeout(this.#idle.get(child))
    this.#idle.delete(child)
    const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
    child.ref()
    child.kill('SIGKILL')
    await ended
  }
}

function toSelection({ fromMs, toMs, since }: ExportRequest): Selection {
  const after = since === null ? null : parseCursor(since)
  if (since === null || after !== null) return { table: 'training', fromMs, toMs, after }
  const sentence = 'since is neither X-Next-Since of an earlier answer nor a time in Unix milliseconds'
  throw new StoreError('invalid', sentence, { field: 'since' })
}

/** Opens the exporter of a data folder, and deletes what a crash left of earlier exports. */
export function openExportService(options: ExportServiceOptions): ExportService {
  rmSync(exportFolder(options.dataDir), { recursive: true, force: true })
  return new ExportService(options)
}

export class ExportService implements Exporter {
  readonly #options: ExportServiceOptions
  readonly #folder: string
  readonly #processes = new ProcessPool()
  readonly #jobs = new Set<ProcessExportJob>()
  #onLastDone: () => void = () => {}
  /** Exports begun so far: names their folders. */
  #count = 0
  #isClosed = false

  constructor(options: ExportServiceOptions) {
    this.#options = options
    this.#folder = exportFolder(options.dataDir)
  }

  /** Number of running exports. */
  get running(): number {
    return this.#jobs.size
  }

  /** Chunks that came from the processes and were not taken yet. */
  get held(): { chunks: number; bytes: number } {
    const chunks = [...this.#jobs].flatMap((job) => job.held)
    return { chunks: chunks.length, bytes: chunks.reduce((sum, { length }) => sum + length, 0) }
  }

  begin(request: ExportRequest): ExportJob {
    if (this.#isClosed) throw new StoreError('closing', 'The server is shutting down.')
    const selection = toSelection(request)
    if (this.#jobs.size >= EXPORTS_AT_ONCE) {
      const sentence = `All ${EXPORTS_AT_ONCE} exports are in use; try again later.`
      throw unavailable(sentence, { retryAfterMs: EXPORT_RETRY_AFTER_S * 1_000 })
    }
    const { dataDir, log, diskReserveMb = DISK_RESERVE_MB_DEFAULT, msMax = EXPORT_MS_MAX } = this.#options
    const { format, limit } = request
    const rowsMax = Math.min(limit, EXPORT_ROWS_MAX)
    const folder = join(this.#folder, `${this.#count++}`)
    const process = this.#processes.take()
    const job: ProcessExportJob = new ProcessExportJob(process, {
      task: { dataDir, folder, format, selection, rowsMax, diskReserveMb },
      msMax,
      log,
      onFree: () => this.#processes.giveBack(process),
      onDone: () => this.#forget(job),
      onUnreadable: () => this.#options.onUnreadable?.(),
    })
    this.#jobs.add(job)
    return job
  }

  /** Refuses further exports, waits `drainMs` for the running ones, then cancels them. */
  async close(): Promise<void> {
    this.#isClosed = true
    const { log, drainMs = EXPORT_DRAIN_MS } = this.#options
    const { promise: lastDone, resolve } = Promise.withResolvers<void>()
    this.#onLastDone = resolve
    if (this.#jobs.size === 0) resolve()
    if (!(await within(drainMs, lastDone))) {
      log.warn({ exports: this.#jobs.size }, 'exports under way are cut off')
      for (const job of this.#jobs) job.stop()
      await lastDone
    }
    await this.#processes.close()
    rmSync(this.#folder, { recursive: true, force: true })
  }

  #forget(job: ProcessExportJob): void {
    this.#jobs.delete(job)
    if (this.#jobs.size === 0) this.#onLastDone()
  }
}
