// Counts events by key within the half-open window (now - window, now], exactly. Times are on the monotonic clock. Counts
// at most `eventsMax` for a key and holds at most twice as many times, and drops keys without an event in the window. Each event
// costs the same, however many there are.

/** Times of one key, earliest first, from `first` on: those before it have left the window. */
interface Held {
  times: number[]
  first: number
}

export class SlidingWindow {
  readonly windowMs: number
  readonly #eventsMax: number
  /** In the order of the latest time that was added, so that idle keys come first. */
  readonly #heldByKey = new Map<string, Held>()

  constructor(windowMs: number, eventsMax: number) {
    this.windowMs = windowMs
    this.#eventsMax = eventsMax
  }

  /** How many events of a key are within the window as of `nowMs`. */
  count(key: string, nowMs: number): number {
    const { times, first } = this.#within(key, nowMs)
    return times.length - first
  }

  /** When the earliest event of a key within the window was; null: there is none. */
  earliestMs(key: string, nowMs: number): number | null {
    const { times, first } = this.#within(key, nowMs)
    return times[first] ?? null
  }

  add(key: string, atMs: number): void {
    const held = this.#within(key, atMs)
    const { times } = held
    let at = times.length
    while (at > held.first && (times[at - 1] ?? 0) > atMs) at--
    times.splice(at, 0, atMs)
    if (times.length - held.first > this.#eventsMax) held.first++
    this.#heldByKey.delete(key)
    this.#heldByKey.set(key, held)
    this.#dropIdle(atMs)
  }

  /** Removes one event that was added at `atMs`. Events that were added since stay. */
  remove(key: string, atMs: number): void {
    const held = this.#heldByKey.get(key)
    if (held === undefined) return
    const index = held.times.lastIndexOf(atMs)
    if (index < held.first) return
    held.times.splice(index, 1)
    if (held.times.length === held.first) this.#heldByKey.delete(key)
  }

  #within(key: string, nowMs: number): Held {
    const held = this.#heldByKey.get(key) ?? { times: [], first: 0 }
    while ((held.times[held.first] ?? nowMs) <= nowMs - this.windowMs) held.first++
    // Copied only once most have left: not more, over time, than were added.
    if (2 * held.first > held.times.length) {
      held.times = held.times.slice(held.first)
      held.first = 0
    }
    return held
  }

  #dropIdle(nowMs: number): void {
    for (const [key, { times }] of this.#heldByKey) {
      if ((times.at(-1) ?? Number.NEGATIVE_INFINITY) > nowMs - this.windowMs) return
      this.#heldByKey.delete(key)
    }
  }
}
