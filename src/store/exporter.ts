// In: requests for rows of the training set. Out: an export for each, in a thread; at most a few at once, each with a time
// limit and bounded memory. Never reads a row itself, never leaves a file behind.
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Worker } from 'node:worker_threads'
import { ServiceError } from '../schema/errors.ts'
import { Job, startThread } from './export-job.ts'
import {
  DISK_RESERVE_MB_DEFAULT,
  EXPORT_DRAIN_MS,
  EXPORT_IDLE_MS,
  EXPORT_MS_MAX,
  EXPORT_RETRY_AFTER_S,
  EXPORT_ROWS_MAX,
  EXPORTS_AT_ONCE,
} from './limits.ts'
import { exportFolder } from './paths.ts'
import { placeOf, type Selection } from './selection.ts'
import type { ExportDoor, ExportJob, ExportRequest, StoreLog } from './types.ts'

export interface Exporter extends ExportDoor {
  /** Exports under way. */
  readonly running: number
  /** What came from their threads and was not taken yet. */
  readonly held: { pieces: number; bytes: number }
  /** Takes no more; gives those under way a moment, then ends them. */
  close(): Promise<void>
}

export interface ExporterOptions {
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

/** Threads that have nothing to do, for the next export: to start one takes longer than a small export. */
class Threads {
  readonly #idle = new Map<Worker, NodeJS.Timeout>()

  take(): Worker {
    const [kept] = this.#idle
    if (kept === undefined) return this.#start()
    const [worker, timer] = kept
    clearTimeout(timer)
    this.#idle.delete(worker)
    worker.ref()
    return worker
  }

  #start(): Worker {
    const worker = startThread()
    worker.once('exit', () => {
      clearTimeout(this.#idle.get(worker))
      this.#idle.delete(worker)
    })
    return worker
  }

  give(worker: Worker): void {
    worker.unref()
    const timer = setTimeout(() => this.#end(worker), EXPORT_IDLE_MS)
    this.#idle.set(worker, timer.unref())
  }

  async close(): Promise<void> {
    await Promise.all([...this.#idle.keys()].map((worker) => this.#end(worker)))
  }

  async #end(worker: Worker): Promise<void> {
    await worker.terminate()
  }
}

function selectionOf({ fromMs, toMs, since }: ExportRequest): Selection {
  const after = since === null ? null : placeOf(since)
  if (since === null || after !== null) return { table: 'training', fromMs, toMs, after }
  const message = 'is neither X-Next-Since of an earlier answer nor a time in Unix milliseconds'
  throw new ServiceError('invalid_parameter', `since ${message}`, {
    errors: [{ pointer: '/since', code: 'invalid_parameter', message }],
  })
}

const busy = () =>
  new ServiceError(
    'store_unavailable',
    `All ${EXPORTS_AT_ONCE} exports are in use; try again later.`,
    { limit: EXPORTS_AT_ONCE, retryAfterMs: EXPORT_RETRY_AFTER_S * 1_000 },
    { 'Retry-After': `${EXPORT_RETRY_AFTER_S}` },
  )

/** Opens the door. The data folder is this server's alone: what a crash left of exports is removed. */
export function openExporter(options: ExporterOptions): Exporter {
  const {
    dataDir,
    log,
    diskReserveMb = DISK_RESERVE_MB_DEFAULT,
    msMax = EXPORT_MS_MAX,
    drainMs = EXPORT_DRAIN_MS,
  } = options
  const folder = exportFolder(dataDir)
  rmSync(folder, { recursive: true, force: true })
  const threads = new Threads()
  const jobs = new Set<Job>()
  let onLastDone: () => void = () => {}
  let count = 0
  let isClosed = false

  function forget(job: Job): void {
    jobs.delete(job)
    if (jobs.size === 0) onLastDone()
  }

  function begin(request: ExportRequest): ExportJob {
    if (isClosed)
      throw new ServiceError('draining', 'The server is shutting down.', {}, { 'Retry-After': '1' })
    const selection = selectionOf(request)
    if (jobs.size >= EXPORTS_AT_ONCE) throw busy()
    const { format, limit } = request
    const rowsMax = Math.min(limit, EXPORT_ROWS_MAX)
    const thread = threads.take()
    const work = { dataDir, folder: join(folder, `${count++}`), format, selection, rowsMax, diskReserveMb }
    const job: Job = new Job(thread, {
      work,
      msMax,
      log,
      onFree: () => threads.give(thread),
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
    await threads.close()
    rmSync(folder, { recursive: true, force: true })
  }

  return {
    begin,
    close,
    get running() {
      return jobs.size
    },
    get held() {
      const pieces = [...jobs].flatMap((job) => job.held)
      return { pieces: pieces.length, bytes: pieces.reduce((sum, { length }) => sum + length, 0) }
    },
  }
}
