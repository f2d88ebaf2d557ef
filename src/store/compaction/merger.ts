// In: sorted copies to make. Out: their rows, from a process that is started when it is needed. Never leaves a caller
// waiting: a process that dies or is late is an answer. Never makes two copies at once.
import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { assert } from '../../lib/assert.ts'
import { errorMessage } from '../../lib/error-text.ts'
import { unavailable } from '../errors.ts'
import type { ReadableFile } from '../lake/parquet-sql.ts'
import { MERGE_HEAP_MB, MERGE_TIMEOUT_MS } from '../limits.ts'

export interface MergeRequest {
  table: string
  /** With the hash of each, where it was noted. */
  files: readonly (ReadableFile & { sha256?: string | null })[]
  /** How many the files have. */
  rows: number
  target: string
  spillDir: string
}

/** `peakBytes`: the most memory that the process has taken so far. */
export type MergeResponse = ({ ok: true } & Copied) | { ok: false; message: string }

export interface Copied {
  rows: number
  /** Of the target’s content. */
  sha256: string
  peakBytes: number
}

export interface Merger {
  /** Rejects with `store_unavailable`. */
  copy(ask: MergeRequest): Promise<Copied>
  /** Ends the process, whatever it is doing; the next copy starts another. Resolves once it is gone. */
  rest(): Promise<void>
  /** Ends it for good: copies are refused from here on. */
  close(): Promise<void>
}

const PROGRAM = fileURLToPath(new URL('./merge-process.ts', import.meta.url))

function start(): ChildProcess {
  try {
    return fork(PROGRAM, [], {
      execArgv: ['--no-warnings', `--max-old-space-size=${MERGE_HEAP_MB}`],
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    })
  } catch (error) {
    // Some of what keeps a process from being started is thrown, the rest is told as an event.
    throw unavailable(`the process that merges files could not be started: ${errorMessage(error)}`)
  }
}

export function openMerger(): Merger {
  let child: ChildProcess | null = null
  let isBusy = false
  let isClosed = false

  async function rest(): Promise<void> {
    const ending = child
    child = null
    if (ending === null || ending.exitCode !== null || ending.signalCode !== null) return
    const ended = new Promise<void>((resolve) => ending.once('exit', () => resolve()))
    ending.kill('SIGKILL')
    await ended
  }

  function ask(of: ChildProcess, question: MergeRequest): Promise<MergeResponse> {
    const { promise, resolve, reject } = Promise.withResolvers<MergeResponse>()
    const fail = (reason: string): void => reject(unavailable(`merging files of ${question.table} ${reason}`))
    const onExit = (code: number | null, signal: string | null): void =>
      fail(`was cut off: its process ended with ${signal ?? code}`)
    const onError = (error: Error): void => fail(`could not be begun: ${error.message}`)
    const timer = setTimeout(() => fail(`took more than ${MERGE_TIMEOUT_MS} ms`), MERGE_TIMEOUT_MS)
    of.on('exit', onExit).on('error', onError).on('message', resolve)
    of.send(question, (error) => error && onError(error))
    return promise.finally(() => {
      clearTimeout(timer)
      of.off('exit', onExit).off('error', onError).off('message', resolve)
    })
  }

  async function copy(question: MergeRequest): Promise<Copied> {
    if (isClosed) throw unavailable('the store is closing')
    assert(!isBusy, 'one copy is made at a time')
    isBusy = true
    try {
      child ??= start()
      const answer = await ask(child, question)
      if (!answer.ok) throw unavailable(answer.message)
      return answer
    } catch (error) {
      await rest()
      throw error
    } finally {
      isBusy = false
    }
  }

  async function close(): Promise<void> {
    isClosed = true
    await rest()
  }

  return { copy, rest, close }
}
