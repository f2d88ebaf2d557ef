// In: who did something, and when. Out: how often within the half-open window (now - window, now], exactly. Times are of the
// monotonic clock. Never reads a clock. Holds at most `keptMax` times for each key seen within the window; older keys are
// forgotten as time passes.

export class SlidingLog {
  readonly #windowMs: number
  readonly #keptMax: number
  /** Times in the order of adding; keys in the order of their latest, so that the idle ones stand first. */
  readonly #timesByKey = new Map<string, number[]>()

  constructor(windowMs: number, keptMax: number) {
    this.#windowMs = windowMs
    this.#keptMax = keptMax
  }

  /** Keys held, for tests and metrics. */
  get size(): number {
    return this.#timesByKey.size
  }

  /** The times within the window, as of `nowMs`. */
  timesOf(key: string, nowMs: number): number[] {
    return (this.#timesByKey.get(key) ?? []).filter((atMs) => atMs > nowMs - this.#windowMs)
  }

  add(key: string, atMs: number): void {
    const times = [...this.timesOf(key, atMs), atMs].slice(-this.#keptMax)
    this.#timesByKey.delete(key)
    this.#timesByKey.set(key, times)
    this.#forgetIdle(atMs)
  }

  /** Takes back one that was added at `atMs`, whatever was added since. */
  remove(key: string, atMs: number): void {
    const times = this.#timesByKey.get(key)
    const index = times?.lastIndexOf(atMs) ?? -1
    if (times && index >= 0) times.splice(index, 1)
    if (times?.length === 0) this.#timesByKey.delete(key)
  }

  #forgetIdle(nowMs: number): void {
    for (const [key, times] of this.#timesByKey) {
      if (times.some((atMs) => atMs > nowMs - this.#windowMs)) return
      this.#timesByKey.delete(key)
    }
  }
}
