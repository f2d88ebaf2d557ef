// Runs a job again and again. Runs never overlap; a failure is reported and the next run follows as usual.

export class PeriodicJob {
  readonly #job: () => Promise<void>
  readonly #everyMs: number
  readonly #onError: (error: unknown) => void
  #isStopped: boolean
  #timer: NodeJS.Timeout | undefined

  /**
   * The interval is counted from the end of the previous run; 0: the job never runs. The timer does not keep the process alive.
   * @param onError by default nothing: the job has told of its failure itself
   */
  constructor(job: () => Promise<void>, everyMs: number, onError: (error: unknown) => void = () => {}) {
    this.#job = job
    this.#everyMs = everyMs
    this.#onError = onError
    this.#isStopped = everyMs === 0
    this.#schedule()
  }

  /** No further run. One under way ends by itself and still reports a failure. */
  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
  }

  #schedule(): void {
    if (this.#isStopped) return
    this.#timer = setTimeout(() => {
      void this.#job()
        .catch(this.#onError)
        .then(() => this.#schedule())
    }, this.#everyMs)
    this.#timer.unref()
  }
}
