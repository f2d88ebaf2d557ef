// One export and its process: passes the chunks on as the caller takes them, and frees or ends the process in every case.

import { type ChildProcess, fork } from 'node:child_process'
import { rmSync } from 'node:fs'
import { errorMessage } from '../../lib/error-text.ts'
import { programPath } from '../../lib/process/program-path.ts'
import { unavailable } from '../errors.ts'
import { type JobOptions, jobError } from '../lake-jobs.ts'
import { EXPORT_HEAP_MB, EXPORT_STOP_MS } from '../limits.ts'
import type { ExportHead, ExportJob } from '../types.ts'
import type { ExportEnd, ExportTask, FromExport, ToExport } from './messages.ts'

const PROGRAM = programPath('./export-process', import.meta.url)

/** Starts a process. Errors while it has no export are ignored: its end is noticed. */
export function startExportProcess(): ChildProcess {
  try {
    const child = fork(PROGRAM, [], {
      execArgv: ['--no-warnings', `--max-old-space-size=${EXPORT_HEAP_MB}`],
      // Chunks are bytes, which JSON would encode as text.
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    })
    child.on('error', () => {})
    return child
  } catch (error) {
    // Some failures to start a process are thrown, others arrive as an event.
    throw unavailable(`the process of an export could not be started: ${errorMessage(error)}`)
  }
}

export interface ProcessExportJobOptions extends JobOptions<ExportTask> {
  /** Called when the process is free for another export. */
  onFree(): void
  /** Called when the process is free or has ended, and all chunks were taken or are no longer wanted. */
  onDone(): void
}

export class ProcessExportJob implements ExportJob {
  readonly head: Promise<ExportHead>
  readonly #process: ChildProcess
  readonly #options: ProcessExportJobOptions
  readonly #timeout: NodeJS.Timeout
  readonly #chunks: Buffer[] = []
  #resolveHead: (head: ExportHead) => void = () => {}
  #rejectHead: (error: Error) => void = () => {}
  #waiting: { resolve(chunk: Buffer | null): void; reject(error: Error): void } | null = null
  /** The last chunk has arrived from the process. */
  #isComplete = false
  /** The caller has taken everything, or was told of a failure. */
  #isSettled = false
  #failure: Error | null = null
  /** The process is free or has ended. */
  #isReleased = false
  #killer: NodeJS.Timeout | null = null

  constructor(process: ChildProcess, options: ProcessExportJobOptions) {
    this.#process = process
    this.#options = options
    this.head = new Promise((resolve, reject) => {
      this.#resolveHead = resolve
      this.#rejectHead = reject
    })
    // A caller that no longer waits for the head must not cause an unhandled rejection.
    this.head.catch(() => {})
    this.#timeout = setTimeout(
      () => this.#cancel('the export took too long; ask for fewer rows'),
      options.msMax,
    )
    process.on('message', this.#onMessage)
    process.on('error', this.#onError)
    process.on('exit', this.#onExit)
    this.#post(options.task)
  }

  /** Chunks from the process that were not taken yet. */
  get held(): readonly Buffer[] {
    return this.#chunks
  }

  next(): Promise<Buffer | null> {
    const chunk = this.#chunks.shift()
    if (chunk !== undefined) {
      this.#post('more')
      return Promise.resolve(chunk)
    }
    if (this.#failure !== null) return Promise.reject(this.#failure)
    if (this.#isComplete) {
      this.#settle()
      return Promise.resolve(null)
    }
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject }
    })
  }

  stop(): void {
    this.#cancel('the export was canceled')
  }

  /** Sends a message, unless the process is free: it may have another export by now. */
  #post(message: ToExport): void {
    if (!this.#isReleased && this.#process.connected) this.#process.send(message, () => {})
  }

  #onMessage = (message: FromExport): void => {
    if ('head' in message) this.#resolveHead(message.head)
    else if ('end' in message) this.#onEnd(message.end)
    else this.#onChunk(Buffer.from(message.chunk.buffer, message.chunk.byteOffset, message.chunk.byteLength))
  }

  #onError = (error: Error): void => {
    this.#options.service.log.warn({ error: String(error) }, 'the process of an export failed')
  }

  #onExit = (): void => this.#release(false)

  #onChunk(chunk: Buffer): void {
    if (this.#failure !== null) return
    if (this.#waiting === null) {
      this.#chunks.push(chunk)
      return
    }
    this.#waiting.resolve(chunk)
    this.#waiting = null
    this.#post('more')
  }

  #onEnd(end: ExportEnd): void {
    this.#isComplete = end === 'complete'
    if (typeof end === 'object') this.#fail(jobError(end, this.#options.service, 'an export failed'))
    this.#release(true)
    if (this.#isComplete && this.#waiting !== null) this.#end()
  }

  /** Tells the waiting caller that there are no more chunks. */
  #end(): void {
    const waiting = this.#waiting
    this.#waiting = null
    this.#settle()
    waiting?.resolve(null)
  }

  #fail(error: Error): void {
    if (this.#isSettled) return
    this.#failure = error
    this.#chunks.length = 0
    this.#settle()
    this.#rejectHead(error)
    this.#waiting?.reject(error)
    this.#waiting = null
  }

  #settle(): void {
    if (this.#isSettled) return
    this.#isSettled = true
    clearTimeout(this.#timeout)
    if (this.#isReleased) this.#options.onDone()
  }

  /** Fails the export. The process is asked to stop, so that it stays usable, and killed where it does not. */
  #cancel(sentence: string): void {
    this.#fail(unavailable(sentence))
    if (this.#killer !== null || this.#isReleased) return
    this.#post('stop')
    this.#killer = setTimeout(() => this.#process.kill('SIGKILL'), EXPORT_STOP_MS)
  }

  #release(isFree: boolean): void {
    if (this.#isReleased) return
    this.#isReleased = true
    if (this.#killer !== null) clearTimeout(this.#killer)
    this.#process.off('message', this.#onMessage)
    this.#process.off('error', this.#onError)
    this.#process.off('exit', this.#onExit)
    rmSync(this.#options.task.folder, { recursive: true, force: true })
    if (isFree) this.#options.onFree()
    if (this.#isSettled) this.#options.onDone()
    else if (!this.#isComplete) this.#fail(unavailable('the export ended before it was complete'))
  }
}
