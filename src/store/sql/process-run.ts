// One query and its process. The process is killed as soon as it has answered, takes too long, or nobody waits for it: nothing
// of it is needed afterwards, and its memory and its spilled data are free at once.

import { type ChildProcess, spawn } from 'node:child_process'
import { rm } from 'node:fs/promises'
import { errorMessage } from '../../lib/error-text.ts'
import { programPath } from '../../lib/process/program-path.ts'
import { StoreError, unavailable } from '../errors.ts'
import { type JobOptions, jobError } from '../lake-jobs.ts'
import { QUERY_HEAP_MB, QUERY_PROCESS_MB_MAX } from '../limits.ts'
import type { QueryAnswer } from '../types.ts'
import type { FromQuery, QueryTask } from './messages.ts'

const PROGRAM = programPath('./query-process', import.meta.url)
const KILOBYTES_PER_MB = 1_024
/** Holds the memory of a program to `$1` kB, where the system can. */
const WITHIN_MEMORY = 'ulimit -d "$1" 2>/dev/null; shift; exec "$@"'

/** Starts a process without the settings of the server, which hold keys. Two of libuv's threads are enough for DuckDB. */
function startProcess(): ChildProcess {
  const node = [process.execPath, '--no-warnings', `--max-old-space-size=${QUERY_HEAP_MB}`, PROGRAM]
  const limitKb = `${QUERY_PROCESS_MB_MAX * KILOBYTES_PER_MB}`
  return spawn('/bin/sh', ['-c', WITHIN_MEMORY, 'sh', limitKb, ...node], {
    env: {
      PATH: process.env.PATH,
      NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
      NODE_OPTIONS: process.env.NODE_OPTIONS,
      UV_THREADPOOL_SIZE: '2',
    },
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  })
}

export interface ProcessRunOptions extends JobOptions<QueryTask> {
  /** Called once the process has ended and its folder is removed. */
  onEnd(): void
}

export class ProcessRun {
  readonly answer: Promise<QueryAnswer>
  readonly #options: ProcessRunOptions
  #settle: { resolve(answer: QueryAnswer): void; reject(error: Error): void } | null = null
  #process: ChildProcess | null = null
  #timeout: NodeJS.Timeout | undefined

  constructor(options: ProcessRunOptions) {
    this.#options = options
    this.answer = new Promise((resolve, reject) => {
      this.#settle = { resolve, reject }
    })
    // A caller that no longer waits must not cause an unhandled rejection.
    this.answer.catch(() => {})
    try {
      const child = startProcess()
      this.#process = child
      child.once('message', (message: FromQuery) => this.#receive(message))
      child.once('exit', (code, signal) => this.#onExit(code, signal))
      child.once('error', (error) => this.#onError(error))
      child.send(options.task, () => {})
    } catch (error) {
      // Some failures to start a process are thrown, others arrive as an event.
      this.#fail(cannotStart(error))
      this.#release()
      return
    }
    this.#timeout = setTimeout(() => {
      const sentence = `the query took longer than ${options.msMax / 1_000} s: read fewer rows, for example of one mint or of a short time`
      this.#fail(new StoreError('query_too_costly', sentence))
    }, options.msMax)
  }

  stop(): void {
    this.#fail(unavailable('the query was canceled'))
  }

  #receive(message: FromQuery): void {
    if ('answer' in message) {
      const { buffer, byteOffset, byteLength } = message.answer.text
      this.#take()?.resolve({ ...message.answer, text: Buffer.from(buffer, byteOffset, byteLength) })
      return
    }
    this.#fail(jobError(message.failure, this.#options.service, 'a query failed'))
  }

  #fail(error: Error): void {
    this.#take()?.reject(error)
  }

  /** Whoever waits for the answer, once. The process is no longer needed then. */
  #take() {
    const settle = this.#settle
    this.#settle = null
    clearTimeout(this.#timeout)
    this.#process?.kill('SIGKILL')
    return settle
  }

  #onExit(code: number | null, signal: NodeJS.Signals | null): void {
    if (this.#settle !== null) {
      this.#options.service.log.warn({ code, signal }, 'the process of a query ended by itself')
      const sentence = 'the process of the query ended, most likely since it needed too much memory'
      this.#fail(new StoreError('query_too_costly', sentence))
    }
    this.#release()
  }

  /** A process that could not be started has no exit. */
  #onError(error: Error): void {
    this.#fail(cannotStart(error))
    if (this.#process?.pid === undefined) this.#release()
  }

  #release(): void {
    const { task, onEnd } = this.#options
    // What cannot be removed now is removed at the next start.
    rm(task.folder, { recursive: true, force: true }).then(onEnd, onEnd)
  }
}

const cannotStart = (error: unknown): StoreError =>
  unavailable(`the process of the query could not be started: ${errorMessage(error)}`)
