// In: requests for rows of the training set. Out: an export for each, in a process; at most a few at once, each with a time
// limit and bounded memory. Never reads a row itself, never leaves a file behind.
import type { ChildProcess } from 'node:child_process'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
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
import { Job, startProcess } from './export-job.ts'
import { cursorOf, type Selection } from './selection.ts'

export interface ExportService extends Exporter {
  /** Exports under way. */
  readonly running: number
  /** What came from their processes and was not taken yet. */
  readonly held: { chunks: number; bytes: number }
  /** Takes no more; gives those under way a moment, then ends them. */
  close(): Promise<void>
}

export interface ExportServiceOptions {
  dataDir: string
  log: StoreLog
  /** Space of the disk that exports leave to the store. */
  diskReserveMb?: number
  /** Called when the lake could not be read: a file of it may be damaged. */
  onUnreadable?(): void
  /** How long one export may take, ms. */
  msMax?: number
  /** How long exports under way may go on once the door closes, ms. */
  drainMs?: number
}

/** Processes that have nothing to do, for the next export: to start one takes longer than a small export. */
class Processes {
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

  #start(): ChildProcess {
    const child = startProcess()
    child.once('exit', () => {
      clearTimeout(this.#idle.get(child))
      this.#idle.delete(child)
    })
    return child
  }

  give(child: ChildProcess): void {
    child.unref()
    child.channel?.unref()
    const timer = setTimeout(() => this.#end(child), EXPORT_IDLE_MS)
    this.#idle.set(child, timer.unref())
  }

  async close(): Promise<void> {
    await Promise.all([...this.#idle.keys()].map((child) => this.#end(child)))
  }

  async #end(child: ChildProcess): Promise<void> {
    // At once: until it has ended it must not be taken for another export.
    clearTimeout(this.#idle.get(child))
    this.#idle.delete(child)
    const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
    child.ref()
    child.kill('SIGKILL')
    await ended
  }
}

function selectionOf({ fromMs, toMs, since }: ExportRequest): Selection {
  const after = since === null ? null : cursorOf(since)
  if (since === null || after !== null) return { table: 'training', fromMs, toMs, after }
  const sentence = 'since is neither X-Next-Since of an earlier answer nor a time in Unix milliseconds'
  throw new StoreError('invalid', sentence, { field: 'since' })
}

const busy = () =>
  unavailable(`All ${EXPORTS_AT_ONCE} exports are in use; try again later.`, {
    retryAfterMs: EXPORT_RETRY_AFTER_S * 1_000,
  })

/** Opens the exporter. The data folder is this server's alone: what a crash left of exports is removed. */
export function openExportService(options: ExportServiceOptions): ExportService {
  const {
    dataDir,
    log,
    diskReserveMb = DISK_RESERVE_MB_DEFAULT,
    msMax = EXPORT_MS_MAX,
    drainMs = EXPORT_DRAIN_MS,
  } = options
  const folder = exportFolder(dataDir)
  rmSync(folder, { recursive: true, force: true })
  const processes = new Processes()
  const jobs = new Set<Job>()
  let onLastDone: () => void = () => {}
  let count = 0
  let isClosed = false

  function forget(job: Job): void {
    jobs.delete(job)
    if (jobs.size === 0) onLastDone()
  }

  function begin(request: ExportRequest): ExportJob {
    if (isClosed) throw new StoreError('closing', 'The server is shutting down.')
    const selection = selectionOf(request)
    if (jobs.size >= EXPORTS_AT_ONCE) throw busy()
    const { format, limit } = request
    const rowsMax = Math.min(limit, EXPORT_ROWS_MAX)
    const process = processes.take()
    const work = { dataDir, folder: join(folder, `${count++}`), format, selection, rowsMax, diskReserveMb }
    const job: Job = new Job(process, {
      work,
      msMax,
      log,
      onFree: () => processes.give(process),
      onDone: () => forget(job),
      onUnreadable: () => options.onUnreadable?.(),
    })
    jobs.add(job)
    return job
  }

  async function close(): Promise<void> {
    isClosed = true
    const timer = setTimeout(() => {
      log.warn({ exports: jobs.size }, 'exports under way are cut off')
      for (const job of jobs) job.stop()
    }, drainMs)
    await new Promise<void>((resolve) => {
      onLastDone = resolve
      if (jobs.size === 0) resolve()
    })
    clearTimeout(timer)
    await processes.close()
    rmSync(folder, { recursive: true, force: true })
  }

  return {
    begin,
    close,
    get running() {
      return jobs.size
    },
    get held() {
      const chunks = [...jobs].flatMap((job) => job.held)
      return { chunks: chunks.length, bytes: chunks.reduce((sum, { length }) => sum + length, 0) }
    },
  }
}
