// Runs one disk operation at a time with a time limit. While one hangs, no other is started: each hanging call holds one of
// the few I/O threads that the whole process shares.
import { assert } from '../assert.ts'
import type { Clock } from '../clock.ts'

/** Throws when the operation is overdue. To be called between any two calls on the disk, so that no further one is made. */
export type OverdueCheck = () => void

class OverdueError extends Error {
  readonly code = 'ETIMEDOUT'
}

interface Operation {
  startedMs: number
  isOverdue: boolean
}

export class DiskOperations {
  readonly #timeoutMs: number
  readonly #clock: Clock
  #current: Operation | null = null

  constructor(timeoutMs: number, clock: Clock) {
    this.#timeoutMs = timeoutMs
    this.#clock = clock
  }

  get isOverdue(): boolean {
    return this.#current?.isOverdue ?? false
  }

  /** How long the current operation has been running; null where there is none. */
  get runningMs(): number | null {
    return this.#current === null ? null : this.#clock.monotonicMs() - this.#current.startedMs
  }

  /**
   * Runs `work`, which may take several calls on the disk.
   * @param onOverdue called once when the time limit has passed and `work` is still running
   */
  async run<T>(work: (check: OverdueCheck) => Promise<T>, onOverdue: () => void): Promise<T> {
    assert(this.#current === null, 'one operation at a time')
    const operation = { startedMs: this.#clock.monotonicMs(), isOverdue: false }
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
