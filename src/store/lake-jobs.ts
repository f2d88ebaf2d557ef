// What exports and queries have in common: they are jobs on the lake for HTTP clients, each in a child process and a folder of its own.
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { within } from '../lib/wait.ts'
import { StoreError, type StoreErrorCode } from './errors.ts'
import { DISK_RESERVE_MB_DEFAULT } from './limits.ts'
import type { StoreLog } from './types.ts'

export interface JobServiceOptions {
  dataDir: string
  log: StoreLog
  /** Disk space that jobs leave to the store, MB. */
  diskReserveMb?: number
  /** Called when the lake could not be read: a file may be damaged. */
  onUnreadable?(): void
  /** How long one job may run, ms. */
  msMax?: number
  /** How long running jobs may go on after `close`, ms. */
  drainMs?: number
}

/** A job, as its process receives it. */
export interface JobTask {
  dataDir: string
  /** A folder that only this job uses. The server removes it. */
  folder: string
  /** Disk space that the job leaves to the store, MB. */
  diskReserveMb: number
}

/** Why a job failed. */
export interface JobFailure {
  code: StoreErrorCode
  message: string
  /** The invalid request field; see StoreError. */
  field?: string
  /** For the log: the lake could not be read. */
  detail?: string
}

export interface JobOptions<Task extends JobTask> {
  task: Task
  msMax: number
  service: JobServiceOptions
}

/** The error of a failure. One of the lake goes to the log and to the service. */
export function jobError(
  { code, message, field, detail }: JobFailure,
  { log, onUnreadable }: JobServiceOptions,
  sentence: string,
): StoreError {
  if (detail !== undefined) {
    log.warn({ error: detail }, sentence)
    onUnreadable?.()
  }
  return new StoreError(code, message, field === undefined ? {} : { field })
}

/** The running jobs of one kind. */
export class RunningJobs<Job extends { stop(): void }> {
  readonly #folder: string
  readonly #jobs = new Set<Job>()
  #onLastDone: () => void = () => {}
  /** Jobs begun so far: names their folders. */
  #count = 0
  #isClosed = false

  /** @param folder of their folders; what a crash left there is deleted */
  constructor(folder: string) {
    this.#folder = folder
    this.removeFolder()
  }

  get all(): readonly Job[] {
    return [...this.#jobs]
  }

  get size(): number {
    return this.#jobs.size
  }

  /** @throws StoreError `closing` */
  requireOpen(): void {
    if (this.#isClosed) throw closing()
  }

  /** What the next job is told of the lake. */
  nextTask({ dataDir, diskReserveMb = DISK_RESERVE_MB_DEFAULT }: JobServiceOptions): JobTask {
    return { dataDir, folder: join(this.#folder, `${this.#count++}`), diskReserveMb }
  }

  add(job: Job): void {
    this.#jobs.add(job)
  }

  /** @returns whether it was running */
  delete(job: Job): boolean {
    const wasRunning = this.#jobs.delete(job)
    if (this.#jobs.size === 0) this.#onLastDone()
    return wasRunning
  }

  /** Refuses further jobs, and waits `drainMs` for the running ones; then they are canceled. @param onCutOff told how many that are */
  async close(drainMs: number, onCutOff?: (count: number) => void): Promise<void> {
    this.#isClosed = true
    const { promise: lastDone, resolve } = Promise.withResolvers<void>()
    this.#onLastDone = resolve
    if (this.#jobs.size === 0 || (await within(drainMs, lastDone))) return
    onCutOff?.(this.#jobs.size)
    for (const job of this.#jobs) job.stop()
    await lastDone
  }

  removeFolder(): void {
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

export const closing = (): StoreError => new StoreError('closing', 'The server is shutting down.')
