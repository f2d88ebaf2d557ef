/** Resolves in the next turn of the event loop. */
export { setImmediate as nextTurn } from 'node:timers/promises'

/** What `work` resolves to; where that takes longer than `ms`, what `late` returns or throws. The work itself goes on. */
export async function unlessLate<Value, Late>(
  ms: number,
  work: Promise<Value>,
  late: () => Late,
): Promise<Value | Late> {
  const timeIsUp = Symbol()
  const { promise, resolve } = Promise.withResolvers<typeof timeIsUp>()
  const timer = setTimeout(resolve, ms, timeIsUp)
  try {
    const first = await Promise.race([work, promise])
    return first === timeIsUp ? late() : first
  } finally {
    clearTimeout(timer)
  }
}

/** Waits until `work` is done, for `ms` at most. Rejects as it does. @returns whether it is done */
export const within = (ms: number, work: Promise<unknown>): Promise<boolean> =>
  unlessLate(
    ms,
    work.then(() => true),
    () => false,
  )

/** A wait that can be ended early. */
export class Pause {
  /** Of no effect where nobody waits. */
  end: () => void = () => {}

  /** Waits for `ms`, or until it is ended. */
  async forMs(ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.end = resolve
    await within(ms, promise)
  }
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
