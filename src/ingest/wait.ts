// In: a number of milliseconds and a signal. Out: a promise that resolves when either is over. Never rejects, and never
// keeps the process alive by itself.
import { setTimeout as sleep } from 'node:timers/promises'

/** Waits `ms` milliseconds, less when the signal says stop. */
export async function wait(ms: number, signal: AbortSignal): Promise<void> {
  try {
    await sleep(ms, undefined, { signal, ref: false })
  } catch (error) {
    if (!signal.aborted) throw error
  }
}
