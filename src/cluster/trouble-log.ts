// Tells the log what keeps a process from the bus, and when that is over. While it starts, only what lasts: the other processes of the
// cluster start too, and what they have not made yet is no fault.
import type { Log } from '../lib/log.ts'
import { START_TROUBLE_MS } from './limits.ts'

export class TroubleLog {
  readonly #log: Log
  readonly #level: 'warn' | 'error'
  readonly #what: string
  readonly #over: string | null
  /** Why the last try failed, as a sentence; null: it did not, or there was none. */
  trouble: string | null = null
  /** Whether a try has ever not failed. */
  hasWorked = false
  /** When the first try in a row failed, on the monotonic clock; null: the last one did not. */
  sinceMs: number | null = null
  #told: string | null = null

  /** @param over what is logged once it is over; null: nothing */
  constructor(log: Log, level: 'warn' | 'error', what: string, over: string | null) {
    this.#log = log
    this.#level = level
    this.#what = what
    this.#over = over
  }

  /** Called at each try. @param sentence why it failed; null: it did not */
  note(sentence: string | null): void {
    this.trouble = sentence
    if (sentence === null) {
      if (this.#over !== null && (this.#told !== null || !this.hasWorked)) this.#log.info({}, this.#over)
      this.hasWorked = true
      this.sinceMs = this.#told = null
      return
    }
    const nowMs = performance.now()
    this.sinceMs ??= nowMs
    if (sentence === this.#told || (!this.hasWorked && nowMs - this.sinceMs < START_TROUBLE_MS)) return
    this.#log[this.#level]({ reason: sentence }, this.#what)
    this.#told = sentence
  }
}
