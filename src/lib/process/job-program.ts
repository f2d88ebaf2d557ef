// A program that does jobs, each in a process that does no other meanwhile.

import type { ChildProcess } from 'node:child_process'
import { within } from '../wait.ts'
import { Job, type JobOptions } from './job.ts'
import { startProcess } from './start-process.ts'

export interface JobProgramOptions<Task> extends JobOptions<Task> {
  /** Path of the program, which calls `doJobs`. */
  program: string
  /** Jobs that run at once at most, while others wait; default: all. */
  atOnce?: number
  /** How long a process waits for another job, ms; default: it ends with its job. */
  idleMs?: number
}

export class JobProgram<Task, Result, Chunk = never> {
  readonly #options: JobProgramOptions<Task>
  readonly #running = new Set<Job<Task, Result, Chunk>>()
  readonly #waiting = new Set<Job<Task, Result, Chunk>>()
  /** Processes that wait for another job. */
  readonly #idle = new Map<ChildProcess, NodeJS.Timeout>()
  #isClosed = false

  constructor(options: JobProgramOptions<Task>) {
    this.#options = options
  }

  /** Jobs that have begun and not ended. */
  get running(): readonly Job<Task, Result, Chunk>[] {
    return [...this.#running]
  }

  /** How many jobs wait for their turn. */
  get waiting(): number {
    return this.#waiting.size
  }

  /** Starts a job, now or when its turn comes. What goes wrong is for the job to tell. */
  start(task: Task): Job<Task, Result, Chunk> {
    const job = new Job<Task, Result, Chunk>(task, this.#options)
    this.#waiting.add(job)
    void job.ended.then(() => {
      this.#waiting.delete(job)
      this.#running.delete(job)
      this.#beginNext()
    })
    if (this.#isClosed) job.refuse()
    else this.#beginNext()
    return job
  }

  /** Ends all jobs and processes at once. */
  async stop(): Promise<void> {
    const jobs = [...this.#waiting, ...this.#running]
    for (const job of jobs) job.stop()
    await Promise.all(jobs.map((job) => job.ended))
    await Promise.all([...this.#idle.keys()].map((process) => this.#end(process)))
  }

  /** Refuses further jobs and those that wait, and lets the others go on for `drainMs`. @param onCutOff told how many did not end */
  async close(drainMs = 0, onCutOff: (jobs: number) => void = () => {}): Promise<void> {
    this.#isClosed = true
    for (const job of this.#waiting) job.refuse()
    const ended = Promise.all(this.running.map((job) => job.ended))
    if (drainMs > 0 && !(await within(drainMs, ended))) onCutOff(this.#running.size)
    await this.stop()
  }

  #beginNext(): void {
    const { atOnce = Infinity } = this.#options
    for (const job of this.#waiting) {
      if (this.#running.size >= atOnce) return
      this.#waiting.delete(job)
      this.#running.add(job)
      job.begin({ take: () => this.#takeProcess(), keep: (process) => this.#keep(process) })
    }
  }

  #takeProcess(): ChildProcess {
    const [kept] = this.#idle.keys()
    if (kept !== undefined) {
      this.#forget(kept)
      return kept
    }
    const { program } = this.#options
    const started = startProcess(program, this.#options)
    // Without a listener, the failure of a process that has no job would end this one.
    started.on('error', () => {})
    return started.once('exit', () => this.#forget(started))
  }

  #keep(process: ChildProcess): boolean {
    const { idleMs } = this.#options
    if (idleMs === undefined) return false
    this.#idle.set(
      process,
      setTimeout(() => void this.#end(process), idleMs),
    )
    return true
  }

  /** It gets no further job. */
  #forget(process: ChildProcess): void {
    clearTimeout(this.#idle.get(process))
    this.#idle.delete(process)
  }

  async #end(process: ChildProcess): Promise<void> {
    this.#forget(process)
    const { promise, resolve } = Promise.withResolvers<void>()
    process.once('exit', () => resolve())
    process.kill('SIGKILL')
    await promise
  }
}
