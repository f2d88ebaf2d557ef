import { setTimeout as sleep } from 'node:timers/promises'
import { unlessAborted } from '../lib/wait.ts'
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

/**
 * What a call resolves to whose signal aborts when `ms` are over, or with `signal`. `AbortSignal.any` would do, but leaves a little at a signal
 * that lives long with each call.
 */
export async function withinTime<Value>(
  ms: number,
  signal: AbortSignal,
  call: (ending: AbortSignal) => Promise<Value>,
): Promise<Value> {
  const ending = new AbortController()
  const end = () => ending.abort(signal.reason)
  const late = () => ending.abort(new DOMException(`no answer within ${ms} ms`, 'TimeoutError'))
  const timer = setTimeout(late, ms).unref()
  signal.addEventListener('abort', end)
  if (signal.aborted) end()
  try {
    return await call(ending.signal)
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', end)
  }
}
