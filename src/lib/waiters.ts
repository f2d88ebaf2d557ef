// Those who wait until something is reached, which whoever may have reached it looks after.
import { unlessLate } from './wait.ts'

export class Waiters {
  /** Of each who waits: what it waits for, and how to tell it. */
  readonly #waiting = new Map<() => boolean, (isReached: boolean) => void>()
  #hasEnded = false

  /** Resolves with whether it is reached within that time. Nobody waits for what is reached already. */
  until(isReached: () => boolean, timeoutMs: number): Promise<boolean> {
    if (isReached() || this.#hasEnded) return Promise.resolve(isReached())
    const { promise, resolve } = Promise.withResolvers<boolean>()
    this.#waiting.set(isReached, resolve)
    return unlessLate(timeoutMs, promise, () => false).finally(() => this.#waiting.delete(isReached))
  }

  /** To be called when something may have been reached. */
  check(): void {
    for (const [isReached, tell] of this.#waiting) if (isReached()) tell(true)
  }

  /** Nothing more will be reached. */
  end(): void {
    this.#hasEnded = true
    for (const tell of this.#waiting.values()) tell(false)
  }
}
