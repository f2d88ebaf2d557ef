// In: work on the disk. Out: its result, one piece of work at a time, watched. An operation that takes too long is told of
// while it still hangs; nothing else is begun until it ends, since each hanging call holds one of the few threads that
// the whole process shares.
import { assert } from '../../lib/assert.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Checkpoint } from './segments/segment-file.ts'

class OverdueError extends Error {
  readonly code = 'ETIMEDOUT'
}

interface Operation {
  startedMs: number
  isOverdue: boolean
}

export class Operations {
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

  /** How long the operation under way has taken; null: none is. */
  get underWayMs(): number | null {
    return this.#current === null ? null : this.#clock.monotonicMs() - this.#current.startedMs
  }

  /** Runs `work`, which calls the check it is given between any two calls on the disk: it throws once time is up. */
  async run<T>(work: (check: Checkpoint) => Promise<T>, onOverdue: () => void): Promise<T> {
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
