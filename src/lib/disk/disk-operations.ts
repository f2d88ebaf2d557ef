// Runs one disk operation at a time with a time limit. While one hangs, no other is started: each hanging call holds one of
// the few I/O threads that the whole process shares.
import { assert } from '../assert.ts'

/** Throws when the operation is overdue. To be called between any two calls on the disk, so that no further one is made. */
export type OverdueCheck = () => void

class OverdueError extends Error {
  readonly code = 'ETIMEDOUT'
}

export class DiskOperations {
  readonly #timeoutMs: number
  #current: { isOverdue: boolean } | null = null

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs
  }

  get isOverdue(): boolean {
    return this.#current?.isOverdue ?? false
  }

  /**
   * Runs `work`, which may take several calls on the disk.
   * @param onOverdue called once when the time limit has passed and `work` is still running
   */
  async run<T>(work: (check: OverdueCheck) => Promise<T>, onOverdue: () => void): Promise<T> {
    assert(this.#current === null, 'one operation at a time')
    const operation = { isOverdue: false }
    this.#current = operation
    const timer = setTimeout(() => {
      operation.isOverdue = true
      onOverdue()
    }, this.#timeoutMs)
    try {
      return await work(() => {
        if (operation.isOverdue) throw new OverdueError(`the disk took more than ${this.#timeoutMs} ms`)
      })
    } finally {
      clearTimeout(timer)
      this.#current = null
    }
  }
}
