// Exports of the training set, each a job with a time limit and bounded memory: at most EXPORTS_AT_ONCE.
import { programPath } from '../../lib/process/program-path.ts'
import { invalid, type StoreError, unavailable } from '../errors.ts'
import { type LakeJobBounds, type LakeJobsOptions, LakeProgram } from '../lake-program.ts'
import {
  EXPORT_CHUNKS_AHEAD,
  EXPORT_DRAIN_MS,
  EXPORT_HEAP_MB,
  EXPORT_IDLE_MS,
  EXPORT_MS_MAX,
  EXPORT_RETRY_AFTER_S,
  EXPORT_ROWS_MAX,
  EXPORT_WAIT_MS_MAX,
  EXPORTS_AT_ONCE,
  EXPORTS_WAITING_MAX,
} from '../limits.ts'
import { exportFolder } from '../paths.ts'
import type { ExportFormat, ExportHead, ExportJob, ExportRequest } from '../types.ts'
import { parseCursor, type Selection } from './selection.ts'

/** What the process of an export makes: its chunks are the head, then bytes. */
export interface ExportTask {
  format: ExportFormat
  selection: Selection
  rowsMax: number
}
export type ExportChunk = ExportHead | Buffer

function toSelection({ fromMs, toMs, since }: ExportRequest): Selection {
  const after = since === null ? null : parseCursor(since)
  if (since === null || after !== null) return { table: 'training', fromMs, toMs, after }
  const sentence = 'since is neither X-Next-Since of an earlier answer nor a time in Unix milliseconds'
  throw invalid(sentence, { field: 'since' })
}

const allInUse = (): StoreError =>
  unavailable(`All ${EXPORTS_AT_ONCE} exports are in use; try again later.`, {
    retryAfterMs: EXPORT_RETRY_AFTER_S * 1_000,
  })

export class Exports {
  readonly #program: LakeProgram<ExportTask, void, ExportChunk>

  constructor(lake: LakeJobsOptions, { msMax, waitMsMax, drainMs }: LakeJobBounds = {}) {
    this.#program = new LakeProgram(lake, {
      kind: 'export',
      folder: exportFolder(lake.dataDir),
      program: programPath('./export-process', import.meta.url),
      heapMb: EXPORT_HEAP_MB,
      chunksAhead: EXPORT_CHUNKS_AHEAD,
      atOnce: EXPORTS_AT_ONCE,
      waitMsMax: waitMsMax ?? EXPORT_WAIT_MS_MAX,
      msMax: msMax ?? EXPORT_MS_MAX,
      drainMs: drainMs ?? EXPORT_DRAIN_MS,
      // Starting a process takes longer than a small export.
      idleMs: EXPORT_IDLE_MS,
      beyond: {
        waited: allInUse,
        late: () => unavailable('the export took too long; ask for fewer rows'),
        ended: () => unavailable('the export ended before it was complete'),
      },
    })
  }

  /** Number of running exports. */
  get running(): number {
    return this.#program.jobs.running.length
  }

  /** Chunks that came from the processes and were not taken yet. */
  get held(): { chunks: number; bytes: number } {
    const chunks = this.#program.jobs.running.flatMap((job) => job.held)
    const bytes = chunks.reduce((sum, chunk) => sum + ('length' in chunk ? chunk.length : 0), 0)
    return { chunks: chunks.length, bytes }
  }

  /** Throws `unavailable` while too many run, `invalid` where `since` is not a cursor. */
  begin(request: ExportRequest): ExportJob {
    const selection = toSelection(request)
    if (this.running + this.#program.jobs.waiting >= EXPORTS_AT_ONCE + EXPORTS_WAITING_MAX) throw allInUse()
    const rowsMax = Math.min(request.limit, EXPORT_ROWS_MAX)
    const job = this.#program.start({ format: request.format, selection, rowsMax })
    const head = job.next() as Promise<ExportHead>
    // A caller that no longer waits for the head must not cause an unhandled rejection.
    head.catch(() => {})
    return { head, next: () => job.next() as Promise<Buffer | null>, stop: () => job.stop() }
  }

  /** Refuses further exports, waits for the running ones, then cancels them. */
  close(): Promise<void> {
    return this.#program.close()
  }
}
