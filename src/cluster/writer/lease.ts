// For how long it is certain that no other writer has taken this one's place.
import { Waiters } from '../../lib/waiters.ts'
import { LEASE_MS } from '../limits.ts'

export class Lease {
  /** When the newest message that the bus has taken was sent, on the monotonic clock. */
  #confirmedMs = -Infinity
  readonly #waiters = new Waiters()

  /** The bus has taken a message that was sent then. */
  confirm(sentMs: number): void {
    this.#confirmedMs = sentMs
    this.#waiters.check()
  }

  /**
   * Whether the bus has taken a message that was sent less than LEASE_MS ago: no other writer, which would wait until the stream is
   * silent, can have begun.
   */
  get isHeld(): boolean {
    return performance.now() - this.#confirmedMs <= LEASE_MS
  }

  /** Waits until it is held. @returns whether that is so within `msMax` */
  holds(msMax: number): Promise<boolean> {
    return this.#waiters.until(() => this.isHeld, msMax)
  }

  /** Nobody waits any more for what the bus takes. */
  close(): void {
    this.#waiters.end()
  }
}
