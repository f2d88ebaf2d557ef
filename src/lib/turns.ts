// How long work waits for the one thread of a process: as long as a turn of the event loop takes, at whose end it has come.

/** Processor time of this thread so far: time in which other threads kept it from running does not count. */
export function threadCpuMs(): number {
  // Linux brings a thread's own time up to date at ticks of 4 ms and where the time of its process is asked for.
  process.cpuUsage()
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1_000
}

/**
 * A piece of this thread's work that is to end after so much processor time. No work takes less time than passes, and what has passed costs
 * little to ask, where processor time costs a microsecond: so a slice may be asked after each small thing whether it is over.
 */
export class WorkSlice {
  readonly #msMax: number
  readonly #now: () => number
  readonly #startedAtMs: number
  readonly #beforeMs = threadCpuMs()

  /** @param now a monotonic clock, ms */
  constructor(msMax: number, now: () => number) {
    this.#msMax = msMax
    this.#now = now
    this.#startedAtMs = now()
  }

  get isOver(): boolean {
    return this.#now() - this.#startedAtMs >= this.#msMax && threadCpuMs() - this.#beforeMs >= this.#msMax
  }
}

/** How often a turn is measured. Longer ones are measured one after another. */
const LOOK_EVERY_MS = 50

/**
 * Measures turns of the event loop, from a moment in which everything that was due is done to the next. Processor time is what
 * counts: a machine that slept or has other things to do makes no turn long.
 */
export class Turns {
  readonly #onTurn: (workMs: number) => void
  #isRunning = false
  #timer: NodeJS.Timeout | undefined

  /** @param onTurn told of each turn that was measured */
  constructor(onTurn: (workMs: number) => void) {
    this.#onTurn = onTurn
  }

  start(): void {
    if (this.#isRunning) return
    this.#isRunning = true
    this.#wait()
  }

  stop(): void {
    this.#isRunning = false
    clearTimeout(this.#timer)
  }

  #wait(): void {
    this.#timer = setTimeout(() => setImmediate(() => this.#measure()), LOOK_EVERY_MS)
    this.#timer.unref()
  }

  #measure(): void {
    if (!this.#isRunning) return
    const beforeMs = threadCpuMs()
    setImmediate(() => {
      const workMs = threadCpuMs() - beforeMs
      if (!this.#isRunning) return
      this.#onTurn(workMs)
      if (workMs < LOOK_EVERY_MS) this.#wait()
      else this.#measure()
    })
  }
}
