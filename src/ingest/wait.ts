import { setTimeout as sleep } from 'node:timers/promises'
import type { Room } from './types.ts'

/** Waits `ms` milliseconds, or less when the signal aborts. Does not keep the process alive. */
export async function wait(ms: number, signal: AbortSignal): Promise<void> {
  try {
    await sleep(ms, undefined, { signal, ref: false })
  } catch (error) {
    if (!signal.aborted) throw error
  }
}

/** Resolves when there is room for more events, or when the signal aborts. */
export async function untilRoom(room: Room, signal: AbortSignal): Promise<void> {
  for (let waiting = room(); waiting !== null && !signal.aborted; waiting = room())
    await unlessAborted(waiting, signal)
}

/** What `waiting` resolves to; null as soon as the signal aborts. */
export async function unlessAborted<Value>(
  waiting: Promise<Value>,
  signal: AbortSignal,
): Promise<Value | null> {
  const { promise: aborted, resolve } = Promise.withResolvers<null>()
  const abort = () => resolve(null)
  signal.addEventListener('abort', abort)
  if (signal.aborted) abort()
  try {
    return await Promise.race([waiting, aborted])
  } finally {
    signal.removeEventListener('abort', abort)
  }
}
