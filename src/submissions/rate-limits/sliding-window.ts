// Counts events by key within the half-open window (now - window, now], exactly. Times are on the monotonic clock. Holds at
// most `eventsMax` times for a key, and drops keys without an event in the window.

export class SlidingWindow {
  readonly windowMs: number
  readonly #eventsMax: number
  /** Times in the order in which they were added. Keys in the order of their latest time, so that idle keys come first. */
  readonly #timesByKey = new Map<string, number[]>()

  constructor(windowMs: number, eventsMax: number) {
    this.windowMs = windowMs
    this.#eventsMax = eventsMax
  }

  /** Times of a key within the window as of `nowMs`. */
  times(key: string, nowMs: number): number[] {
    return (this.#timesByKey.get(key) ?? []).filter((atMs) => atMs > nowMs - this.windowMs)
  }

  add(key: string, atMs: number): void {
    const held = this.#timesByKey.get(key)
    // Copied only where the first has left the window: a start adds a million times.
    const isWhole = held?.[0] !== undefined && held[0] > atMs - this.windowMs
    const times = isWhole ? held : this.times(key, atMs)
    times.push(atMs)
    if (times.length > this.#eventsMax) times.shift()
    this.#timesByKey.delete(key)
    this.#timesByKey.set(key, times)
    this.#dropIdle(atMs)
  }

  /** Removes one event that was added at `atMs`. Events that were added since stay. */
  remove(key: string, atMs: number): void {
    const times = this.#timesByKey.get(key)
    const index = times?.lastIndexOf(atMs) ?? -1
    if (times && index >= 0) times.splice(index, 1)
    if (times?.length === 0) this.#timesByKey.delete(key)
  }

  #dropIdle(nowMs: number): void {
    for (const [key, times] of this.#timesByKey) {
      if (times.some((atMs) => atMs > nowMs - this.windowMs)) return
      this.#timesByKey.delete(key)
    }
  }
}
