// Runs exports of the training set, each in a child process, with a time limit and bounded memory: at most EXPORTS_AT_ONCE.

import type { ChildProcess } from 'node:child_process'
import { StoreError, unavailable } from '../errors.ts'
import { type JobServiceOptions, RunningJobs } from '../lake-jobs.ts'
import {
  EXPORT_DRAIN_MS,
  EXPORT_IDLE_MS,
  EXPORT_MS_MAX,
  EXPORT_RETRY_AFTER_S,
  EXPORT_ROWS_MAX,
  EXPORTS_AT_ONCE,
} from '../limits.ts'
import { exportFolder } from '../paths.ts'
import type { Exporter, ExportJob, ExportRequest } from '../types.ts'
import { ProcessExportJob, startExportProcess } from './export-job.ts'
import { parseCursor, type Selection } from './selection.ts'

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
export const openExportService = (options: JobServiceOptions): ExportService => new ExportService(options)

export class ExportService implements Exporter {
  readonly #options: JobServiceOptions
  readonly #processes = new ProcessPool()
  readonly #jobs: RunningJobs<ProcessExportJob>

  constructor(options: JobServiceOptions) {
    this.#options = options
    this.#jobs = new RunningJobs(exportFolder(options.dataDir))
  }

  /** Number of running exports. */
  get running(): number {
    return this.#jobs.size
  }

  /** Chunks that came from the processes and were not taken yet. */
  get held(): { chunks: number; bytes: number } {
    const chunks = this.#jobs.all.flatMap((job) => job.held)
    return { chunks: chunks.length, bytes: chunks.reduce((sum, { length }) => sum + length, 0) }
  }

  begin(request: ExportRequest): ExportJob {
    this.#jobs.requireOpen()
    const selection = toSelection(request)
    if (this.#jobs.size >= EXPORTS_AT_ONCE) {
      const sentence = `All ${EXPORTS_AT_ONCE} exports are in use; try again later.`
      throw unavailable(sentence, { retryAfterMs: EXPORT_RETRY_AFTER_S * 1_000 })
    }
    const { format, limit } = request
    const rowsMax = Math.min(limit, EXPORT_ROWS_MAX)
    const process = this.#processes.take()
    const job: ProcessExportJob = new ProcessExportJob(process, {
      task: { ...this.#jobs.nextTask(this.#options), format, selection, rowsMax },
      msMax: this.#options.msMax ?? EXPORT_MS_MAX,
      service: this.#options,
      onFree: () => this.#processes.giveBack(process),
      onDone: () => this.#jobs.delete(job),
    })
    this.#jobs.add(job)
    return job
  }

  /** Refuses further exports, waits `drainMs` for the running ones, then cancels them. */
  async close(): Promise<void> {
    const { log, drainMs = EXPORT_DRAIN_MS } = this.#options
    await this.#jobs.close(drainMs, (exports) => log.warn({ exports }, 'exports under way are cut off'))
    await this.#processes.close()
    this.#jobs.removeFolder()
  }
}
