// Runs a job again and again. Runs never overlap. A job tells of its failures itself; the next run follows as usual.

export class PeriodicJob {
  readonly #job: () => Promise<unknown>
  readonly #everyMs: number
  #isStopped: boolean
  #timer: NodeJS.Timeout | undefined

  /** The interval is counted from the end of the previous run; 0: the job never runs. The timer does not keep the process alive. */
  constructor(job: () => Promise<unknown>, everyMs: number) {
    this.#job = job
    this.#everyMs = everyMs
    this.#isStopped = everyMs === 0
    this.#schedule()
  }

  /** No further run. One under way ends by itself. */
  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
  }

  #schedule(): void {
    if (this.#isStopped) return
    this.#timer = setTimeout(() => {
      void this.#job()
        .catch(() => undefined)
        .then(() => this.#schedule())
    }, this.#everyMs)
    this.#timer.unref()
  }
}
