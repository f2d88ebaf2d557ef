// Runs tasks one after another, in order of arrival: a DuckDB connection must not be shared by two queries.
import { unavailable } from '../errors.ts'

export class TaskQueue {
  readonly #name: string
  readonly #waitingMax: number
  #last: Promise<unknown> = Promise.resolve()
  #waiting = 0
  #isClosed = false

  /** @param name what the tasks are, in the plural, for error texts */
  constructor(name: string, waitingMax: number) {
    this.#name = name
    this.#waitingMax = waitingMax
  }

  /** Runs `task` after those before it. Rejects with `unavailable` when the queue is full or closed. */
  async run<T>(task: () => Promise<T>): Promise<T> {
    if (this.#isClosed) throw unavailable(`the store is closing and takes no more ${this.#name}`)
    if (this.#waiting >= this.#waitingMax) throw unavailable(`too many ${this.#name} are waiting`)
    this.#waiting++
    const result = this.#last.then(task)
    this.#last = result.then(
      () => undefined,
      () => undefined,
    )
    try {
      return await result
    } finally {
      this.#waiting--
    }
  }

  /** Refuses further tasks. Resolves when those accepted so far have ended, whether they failed or not. */
  async close(): Promise<void> {
    this.#isClosed = true
    await this.#last
  }
}
