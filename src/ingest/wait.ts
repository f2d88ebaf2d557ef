import { setTimeout as sleep } from 'node:timers/promises'

/** Waits `ms` milliseconds, or less when the signal aborts. Does not keep the process alive. */
export async function wait(ms: number, signal: AbortSignal): Promise<void> {
  try {
    await sleep(ms, undefined, { signal, ref: false })
  } catch (error) {
    if (!signal.aborted) throw error
  }
}
