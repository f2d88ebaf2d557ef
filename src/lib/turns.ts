// How long work waits for the one thread of a process: as long as a turn of the event loop takes, at whose end it has come.

/** Processor time of this thread so far: time in which other threads kept it from running does not count. */
export function threadCpuMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1_000
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
