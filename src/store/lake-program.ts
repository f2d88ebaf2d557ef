// What exports and queries have in common: they are jobs on the lake for HTTP clients, each in a process and a folder of its own.
import { rmSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Job, JobError } from '../lib/process/job.ts'
import { JobProgram, type JobProgramOptions } from '../lib/process/job-program.ts'
import { StoreError, unavailable } from './errors.ts'
import type { LakeFailure, LakeTask } from './lake-task.ts'
import { DISK_RESERVE_MB_DEFAULT } from './limits.ts'
import type { StoreLog } from './types.ts'

export interface LakeJobsOptions {
  dataDir: string
  log: StoreLog
  /** Disk space that jobs leave to the store, MB. */
  diskReserveMb?: number
  /** Called when the lake could not be read: a file may be damaged. */
  onUnreadable?(): void
}

/** Other bounds than usual, for tests. */
export interface LakeJobBounds {
  /** How long one job may run, ms. */
  msMax?: number
  /** How long one may wait for a place, ms. */
  waitMsMax?: number
  /** How long running jobs may go on after `close`, ms. */
  drainMs?: number
}

/** What only exports or only queries have. */
export interface LakeProgramOptions
  extends Omit<JobProgramOptions<LakeTask>, 'name' | 'explain' | 'cleanUp'> {
  kind: 'export' | 'query'
  /** Of the jobs' folders. What a crash has left there is deleted. */
  folder: string
  drainMs: number
  /** The error of a job that waited or took too long, or whose process ended by itself. */
  beyond: Readonly<Record<'waited' | 'late' | 'ended', () => StoreError>>
}

export type LakeJob<Request, Result, Chunk = never> = Job<Request & LakeTask, Result, Chunk>

/** Jobs of one kind. They reject with StoreError. */
export class LakeProgram<Request extends object, Result, Chunk = never> {
  readonly jobs: JobProgram<Request & LakeTask, Result, Chunk>
  readonly #lake: LakeJobsOptions
  readonly #options: LakeProgramOptions
  /** Jobs so far: names their folders. */
  #count = 0

  constructor(lake: LakeJobsOptions, options: LakeProgramOptions) {
    this.#lake = lake
    this.#options = options
    this.jobs = new JobProgram({
      ...options,
      name: `the process of the ${options.kind}`,
      explain: (error) => toStoreError(error, options, lake),
      // What cannot be removed now is removed at the next start.
      cleanUp: ({ folder }) => rm(folder, { recursive: true, force: true }).catch(() => {}),
    })
    this.#removeFolder()
  }

  /** Starts a job with a folder of its own, or has it wait for its turn. */
  start(request: Request): LakeJob<Request, Result, Chunk> {
    const { dataDir, diskReserveMb = DISK_RESERVE_MB_DEFAULT } = this.#lake
    const folder = join(this.#options.folder, `${this.#count++}`)
    return this.jobs.start({ ...request, dataDir, diskReserveMb, folder })
  }

  /** Refuses further jobs and those that wait, lets the others go on for a while, then cancels them. */
  async close(): Promise<void> {
    const { drainMs, kind } = this.#options
    const { log } = this.#lake
    await this.jobs.close(drainMs, (jobs) => log.warn({ kind, jobs }, 'jobs on the lake are cut off'))
    this.#removeFolder()
  }

  #removeFolder(): void {
    rmSync(this.#options.folder, { recursive: true, force: true })
  }
}

function toStoreError(
  { fault, message, failure }: JobError,
  { beyond, kind }: LakeProgramOptions,
  { log, onUnreadable }: LakeJobsOptions,
): StoreError {
  if (fault === 'stopped') return unavailable(`the ${kind} was canceled`)
  if (fault === 'not started') return unavailable(message)
  if (fault === 'closing') return new StoreError('closing', 'The server is shutting down.')
  if (fault === 'ended')
    log.warn({ kind, error: message }, 'the process of a job on the lake ended by itself')
  if (fault !== 'failed') return beyond[fault]()
  const { code, field, detail } = failure as LakeFailure
  if (detail !== null) {
    log.warn({ kind, error: detail }, 'a job on the lake failed')
    onUnreadable?.()
  }
  return new StoreError(code, message, field === null ? {} : { field })
}
