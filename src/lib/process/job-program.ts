// A program that does jobs, each in a process that does no other meanwhile.

import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { within } from '../wait.ts'
import { type FromWorker, Job, type JobOptions } from './job.ts'
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
  /** What each process works on. */
  readonly #jobs = new Map<ChildProcess, Job<Task, Result, Chunk>>()
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
    if (this.#isClosed) this.#refuse(job)
    else this.#beginNext()
    return job
  }

  /** Ends all jobs and processes at once. */
  async stop(): Promise<void> {
    const jobs = [...this.#waiting, ...this.#running]
    for (const job of jobs) job.stop()
    await Promise.all(jobs.map((job) => job.ended))
    await Promise.all([...this.#idle.keys()].map((child) => this.#end(child)))
  }

  /** Refuses further jobs and those that wait, and lets the others go on for `drainMs`. @param onCutOff told how many did not end */
  async close(drainMs = 0, onCutOff: (jobs: number) => void = () => {}): Promise<void> {
    this.#isClosed = true
    for (const job of this.#waiting) this.#refuse(job)
    const ended = Promise.all(this.running.map((job) => job.ended))
    if (drainMs > 0 && !(await within(drainMs, ended))) onCutOff(this.#running.size)
    await this.stop()
  }

  #refuse(job: Job<Task, Result, Chunk>): void {
    job.fail('closing', 'is not started: nothing is begun while closing')
  }

  #beginNext(): void {
    const { atOnce = Infinity } = this.#options
    for (const job of this.#waiting) {
      if (this.#running.size >= atOnce) return
      this.#waiting.delete(job)
      this.#running.add(job)
      job.begin(() => {
        const [child = this.#startProcess()] = this.#idle.keys()
        this.#forget(child)
        this.#jobs.set(child, job)
        return child
      })
    }
  }

  #startProcess(): ChildProcess {
    const child = startProcess(this.#options.program, this.#options)
    const leave = (how: string): void => {
      this.#forget(child)
      void this.#jobs.get(child)?.leave(how)
      this.#jobs.delete(child)
    }
    child.on('message', (message: FromWorker<Result, Chunk>) => {
      if (!this.#jobs.get(child)?.receive(message)) return
      if (this.#options.idleMs === undefined) child.kill('SIGKILL')
      else {
        leave('is free')
        const timer = setTimeout(() => void this.#end(child), this.#options.idleMs)
        this.#idle.set(child, timer)
      }
    })
    child.on('error', (error) => {
      // A process that could not be started emits no exit.
      if (child.pid !== undefined) return
      this.#jobs.get(child)?.fail('not started', `could not be started: ${error.message}`)
      leave('was not started')
    })
    child.on('exit', (code, signal) => leave(`ended with ${signal ?? code}`))
    return child
  }

  /** It waits no longer for a job. */
  #forget(child: ChildProcess): void {
    clearTimeout(this.#idle.get(child))
    this.#idle.delete(child)
  }

  async #end(child: ChildProcess): Promise<void> {
    this.#forget(child)
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
  }
}
