// Starts the merge process when it is needed, and sends it one copy at a time. Every call ends: a process that dies or takes
// too long is an error.
import { type ChildProcess, fork } from 'node:child_process'
import { assert } from '../../lib/assert.ts'
import { errorMessage } from '../../lib/error-text.ts'
import { programPath } from '../../lib/process/program-path.ts'
import { unavailable } from '../errors.ts'
import type { ReadableFile } from '../lake/parquet-sql.ts'
import { MERGE_HEAP_MB, MERGE_TIMEOUT_MS } from '../limits.ts'

export interface MergeRequest {
  table: string
  /** `sha256`: the recorded hash; null or absent where there is none. */
  files: readonly (ReadableFile & { sha256?: string | null })[]
  /** Rows of all files together. */
  rows: number
  target: string
  spillDir: string
}

export type MergeResponse = ({ ok: true } & CopyResult) | { ok: false; message: string }

export interface CopyResult {
  rows: number
  /** Of the target’s content. */
  sha256: string
  /** The most memory that the process has used so far. */
  peakBytes: number
}

const PROGRAM = programPath('./merge-process', import.meta.url)

function startMergeProcess(): ChildProcess {
  try {
    return fork(PROGRAM, [], {
      execArgv: ['--no-warnings', `--max-old-space-size=${MERGE_HEAP_MB}`],
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    })
  } catch (error) {
    // Some failures to start a process are thrown, others arrive as an event.
    throw unavailable(`the process that merges files could not be started: ${errorMessage(error)}`)
  }
}

/** Sends a request to a merge process and waits for its reply, its end, or the time limit. */
function sendRequest(child: ChildProcess, request: MergeRequest): Promise<MergeResponse> {
  const { promise, resolve, reject } = Promise.withResolvers<MergeResponse>()
  const fail = (reason: string): void => reject(unavailable(`merging files of ${request.table} ${reason}`))
  const onExit = (code: number | null, signal: string | null): void =>
    fail(`was cut off: its process ended with ${signal ?? code}`)
  const onError = (error: Error): void => fail(`could not be started: ${error.message}`)
  const timer = setTimeout(() => fail(`took more than ${MERGE_TIMEOUT_MS} ms`), MERGE_TIMEOUT_MS)
  child.on('exit', onExit).on('error', onError).on('message', resolve)
  child.send(request, (error) => error && onError(error))
  return promise.finally(() => {
    clearTimeout(timer)
    child.off('exit', onExit).off('error', onError).off('message', resolve)
  })
}

export class Merger {
  #child: ChildProcess | null = null
  #isBusy = false
  #isClosed = false

  /** Writes a sorted copy. Rejects with `unavailable`, and then ends the process. */
  async copy(request: MergeRequest): Promise<CopyResult> {
    if (this.#isClosed) throw unavailable('the store is closing')
    assert(!this.#isBusy, 'one copy is made at a time')
    this.#isBusy = true
    try {
      this.#child ??= startMergeProcess()
      const response = await sendRequest(this.#child, request)
      if (!response.ok) throw unavailable(response.message)
      return response
    } catch (error) {
      await this.stopProcess()
      throw error
    } finally {
      this.#isBusy = false
    }
  }

  /** Ends the process, which frees its memory, even in the middle of a copy. The next copy starts another. */
  async stopProcess(): Promise<void> {
    const ending = this.#child
    this.#child = null
    if (ending === null || ending.exitCode !== null || ending.signalCode !== null) return
    const ended = new Promise<void>((resolve) => ending.once('exit', () => resolve()))
    ending.kill('SIGKILL')
    await ended
  }

  /** Ends the process for good; further copies are refused. */
  async close(): Promise<void> {
    this.#isClosed = true
    await this.stopProcess()
  }
}
