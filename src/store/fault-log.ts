// In: what goes wrong again and again, and when it went right again. Out: one log line when a fault begins, one a minute
// while it lasts, one when it is over; and the faults that last just now. Never keeps anything from being tried.
import type { Clock } from '../lib/clock.ts'
import { FAULT_LOG_EVERY_MS } from './limits.ts'
import type { StoreLog } from './types.ts'

export interface FaultLog {
  /** Something went wrong. `what` names it, and is the sentence that is logged. */
  report(what: string, error: unknown): void
  /** It went right. */
  clear(what: string): void
  /** Faults that last, as sentences. */
  readonly current: string[]
}

interface Fault {
  sinceMs: number
  loggedMs: number
  times: number
  error: string
}

export function openFaultLog(log: StoreLog, clock: Clock): FaultLog {
  const lasting = new Map<string, Fault>()

  function report(what: string, error: unknown): void {
    const known = lasting.get(what)
    const fault = known ?? { sinceMs: clock.now(), loggedMs: Number.NEGATIVE_INFINITY, times: 0, error: '' }
    lasting.set(what, fault)
    fault.times++
    fault.error = String(error)
    if (clock.monotonicMs() - fault.loggedMs < FAULT_LOG_EVERY_MS) return
    fault.loggedMs = clock.monotonicMs()
    log.warn({ error: fault.error, ...(fault.times > 1 && { times: fault.times }) }, what)
  }

  function clear(what: string): void {
    const fault = lasting.get(what)
    if (fault === undefined) return
    lasting.delete(what)
    log.info({ times: fault.times, forMs: Math.max(0, clock.now() - fault.sinceMs) }, `over: ${what}`)
  }

  return {
    report,
    clear,
    get current() {
      return [...lasting].map(
        ([what, { sinceMs, error }]) => `${what} (since ${new Date(sinceMs).toISOString()}: ${error})`,
      )
    },
  }
}
