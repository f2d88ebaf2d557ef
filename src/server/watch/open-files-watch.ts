// Notices that this process may open no more files: clients then wait unanswered at the door, which nothing else tells.
import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import {
  isAtOpenFilesMax,
  OPEN_FILES_MIN,
  openFilesMax,
  RAISE_OPEN_FILES,
} from '../../lib/process/open-files.ts'

const LOOK_EVERY_MS = 1_000
/** Clients come and go at the limit: it is over once it was not met for this long. */
const OVER_AFTER_MS = 10_000

export class OpenFilesWatch {
  readonly #clock: Clock
  readonly #log: Log
  /** Asked while a file can be opened to ask it. */
  readonly #max = openFilesMax()
  #timer: NodeJS.Timeout | undefined
  #metAtMs: number | null = null

  constructor(clock: Clock, log: Log) {
    this.#clock = clock
    this.#log = log
  }

  /** A sentence while the limit is met; null: it is not. */
  get reason(): string | null {
    if (this.#metAtMs === null) return null
    const most = this.#max === null ? 'as many files as it may' : `the ${this.#max} files that it may`
    return `the server has ${most} open: no client can connect, and the store may not write; ${RAISE_OPEN_FILES}`
  }

  start(): void {
    if (this.#max !== null && this.#max < OPEN_FILES_MIN)
      this.#log.warn(
        `the server may have ${this.#max} files open, and each client takes one; ${RAISE_OPEN_FILES}`,
      )
    this.#timer = setInterval(() => this.#look(), LOOK_EVERY_MS).unref()
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  #look(): void {
    const nowMs = this.#clock.monotonicMs()
    const before = this.#metAtMs
    if (isAtOpenFilesMax()) this.#metAtMs = nowMs
    else if (before !== null && nowMs - before >= OVER_AFTER_MS) this.#metAtMs = null
    if (before === null && this.#metAtMs !== null) this.#log.warn(`${this.reason}`)
    if (before !== null && this.#metAtMs === null) this.#log.info('the server can open files again')
  }
}
