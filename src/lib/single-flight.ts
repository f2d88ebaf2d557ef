/**
 * Runs one costly asynchronous call for all who ask at the same time, and keeps its result for `ttlMs` after it finished. A
 * failure is given to those who waited for it and is not kept.
 */
export class SingleFlight<Value> {
  readonly #run: () => Promise<Value>
  readonly #ttlMs: number
  readonly #nowMs: () => number
  #current: Promise<Value> | null = null
  /** When the current call finished; null while it is running. */
  #finishedAtMs: number | null = null

  /** @param nowMs a monotonic clock, ms. */
  constructor(run: () => Promise<Value>, ttlMs: number, nowMs: () => number = () => performance.now()) {
    this.#run = run
    this.#ttlMs = ttlMs
    this.#nowMs = nowMs
  }

  get(): Promise<Value> {
    const isFresh = this.#finishedAtMs === null || this.#nowMs() - this.#finishedAtMs < this.#ttlMs
    return this.#current !== null && isFresh ? this.#current : this.#start()
  }

  #start(): Promise<Value> {
    const call = this.#run()
    this.#current = call
    this.#finishedAtMs = null
    call.then(
      () => {
        this.#finishedAtMs = this.#nowMs()
      },
      () => {
        this.#current = null
      },
    )
    return call
  }
}
