// Work in a process of its own, of low priority: a task is sent to it, and it replies.

import { type ChildProcess, fork } from 'node:child_process'
import { assert } from '../assert.ts'
import { errorMessage } from '../error-text.ts'
import { unlessLate } from '../wait.ts'
import { sendToParent, workForParent } from './parent.ts'

export interface WorkerOptions {
  /** Path of the program, which calls `doTasks`. */
  program: string
  /** For errors, such as `the process of the checkpoint`. */
  name: string
  /** For each task. */
  timeoutMs: number
  heapMb: number
}

type Reply<Result> = { ok: true; result: Result } | { ok: false; message: string }

/** A process that does one task after another, until it is killed. */
export class WorkerProcess<Task extends object, Result> {
  readonly #options: WorkerOptions
  readonly #ended = Promise.withResolvers<void>()
  /** Why no task can be done any more; null: one can. */
  #fault: string | null = null
  #task: PromiseWithResolvers<Result> | null = null
  #child: ChildProcess | null = null

  constructor(options: WorkerOptions) {
    this.#options = options
    try {
      this.#child = fork(options.program, [], {
        execArgv: ['--no-warnings', '--v8-pool-size=1', `--max-old-space-size=${options.heapMb}`],
        stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      })
    } catch (error) {
      // Some failures to start a process are thrown, others arrive as an event.
      this.#end(`could not be started: ${errorMessage(error)}`)
      return
    }
    this.#child.on('message', (reply: Reply<Result>) => {
      if (reply.ok) this.#task?.resolve(reply.result)
      else this.#task?.reject(new Error(reply.message))
    })
    this.#child.on('error', (error) => {
      // A process that could not be started emits no exit.
      if (this.#child?.pid === undefined) this.#end(`could not be started: ${error.message}`)
      else this.#fail(`failed: ${error.message}`)
    })
    this.#child.on('exit', (code, signal) => this.#end(`ended with ${signal ?? code}`))
  }

  /** One at a time. Rejects where the process fails, ends before its reply, or takes too long; it has to be killed then. */
  async run(task: Task): Promise<Result> {
    assert(this.#task === null, 'one task at a time')
    const { name, timeoutMs } = this.#options
    if (this.#fault !== null) throw new Error(`${name} ${this.#fault}`)
    this.#task = Promise.withResolvers()
    this.#child?.send(task, (error) => error && this.#fail(`could not be asked: ${error.message}`))
    try {
      return await unlessLate(timeoutMs, this.#task.promise, () => {
        throw new Error(`${name} took more than ${timeoutMs} ms`)
      })
    } finally {
      this.#task = null
    }
  }

  /** Ends the process at once. */
  kill(): void {
    this.#child?.kill('SIGKILL')
  }

  /** Resolves when the process has ended. */
  async ended(): Promise<void> {
    await this.#ended.promise
  }

  #end(fault: string): void {
    this.#fault = fault
    this.#fail(fault)
    this.#ended.resolve()
  }

  #fail(reason: string): void {
    this.#task?.reject(new Error(`${this.#options.name} ${reason}`))
  }
}

/** One task in a process that ends with its reply. */
export class ChildJob<Task extends object, Result> {
  /** Rejects as `run` of the process. */
  readonly result: Promise<Result>
  readonly #process: WorkerProcess<Task, Result>

  constructor({ task, ...options }: WorkerOptions & { task: Task }) {
    this.#process = new WorkerProcess(options)
    this.result = this.#process.run(task).finally(() => this.kill())
    this.result.catch(() => {})
  }

  /** Ends the process at once. */
  kill(): void {
    this.#process.kill()
  }

  /** Resolves when the process has ended. */
  async ended(): Promise<void> {
    await this.#process.ended()
  }
}

/** The process's side: does the work of each task that is sent, and replies. */
export function doTasks<Task extends object, Result>(
  niceness: number,
  work: (task: Task) => Promise<Result>,
): void {
  workForParent(niceness)
  const reply = (message: Reply<Result>): void => sendToParent(message)
  process.on('message', async (task: Task) => {
    try {
      reply({ ok: true, result: await work(task) })
    } catch (error) {
      reply({ ok: false, message: errorMessage(error) })
    }
  })
}
