// In: tasks. Out: their results, one task after another, in order of arrival. Holds at most `waitingMax` of them; a
// further one is refused. Never runs two at once: a DuckDB connection must not be shared by two queries.
import { ServiceError } from '../schema/errors.ts'

export interface Serial {
  run<T>(task: () => Promise<T>): Promise<T>
  /** Resolves when every task taken so far has ended, well or badly. */
  idle(): Promise<void>
}

export function serial(name: string, waitingMax: number): Serial {
  let last: Promise<unknown> = Promise.resolve()
  let waiting = 0

  async function run<T>(task: () => Promise<T>): Promise<T> {
    if (waiting >= waitingMax) throw new ServiceError('store_unavailable', `too many ${name} are waiting`)
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

  return { run, idle: async () => void (await last) }
}
