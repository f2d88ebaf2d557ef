// When positions may go back: neither of their two sources was there between two lives, the reservation on the disk and the machine's clock.

/** What the server's log says of its reservation. */
const REFUSED = 'stream positions cannot be reserved: they follow the clock'
const RESERVED_AGAIN = 'stream positions are reserved again'
const UNKNOWN = /^the reservation of stream positions .*: positions follow the clock$/

export class PositionSources {
  /** Rises with each life that may have begun below what the life before has shown. */
  era = 0
  /** Whether the positions of the present life are reserved, and whether those of the life before were. */
  #isReserved = true
  #wasReserved = true
  /** The clock says less than it would if it had gone on from its furthest. */
  #isClockBack = false
  #errorMsMax = 0

  /** A life of the server begins. */
  begin(clockErrorMs: number): void {
    this.#wasReserved = this.#isReserved
    this.#isReserved = true
    this.#isClockBack = false
    this.noteClock(clockErrorMs, true)
  }

  /** The clock is wrong by that from now on. @param isStarting a life begins, and may not have read it yet */
  noteClock(errorMs: number, isStarting: boolean): void {
    this.#errorMsMax = Math.max(this.#errorMsMax, errorMs)
    if (!isStarting || this.#isClockBack || errorMs === this.#errorMsMax) return
    this.#isClockBack = true
    if (!this.#wasReserved) this.era++
  }

  /** A line of the server's log. */
  noteLog(message: string): void {
    if (message === REFUSED) this.#isReserved = false
    else if (message === RESERVED_AGAIN) this.#isReserved = true
    else if (UNKNOWN.test(message) && this.#isClockBack) this.era++
  }
}
