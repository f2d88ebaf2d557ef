// For how long it is certain that no other writer has taken this one's place.
import { within } from '../../lib/wait.ts'
import { LEASE_MS } from '../limits.ts'

export class Lease {
  /** When the newest message that the bus has taken was sent, on the monotonic clock. */
  #confirmedMs = -Infinity
  readonly #waiting = new Set<() => void>()
  #isClosed = false

  /** The bus has taken a message that was sent then. */
  confirm(sentMs: number): void {
    this.#confirmedMs = sentMs
    for (const act of this.#waiting) act()
  }

  /**
   * Waits until the bus has taken a message that was sent less than LEASE_MS ago: no other writer, which would wait until the stream is
   * silent, can have begun. @returns whether that is so within `msMax`
   */
  async holds(msMax: number): Promise<boolean> {
    const untilMs = performance.now() + msMax
    while (performance.now() - this.#confirmedMs > LEASE_MS) {
      const leftMs = untilMs - performance.now()
      if (leftMs <= 0 || this.#isClosed) return false
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#waiting.add(resolve)
      await within(leftMs, promise)
      this.#waiting.delete(resolve)
    }
    return true
  }

  /** Nobody waits any more for what the bus takes. */
  close(): void {
    this.#isClosed = true
    for (const act of this.#waiting) act()
  }
}
