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

/** How many times its time a call may take that goes on being heard of. */
const HEARD_TIMES_MAX = 6

/**
 * What a call resolves to whose signal aborts when nothing was `heard` of it for `ms`, or with `signal`. `AbortSignal.any` would do, but
 * leaves a little at a signal that lives long with each call.
 */
export async function withinTime<Value>(
  ms: number,
  signal: AbortSignal,
  call: (ending: AbortSignal, heard: () => void) => Promise<Value>,
): Promise<Value> {
  const ending = new AbortController()
  const end = () => ending.abort(signal.reason)
  const late = () => ending.abort(new DOMException(`no answer within ${ms} ms`, 'TimeoutError'))
  const timer = setTimeout(late, ms).unref()
  const endMs = performance.now() + (HEARD_TIMES_MAX - 1) * ms
  const heard = () => {
    if (performance.now() < endMs) timer.refresh()
  }
  signal.addEventListener('abort', end)
  if (signal.aborted) end()
  try {
    return await call(ending.signal, heard)
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', end)
  }
}
