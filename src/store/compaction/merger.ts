// Has sorted copies made by a process of its own, which is kept for the copies of one round.
import { errorMessage } from '../../lib/error-text.ts'
import { JobProgram } from '../../lib/process/job-program.ts'
import { programPath } from '../../lib/process/program-path.ts'
import { unavailable } from '../errors.ts'
import type { ReadableFile } from '../lake/parquet-sql.ts'
import { MERGE_HEAP_MB, MERGE_IDLE_MS, MERGE_TIMEOUT_MS } from '../limits.ts'

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

/** Closing it ends its process for good. */
export class Merger extends JobProgram<MergeRequest, CopyResult> {
  constructor() {
    super({
      program: programPath('./merge-process', import.meta.url),
      name: 'the process that merges files',
      msMax: MERGE_TIMEOUT_MS,
      heapMb: MERGE_HEAP_MB,
      idleMs: MERGE_IDLE_MS,
    })
  }

  /** Writes a sorted copy. Rejects with `unavailable`; its process has ended then. */
  async copy(request: MergeRequest): Promise<CopyResult> {
    const job = this.start(request)
    try {
      return await job.result
    } catch (error) {
      await job.ended
      throw unavailable(`files of ${request.table} were not merged: ${errorMessage(error)}`)
    }
  }
}
