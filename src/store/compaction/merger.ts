// Starts the merge process when it is needed, and sends it one copy at a time. Every call ends: a process that dies or takes
// too long is an error.
import { errorMessage } from '../../lib/error-text.ts'
import { WorkerProcess } from '../../lib/process/child-job.ts'
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

export interface CopyResult {
  rows: number
  /** Of the target’s content. */
  sha256: string
  /** The most memory that the process has used so far. */
  peakBytes: number
}

const PROGRAM = programPath('./merge-process', import.meta.url)

export class Merger {
  #process: WorkerProcess<MergeRequest, CopyResult> | null = null
  #isClosed = false

  /** Writes a sorted copy, one at a time. Rejects with `unavailable`, and then ends the process. */
  async copy(request: MergeRequest): Promise<CopyResult> {
    if (this.#isClosed) throw unavailable('the store is closing')
    this.#process ??= new WorkerProcess({
      ...{ program: PROGRAM, name: 'the process that merges files' },
      ...{ timeoutMs: MERGE_TIMEOUT_MS, heapMb: MERGE_HEAP_MB },
    })
    const process = this.#process
    try {
      return await process.run(request)
    } catch (error) {
      if (this.#process === process) await this.stopProcess()
      throw unavailable(`files of ${request.table} were not merged: ${errorMessage(error)}`)
    }
  }

  /** Ends the process, which frees its memory, even in the middle of a copy. The next copy starts another. */
  async stopProcess(): Promise<void> {
    const ending = this.#process
    this.#process = null
    ending?.kill()
    await ending?.ended()
  }

  /** Ends the process for good; further copies are refused. */
  async close(): Promise<void> {
    this.#isClosed = true
    await this.stopProcess()
  }
}
