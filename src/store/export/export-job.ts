// In: one export, and a process that is free. Out: its head and its bytes, at the pace of whoever takes them; the process,
// free again or ended, whatever becomes of the export. Never holds more than the process may be ahead.
import { type ChildProcess, fork } from 'node:child_process'
import { rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { errorMessage } from '../../lib/error-text.ts'
import { StoreError, unavailable } from '../errors.ts'
import { EXPORT_HEAP_MB, EXPORT_STOP_MS } from '../limits.ts'
import type { ExportHead, ExportJob, StoreLog } from '../types.ts'
import type { ExportFailure, ExportWork, FromExport, ToExport } from './messages.ts'

const PROGRAM = fileURLToPath(new URL('./export-process.ts', import.meta.url))

/** A new process. What goes wrong in it while it has nothing to do is nobody's loss: its end tells. */
export function startProcess(): ChildProcess {
  try {
    const child = fork(PROGRAM, [], {
      execArgv: ['--no-warnings', `--max-old-space-size=${EXPORT_HEAP_MB}`],
      // Pieces are bytes, which JSON would spell out.
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    })
    child.on('error', () => {})
    return child
  } catch (error) {
    // Some of what keeps a process from being started is thrown, the rest is told as an event.
    throw unavailable(`the process of an export could not be started: ${errorMessage(error)}`)
  }
}

export interface JobOptions {
  work: ExportWork
  msMax: number
  log: StoreLog
  /** The process is free for another export. */
  onFree(): void
  /** Nothing of it is left: the process is free or has ended, and the bytes were taken, or nobody wants them. */
  onDone(): void
  /** The lake could not be read: a file of it may be damaged. */
  onUnreadable(): void
}

export class Job implements ExportJob {
  readonly head: Promise<ExportHead>
  readonly #process: ChildProcess
  readonly #options: JobOptions
  readonly #limit: NodeJS.Timeout
  readonly #chunks: Buffer[] = []
  #giveHead: (head: ExportHead) => void = () => {}
  #refuse: (error: Error) => void = () => {}
  #waiting: { resolve(chunk: Buffer | null): void; reject(error: Error): void } | null = null
  /** The last piece has come from the process. */
  #isWhole = false
  #isTaken = false
  #failure: Error | null = null
  #isOver = false
  #killer: NodeJS.Timeout | null = null

  constructor(process: ChildProcess, options: JobOptions) {
    this.#process = process
    this.#options = options
    this.head = new Promise((resolve, reject) => {
      this.#giveHead = resolve
      this.#refuse = reject
    })
    // Whoever waits for the head sees the failure; one who has gone does not, and that is no reason to crash.
    this.head.catch(() => {})
    this.#limit = setTimeout(
      () => this.#giveUp('the export took too long; ask for fewer rows'),
      options.msMax,
    )
    process.on('message', this.#take)
    process.on('error', this.#crash)
    process.on('exit', this.#exit)
    this.#tell(options.work)
  }

  /** Pieces that came from the process and were not taken yet. */
  get held(): readonly Buffer[] {
    return this.#chunks
  }

  next(): Promise<Buffer | null> {
    const chunk = this.#chunks.shift()
    if (chunk !== undefined) {
      this.#tell('more')
      return Promise.resolve(chunk)
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

  /** Once the process is free it may have other work: then it is not spoken to any more. */
  #tell(message: ToExport): void {
    if (!this.#isOver && this.#process.connected) this.#process.send(message, () => {})
  }

  #take = (message: FromExport): void => {
    if ('head' in message) this.#giveHead(message.head)
    else if ('end' in message) this.#hear(message.end)
    else this.#give(Buffer.from(message.chunk.buffer, message.chunk.byteOffset, message.chunk.byteLength))
  }

  #crash = (error: Error): void => {
    this.#options.log.warn({ error: String(error) }, 'the process of an export failed')
  }

  #exit = (): void => this.#end(false)

  #give(chunk: Buffer): void {
    if (this.#failure !== null) return
    if (this.#waiting === null) {
      this.#chunks.push(chunk)
      return
    }
    this.#waiting.resolve(chunk)
    this.#waiting = null
    this.#tell('more')
  }

  #hear(end: 'whole' | 'calledOff' | ExportFailure): void {
    this.#isWhole = end === 'whole'
    if (typeof end === 'object') this.#refuseFor(end)
    this.#end(true)
    if (this.#isWhole && this.#waiting !== null) this.#finish()
  }

  #refuseFor({ code, message, field, detail }: ExportFailure): void {
    if (detail !== undefined) {
      this.#options.log.warn({ error: detail }, 'an export failed')
      this.#options.onUnreadable()
    }
    this.#fail(new StoreError(code, message, field === undefined ? {} : { field }))
  }

  /** Whoever took every piece is told that there are no more. */
  #finish(): void {
    const waiting = this.#waiting
    this.#waiting = null
    this.#settle()
    waiting?.resolve(null)
  }

  #fail(error: Error): void {
    if (this.#isTaken) return
    this.#failure = error
    this.#chunks.length = 0
    this.#settle()
    this.#refuse(error)
    this.#waiting?.reject(error)
    this.#waiting = null
  }

  #settle(): void {
    if (this.#isTaken) return
    this.#isTaken = true
    clearTimeout(this.#limit)
    if (this.#isOver) this.#options.onDone()
  }

  /** Fails it, and sees to it that the work ends: the process is asked first, so that it can tidy up, then ended. */
  #giveUp(sentence: string): void {
    this.#fail(unavailable(sentence))
    if (this.#killer !== null || this.#isOver) return
    this.#tell('stop')
    this.#killer = setTimeout(() => this.#process.kill('SIGKILL'), EXPORT_STOP_MS)
  }

  #end(isFree: boolean): void {
    if (this.#isOver) return
    this.#isOver = true
    if (this.#killer !== null) clearTimeout(this.#killer)
    this.#process.off('message', this.#take)
    this.#process.off('error', this.#crash)
    this.#process.off('exit', this.#exit)
    rmSync(this.#options.work.folder, { recursive: true, force: true })
    if (isFree) this.#options.onFree()
    if (this.#isTaken) this.#options.onDone()
    else if (!this.#isWhole) this.#fail(unavailable('the export ended before it was whole'))
  }
}
