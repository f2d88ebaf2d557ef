// Logs faults that last: when one begins, once a minute while it lasts, and when it is over.
import type { Clock } from '../lib/clock.ts'
import { FAULT_LOG_EVERY_MS } from './limits.ts'
import type { StoreLog } from './types.ts'

interface Fault {
  sinceMs: number
  loggedMs: number
  times: number
  error: string
}

export class FaultLog {
  readonly #log: StoreLog
  readonly #clock: Clock
  readonly #faults = new Map<string, Fault>()

  constructor(log: StoreLog, clock: Clock) {
    this.#log = log
    this.#clock = clock
  }

  /** The faults that last now, each as a sentence. */
  get current(): string[] {
    return [...this.#faults].map(
      ([what, { sinceMs, error }]) => `${what} (since ${new Date(sinceMs).toISOString()}: ${error})`,
    )
  }

  /** Runs `work`. A failure is reported under `what` and rethrown; a success ends the fault of that name. */
  async watch<Result>(what: string, work: () => Promise<Result>): Promise<Result> {
    try {
      const result = await work()
      this.clear(what)
      return result
    } catch (error) {
      this.report(what, error)
      throw error
    }
  }

  /** Something failed. `what` identifies the fault and is the sentence that is logged. */
  report(what: string, error: unknown): void {
    const known = this.#faults.get(what)
    const fault = known ?? {
      sinceMs: this.#clock.now(),
      loggedMs: Number.NEGATIVE_INFINITY,
      times: 0,
      error: '',
    }
    this.#faults.set(what, fault)
    fault.times++
    fault.error = String(error)
    if (this.#clock.monotonicMs() - fault.loggedMs < FAULT_LOG_EVERY_MS) return
    fault.loggedMs = this.#clock.monotonicMs()
    this.#log.warn({ error: fault.error, ...(fault.times > 1 && { times: fault.times }) }, what)
  }

  /** It succeeded: ends the fault, if there is one. */
  clear(what: string): void {
    const fault = this.#faults.get(what)
    if (fault === undefined) return
    this.#faults.delete(what)
    const forMs = Math.max(0, this.#clock.now() - fault.sinceMs)
    this.#log.info({ times: fault.times, forMs }, `over: ${what}`)
  }
}
