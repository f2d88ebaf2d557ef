// Brings each new checkpoint to the bus, one at a time, by a process of its own. A failed one is tried again.

import type { StoredCheckpoint } from '../../checkpoint/checkpoint-folder.ts'
import { Backoff } from '../../lib/backoff.ts'
import { errorMessage } from '../../lib/error-text.ts'
import type { Log } from '../../lib/log.ts'
import { JobProgram } from '../../lib/process/job-program.ts'
import { programPath } from '../../lib/process/program-path.ts'
import { UPLOAD_HEAP_MB, UPLOAD_RETRY_MS, UPLOAD_RETRY_MS_MAX, UPLOAD_TIMEOUT_MS } from '../limits.ts'
import type { UploadResult, UploadTask } from './upload-protocol.ts'

export interface CheckpointUploaderOptions {
  settings: UploadTask['settings']
  /** Identity of the data folder. */
  folderId: string
  log: Log
}

export interface UploadStatus {
  /** Event of the newest checkpoint that is on the bus; null: none of this run is known to be. */
  uploadedEventNo: number | null
  uploads: number
  failures: number
  /** Why the latest upload failed; null where it did not. */
  trouble: string | null
}

export class CheckpointUploader {
  readonly #options: CheckpointUploaderOptions
  #runId = ''
  /** To be uploaded; a newer one takes its place. */
  #next: StoredCheckpoint | null = null
  #lostFromEventNo: number | null = null
  readonly #jobs = new JobProgram<UploadTask, UploadResult>({
    program: programPath('./upload-process', import.meta.url),
    name: 'the process that brings a checkpoint to the bus',
    msMax: UPLOAD_TIMEOUT_MS,
    heapMb: UPLOAD_HEAP_MB,
  })
  #working: Promise<void> | null = null
  #isOpen = false
  #retry: NodeJS.Timeout | null = null
  readonly #backoff = new Backoff(UPLOAD_RETRY_MS, UPLOAD_RETRY_MS_MAX)
  readonly #status: UploadStatus = { uploadedEventNo: null, uploads: 0, failures: 0, trouble: null }

  constructor(options: CheckpointUploaderOptions) {
    this.#options = options
  }

  status(): UploadStatus {
    return { ...this.#status }
  }

  /** The bus is there and this writer's: what was asked for is uploaded from now on. @param lostFromEventNo as in `UploadTask` */
  open(runId: string, lostFromEventNo: number | null): void {
    this.#runId = runId
    this.#lostFromEventNo = lostFromEventNo ?? this.#lostFromEventNo
    this.#isOpen = true
    this.#backoff.reset()
    this.#begin()
  }

  /** Uploads a checkpoint, unless a newer one is to be. */
  upload(checkpoint: StoredCheckpoint): void {
    if (this.#next !== null && this.#next.eventNo > checkpoint.eventNo) return
    this.#next = checkpoint
    this.#begin()
  }

  /** Resolves when nothing is being uploaded. */
  async idle(): Promise<void> {
    while (this.#working !== null) await this.#working
  }

  async stop(): Promise<void> {
    this.#isOpen = false
    if (this.#retry !== null) clearTimeout(this.#retry)
    await this.#jobs.stop()
    await this.#working
  }

  #begin(): void {
    if (!this.#isOpen || this.#working !== null || this.#next === null) return
    if (this.#retry !== null) clearTimeout(this.#retry)
    this.#retry = null
    this.#working = this.#work().finally(() => {
      this.#working = null
      if (this.#retry === null) this.#begin()
    })
  }

  /** Never rejects. */
  async #work(): Promise<void> {
    const checkpoint = this.#next
    if (checkpoint === null) return
    const { folderId, log, settings } = this.#options
    const { path, eventNo } = checkpoint
    const [runId, lostFromEventNo] = [this.#runId, this.#lostFromEventNo]
    try {
      const task = { settings, path, eventNo, folderId, runId, lostFromEventNo }
      const { bytes, tookMs } = await this.#jobs.start(task).result
      log.info({ eventNo, bytes, tookMs: Math.round(tookMs) }, 'a checkpoint is on the bus')
      if (this.#next === checkpoint) this.#next = null
      Object.assign(this.#status, {
        uploadedEventNo: eventNo,
        uploads: this.#status.uploads + 1,
        trouble: null,
      })
      // What a connection has told meanwhile is for the next upload.
      if (this.#lostFromEventNo === lostFromEventNo) this.#lostFromEventNo = null
      this.#backoff.reset()
    } catch (error) {
      if (!this.#isOpen) return
      const reason = errorMessage(error)
      if (this.#status.trouble === null)
        log.error({ reason }, 'a checkpoint could not be brought to the bus; trying again')
      Object.assign(this.#status, { failures: this.#status.failures + 1, trouble: reason })
      this.#retry = setTimeout(() => {
        this.#retry = null
        this.#begin()
      }, this.#backoff.nextMs())
      this.#retry.unref()
    }
  }
}
