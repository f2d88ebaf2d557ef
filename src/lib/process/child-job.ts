// One piece of work in a process of its own, of low priority: started with a task, and ended with its reply.
import { type ChildProcess, fork } from 'node:child_process'
import { errorMessage } from '../error-text.ts'
import { sendToParent, workForParent } from './parent.ts'

export interface ChildJobOptions<Task extends object> {
  /** Path of the program, which calls `doJob`. */
  program: string
  task: Task
  /** For errors, such as `the process of the checkpoint`. */
  name: string
  timeoutMs: number
  heapMb: number
}

type Reply<Result> = { ok: true; result: Result } | { ok: false; message: string }

export class ChildJob<Task extends object, Result> {
  /** Rejects where the process fails, ends before its reply, or takes too long. */
  readonly result: Promise<Result>
  readonly #ended: Promise<void>
  #child: ChildProcess | null = null

  constructor({ program, task, name, timeoutMs, heapMb }: ChildJobOptions<Task>) {
    const { promise, resolve, reject } = Promise.withResolvers<Result>()
    const ended = Promise.withResolvers<void>()
    this.#ended = ended.promise
    const fail = (reason: string): void => reject(new Error(`${name} ${reason}`))
    const timer = setTimeout(() => fail(`took more than ${timeoutMs} ms`), timeoutMs)
    this.result = promise.finally(() => {
      clearTimeout(timer)
      this.kill()
    })
    this.result.catch(() => {})
    try {
      this.#child = fork(program, [], {
        execArgv: ['--no-warnings', '--v8-pool-size=1', `--max-old-space-size=${heapMb}`],
        stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      })
    } catch (error) {
      // Some failures to start a process are thrown, others arrive as an event.
      fail(`could not be started: ${errorMessage(error)}`)
      ended.resolve()
      return
    }
    this.#child.on('message', (reply: Reply<Result>) => {
      if (reply.ok) resolve(reply.result)
      else reject(new Error(reply.message))
    })
    this.#child.on('error', (error) => {
      fail(`could not be started: ${error.message}`)
      ended.resolve()
    })
    this.#child.on('exit', (code, signal) => {
      fail(`ended with ${signal ?? code}`)
      ended.resolve()
    })
    this.#child.send(task, (error) => error && fail(`could not be asked: ${error.message}`))
  }

  /** Ends the process at once. */
  kill(): void {
    this.#child?.kill('SIGKILL')
  }

  /** Resolves when the process has ended. */
  async ended(): Promise<void> {
    await this.#ended
  }
}

/** The process's side: does the work of the one task that is sent, and replies. */
export function doJob<Task extends object, Result>(
  niceness: number,
  work: (task: Task) => Promise<Result>,
): void {
  workForParent(niceness)
  const reply = (message: Reply<Result>): void => sendToParent(message)
  process.once('message', async (task: Task) => {
    try {
      reply({ ok: true, result: await work(task) })
    } catch (error) {
      reply({ ok: false, message: errorMessage(error) })
    }
  })
}
