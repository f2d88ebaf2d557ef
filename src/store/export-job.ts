// In: one export, and a thread that is free. Out: its head and its bytes, at the pace of whoever takes them; the thread,
// free again or ended, whatever becomes of the export. Never holds more than the thread may be ahead.
import { rmSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import { ServiceError } from '../schema/errors.ts'
import type { ExportFailure, ExportWork, FromExport, ToExport } from './export-messages.ts'
import { EXPORT_HEAP_MB, EXPORT_STOP_MS } from './limits.ts'
import type { ExportHead, ExportJob, StoreLog } from './types.ts'
import { unavailable } from './worker-link.ts'

/** A new thread. What goes wrong in it while it has nothing to do is nobody's loss: its end tells. */
export function startThread(): Worker {
  const worker = new Worker(new URL('./export-worker.ts', import.meta.url), {
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: EXPORT_HEAP_MB },
  })
  worker.on('error', () => {})
  return worker
}

export interface JobOptions {
  work: ExportWork
  msMax: number
  log: StoreLog
}

export class Job implements ExportJob {
  readonly head: Promise<ExportHead>
  /** Resolves when the work is over: true when the thread is free for another, false when it has ended. */
  readonly over: Promise<boolean>
  /** Resolves when nothing of it is held any more: it was taken to its end, has failed, or was called off. */
  readonly taken: Promise<void>
  readonly #thread: Worker
  readonly #options: JobOptions
  readonly #limit: NodeJS.Timeout
  readonly #pieces: Buffer[] = []
  #giveHead: (head: ExportHead) => void = () => {}
  #refuse: (error: Error) => void = () => {}
  #leave: (isFree: boolean) => void = () => {}
  #let: () => void = () => {}
  #waiting: { resolve(piece: Buffer | null): void; reject(error: Error): void } | null = null
  /** The last piece has come from the thread. */
  #isWhole = false
  #isTaken = false
  #failure: Error | null = null
  #isStopping = false
  #isOver = false

  constructor(thread: Worker, options: JobOptions) {
    this.#thread = thread
    this.#options = options
    this.head = new Promise((resolve, reject) => {
      this.#giveHead = resolve
      this.#refuse = reject
    })
    // Whoever waits for the head sees the failure; one who has gone does not, and that is no reason to crash.
    this.head.catch(() => {})
    this.over = new Promise((resolve) => {
      this.#leave = resolve
    })
    this.taken = new Promise((resolve) => {
      this.#let = resolve
    })
    this.#limit = setTimeout(
      () => this.#giveUp('the export took too long; ask for fewer rows'),
      options.msMax,
    )
    thread.on('message', this.#take)
    thread.on('error', this.#crash)
    thread.on('exit', this.#exit)
    this.#tell(options.work)
  }

  get heldBytes(): number {
    return this.#pieces.reduce((sum, piece) => sum + piece.length, 0)
  }

  next(): Promise<Buffer | null> {
    const piece = this.#pieces.shift()
    if (piece !== undefined) {
      this.#tell('more')
      return Promise.resolve(piece)
    }
    if (this.#failure !== null) return Promise.reject(this.#failure)
    if (this.#isWhole) {
      this.#settle()
      return Promise.resolve(null)
    }
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject }
    })
  }

  stop(): void {
    this.#giveUp('the export was called off')
  }

  /** Once the thread is free it may have other work: then it is not spoken to any more. */
  #tell(message: ToExport): void {
    if (!this.#isOver) this.#thread.postMessage(message)
  }

  #take = (message: FromExport): void => {
    if ('head' in message) this.#giveHead(message.head)
    else if ('failed' in message) this.#hear(message.failed)
    else if ('end' in message) this.#finish()
    else if ('free' in message) this.#end(true)
    else this.#give(Buffer.from(message.piece.buffer, message.piece.byteOffset, message.piece.byteLength))
  }

  #crash = (error: Error): void => {
    this.#options.log.warn({ error: String(error) }, 'the thread of an export crashed')
  }

  #exit = (): void => this.#end(false)

  #give(piece: Buffer): void {
    if (this.#failure !== null) return
    if (this.#waiting === null) {
      this.#pieces.push(piece)
      return
    }
    this.#waiting.resolve(piece)
    this.#waiting = null
    this.#tell('more')
  }

  #hear({ code, message, detail }: ExportFailure): void {
    if (detail !== undefined) this.#options.log.warn({ error: detail }, 'an export failed')
    this.#fail(code === 'store_unavailable' ? unavailable(message) : new ServiceError(code, message))
  }

  #finish(): void {
    this.#isWhole = true
    if (this.#waiting === null) return
    this.#waiting.resolve(null)
    this.#waiting = null
    this.#settle()
  }

  #fail(error: Error): void {
    if (this.#isTaken) return
    this.#failure = error
    this.#pieces.length = 0
    this.#settle()
    this.#refuse(error)
    this.#waiting?.reject(error)
    this.#waiting = null
  }

  #settle(): void {
    this.#isTaken = true
    clearTimeout(this.#limit)
    this.#let()
  }

  /** Fails it, and sees to it that the work ends: the thread is asked first, so that it can tidy up, then ended. */
  #giveUp(sentence: string): void {
    this.#fail(unavailable(sentence))
    if (this.#isStopping || this.#isOver) return
    this.#isStopping = true
    this.#tell('stop')
    const timer = setTimeout(() => void this.#thread.terminate(), EXPORT_STOP_MS)
    this.over.then(() => clearTimeout(timer))
  }

  #end(isFree: boolean): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#thread.off('message', this.#take)
    this.#thread.off('error', this.#crash)
    this.#thread.off('exit', this.#exit)
    if (!this.#isWhole) this.#fail(unavailable('the export ended before it was whole'))
    rmSync(this.#options.work.folder, { recursive: true, force: true })
    this.#leave(isFree)
  }
}
