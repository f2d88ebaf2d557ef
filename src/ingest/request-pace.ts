import { wait } from './wait.ts'

/** `spare` requests have their turn when no other waits. */
export type Lane = 'live' | 'spare'

/** Lets requests go at the rate that a provider allows, in the order in which they were asked for: all callers share one instance. */
export class RequestPace {
  readonly #intervalMs: number
  /** The earliest time of the next request, on the monotonic clock. */
  #nextAtMs = 0
  readonly #turns: Readonly<Record<Lane, { signal: AbortSignal; begin(): void }[]>> = { live: [], spare: [] }
  #isGranting = false

  constructor(requestsPerSecond: number) {
    this.#intervalMs = 1_000 / requestsPerSecond
  }

  /** Resolves when a request may be sent, or at the end of its signal. */
  turn(signal: AbortSignal, lane: Lane = 'live'): Promise<void> {
    const turn = new Promise<void>((resolve) => {
      this.#turns[lane].push({ signal, begin: resolve })
    })
    if (!this.#isGranting) void this.#grantTurns()
    return turn
  }

  /** Lets no further request go for this long. */
  pause(ms: number): void {
    this.#nextAtMs = Math.max(this.#nextAtMs, performance.now() + ms)
  }

  async #grantTurns(): Promise<void> {
    const { live, spare } = this.#turns
    this.#isGranting = true
    // What nobody has asked for is not made up for.
    this.#nextAtMs = Math.max(this.#nextAtMs, performance.now())
    for (let next = live[0] ?? spare[0]; next !== undefined; next = live[0] ?? spare[0]) {
      const { signal } = next
      const waitMs = this.#nextAtMs - performance.now()
      if (waitMs > 0 && !signal.aborted) {
        await wait(waitMs, signal)
        continue
      }
      const turn = live.shift() ?? spare.shift()
      // A timer that fires late must not lower the rate.
      if (!signal.aborted)
        this.#nextAtMs = Math.max(this.#nextAtMs, performance.now() - this.#intervalMs) + this.#intervalMs
      turn?.begin()
    }
    this.#isGranting = false
  }
}
