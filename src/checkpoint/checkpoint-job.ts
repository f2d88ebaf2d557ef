// Starts the process that makes a checkpoint and waits for its reply, its end, or the time limit.
import { type ChildProcess, fork } from 'node:child_process'
import { errorMessage } from '../lib/error-text.ts'
import { programPath } from '../lib/program-path.ts'
import { CHECKPOINT_HEAP_MB, CHECKPOINT_TIMEOUT_MS } from './limits.ts'
import type { CheckpointResult, CheckpointTask, FromCheckpointProcess } from './protocol.ts'

const PROGRAM = programPath('./checkpoint-process', import.meta.url)

export class CheckpointJob {
  /** Rejects where the process fails, ends before its reply, or takes too long. */
  readonly result: Promise<CheckpointResult>
  readonly #ended: Promise<void>
  #child: ChildProcess | null = null

  constructor(task: CheckpointTask) {
    const { promise, resolve, reject } = Promise.withResolvers<CheckpointResult>()
    const ended = Promise.withResolvers<void>()
    this.#ended = ended.promise
    const fail = (reason: string): void => reject(new Error(`the process of the checkpoint ${reason}`))
    const timer = setTimeout(() => fail(`took more than ${CHECKPOINT_TIMEOUT_MS} ms`), CHECKPOINT_TIMEOUT_MS)
    this.result = promise.finally(() => {
      clearTimeout(timer)
      this.kill()
    })
    this.result.catch(() => {})
    try {
      this.#child = fork(PROGRAM, [], {
        execArgv: ['--no-warnings', '--v8-pool-size=1', `--max-old-space-size=${CHECKPOINT_HEAP_MB}`],
        stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      })
    } catch (error) {
      // Some failures to start a process are thrown, others arrive as an event.
      fail(`could not be started: ${errorMessage(error)}`)
      ended.resolve()
      return
    }
    this.#child.on('message', (message: FromCheckpointProcess) => {
      if (message.ok) resolve(message)
      else reject(new Error(message.message))
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
