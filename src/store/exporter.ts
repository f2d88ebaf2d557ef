// In: requests for rows of the training set. Out: their bytes, from a thread for each, at the pace of whoever reads them.
// At most a few at once; each has a time limit and bounded memory, and its end is seen to whatever becomes of it.
// Never reads a row itself, never leaves a file behind.
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { type ErrorCode, ServiceError } from '../schema/errors.ts'
import type { ExportWork, FromExport, ToExport } from './export-messages.ts'
import {
  EXPORT_DRAIN_MS,
  EXPORT_HEAP_MB,
  EXPORT_MS_MAX,
  EXPORT_RETRY_AFTER_S,
  EXPORT_ROWS_MAX,
  EXPORT_STOP_MS,
  EXPORTS_AT_ONCE,
} from './limits.ts'
import { exportFolder } from './paths.ts'
import { placeOf, type Selection } from './selection.ts'
import type { ExportDoor, ExportHead, ExportJob, ExportRequest, StoreLog } from './types.ts'
import { unavailable } from './worker-link.ts'

export interface Exporter extends ExportDoor {
  /** Exports under way. */
  readonly running: number
  /** Takes no more; gives those under way a moment, then ends them. */
  close(): Promise<void>
}

export interface ExporterOptions {
  dataDir: string
  log: StoreLog
  /** How long one export may take, ms. */
  msMax?: number
}

/** One thread, and what has come from it that nobody has taken yet: the thread waits when that is enough. */
class Job implements ExportJob {
  readonly head: Promise<ExportHead>
  /** Resolves when the thread has ended. */
  readonly ended: Promise<void>
  readonly #worker: Worker
  readonly #limit: NodeJS.Timeout
  readonly #log: StoreLog
  #giveHead: (head: ExportHead) => void = () => {}
  #refuse: (error: Error) => void = () => {}
  readonly #pieces: Buffer[] = []
  #waiting: { resolve(piece: Buffer | null): void; reject(error: Error): void } | null = null
  #isWhole = false
  #failure: Error | null = null
  #isStopping = false

  constructor(work: ExportWork, msMax: number, log: StoreLog) {
    this.#log = log
    this.head = new Promise((resolve, reject) => {
      this.#giveHead = resolve
      this.#refuse = reject
    })
    // Whoever waits for the head sees the failure; one who has gone does not, and that is no reason to crash.
    this.head.catch(() => {})
    this.#worker = new Worker(new URL('./export-worker.ts', import.meta.url), {
      workerData: work,
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: EXPORT_HEAP_MB },
    })
    this.#limit = setTimeout(() => this.#giveUp('the export took too long; ask for fewer rows'), msMax)
    this.#worker.on('message', (message: FromExport) => this.#take(message))
    this.#worker.on('error', (error) => this.#fail(unavailable(`the export failed: ${error.message}`)))
    this.ended = new Promise((resolve) => {
      this.#worker.once('exit', () => {
        clearTimeout(this.#limit)
        rmSync(work.folder, { recursive: true, force: true })
        this.#fail(unavailable('the export ended before it was whole'))
        resolve()
      })
    })
  }

  next(): Promise<Buffer | null> {
    const piece = this.#pieces.shift()
    if (piece !== undefined) {
      this.#tell('more')
      return Promise.resolve(piece)
    }
    if (this.#isWhole) return Promise.resolve(null)
    if (this.#failure !== null) return Promise.reject(this.#failure)
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject }
    })
  }

  stop(): void {
    this.#giveUp('the export was called off')
  }

  #tell(message: ToExport): void {
    this.#worker.postMessage(message)
  }

  #take(message: FromExport): void {
    if ('head' in message) this.#giveHead(message.head)
    else if ('failed' in message) this.#hear(message.failed)
    else if ('end' in message) this.#finish()
    else this.#give(Buffer.from(message.piece.buffer, message.piece.byteOffset, message.piece.byteLength))
  }

  #give(piece: Buffer): void {
    if (this.#waiting === null) {
      this.#pieces.push(piece)
      return
    }
    this.#waiting.resolve(piece)
    this.#waiting = null
    this.#tell('more')
  }

  #hear({ code, message, detail }: { code: ErrorCode; message: string; detail?: string }): void {
    if (detail !== undefined) this.#log.warn({ error: detail }, 'an export failed')
    this.#fail(code === 'store_unavailable' ? unavailable(message) : new ServiceError(code, message))
  }

  #finish(): void {
    this.#isWhole = true
    this.#waiting?.resolve(null)
    this.#waiting = null
  }

  #fail(error: Error): void {
    if (this.#isWhole || this.#failure !== null) return
    this.#failure = error
    this.#pieces.length = 0
    this.#refuse(error)
    this.#waiting?.reject(error)
    this.#waiting = null
  }

  /** Fails it, and sees to it that the thread ends: asked first, so that it can tidy up, then made to. */
  #giveUp(sentence: string): void {
    this.#fail(unavailable(sentence))
    if (this.#isStopping) return
    this.#isStopping = true
    this.#tell('stop')
    const timer = setTimeout(() => void this.#worker.terminate(), EXPORT_STOP_MS)
    this.ended.then(() => clearTimeout(timer))
  }
}

function selectionOf({ fromMs, toMs, since }: ExportRequest): Selection {
  const after = since === null ? null : placeOf(since)
  if (since === null || after !== null) return { table: 'training', fromMs, toMs, after }
  const message = 'is neither X-Next-Since of an earlier answer nor a time in Unix milliseconds'
  throw new ServiceError('invalid_parameter', `since ${message}`, {
    errors: [{ pointer: '/since', code: 'invalid_parameter', message }],
  })
}

const busy = () =>
  new ServiceError(
    'store_unavailable',
    `All ${EXPORTS_AT_ONCE} exports are in use; try again later.`,
    { limit: EXPORTS_AT_ONCE, retryAfterMs: EXPORT_RETRY_AFTER_S * 1_000 },
    { 'Retry-After': `${EXPORT_RETRY_AFTER_S}` },
  )

/** Opens the door. The data folder is this server's alone: what a crash left of exports is removed. */
export function openExporter({ dataDir, log, msMax = EXPORT_MS_MAX }: ExporterOptions): Exporter {
  const folder = exportFolder(dataDir)
  rmSync(folder, { recursive: true, force: true })
  const jobs = new Set<Job>()
  let count = 0
  let isClosed = false

  function begin(request: ExportRequest): ExportJob {
    if (isClosed)
      throw new ServiceError('draining', 'The server is shutting down.', {}, { 'Retry-After': '1' })
    const selection = selectionOf(request)
    if (jobs.size >= EXPORTS_AT_ONCE) throw busy()
    const { format, limit } = request
    const rowsMax = Math.min(limit, EXPORT_ROWS_MAX)
    const job = new Job(
      { dataDir, folder: join(folder, `${count++}`), format, selection, rowsMax },
      msMax,
      log,
    )
    jobs.add(job)
    job.ended.then(() => jobs.delete(job))
    return job
  }

  async function close(): Promise<void> {
    isClosed = true
    const allEnded = () => Promise.all([...jobs].map(({ ended }) => ended))
    const timer = setTimeout(() => {
      log.warn({ exports: jobs.size }, 'exports under way are cut off')
      for (const job of jobs) job.stop()
    }, EXPORT_DRAIN_MS)
    await allEnded()
    clearTimeout(timer)
    rmSync(folder, { recursive: true, force: true })
  }

  return {
    begin,
    close,
    get running() {
      return jobs.size
    },
  }
}
