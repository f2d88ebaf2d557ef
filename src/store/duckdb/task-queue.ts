// In: tasks. Out: their results, one task after another, in order of arrival. Holds at most `waitingMax` of them; a
// further one is refused, and so is each that comes after its end. Never runs two at once: a DuckDB connection must not be
// shared by two queries.

import { unavailable } from '../errors.ts'

export interface TaskQueue {
  run<T>(task: () => Promise<T>): Promise<T>
  /** Refuses every further task, and resolves when those taken so far have ended, well or badly. */
  close(): Promise<void>
}

export function taskQueue(name: string, waitingMax: number): TaskQueue {
  let last: Promise<unknown> = Promise.resolve()
  let waiting = 0
  let isClosed = false

  async function run<T>(task: () => Promise<T>): Promise<T> {
    if (isClosed) throw unavailable(`no more ${name} are taken: the store is closing`)
    if (waiting >= waitingMax) throw unavailable(`too many ${name} are waiting`)
    waiting++
    const result = last.then(task)
    last = result.then(
      () => undefined,
      () => undefined,
    )
    try {
      return await result
    } finally {
      waiting--
    }
  }

  async function close(): Promise<void> {
    isClosed = true
    await last
  }

  return { run, close }
}
