import { unlessLate } from '../../lib/wait.ts'

// Those who wait until the replica has reached something.

interface Waiting {
  isReached(): boolean
  settle(isReached: boolean): void
}

export class Waiters {
  readonly #waiting = new Set<Waiting>()

  /** Resolves with whether it is reached within that time. Nobody waits for what is reached already. */
  until(isReached: () => boolean, timeoutMs: number): Promise<boolean> {
    if (isReached()) return Promise.resolve(true)
    const { promise, resolve } = Promise.withResolvers<boolean>()
    const waiting: Waiting = { isReached, settle: resolve }
    this.#waiting.add(waiting)
    return unlessLate(timeoutMs, promise, () => false).finally(() => this.#waiting.delete(waiting))
  }

  /** To be called when something may have been reached. */
  check(): void {
    for (const waiting of this.#waiting) if (waiting.isReached()) waiting.settle(true)
  }

  /** Nothing more will be reached. */
  end(): void {
    for (const waiting of this.#waiting) waiting.settle(false)
  }
}
