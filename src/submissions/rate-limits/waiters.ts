// In: who waits for something of a key to end. Out: all of them awake, in the order in which they came. Never decides what
// ended: whoever wakes looks again.

export class Waiters {
  readonly #byKey = new Map<string, (() => void)[]>()

  /** Resolves with the next `wake` of that key. */
  next(key: string): Promise<void> {
    return new Promise((resolve) => {
      const waiting = this.#byKey.get(key)
      if (waiting === undefined) this.#byKey.set(key, [resolve])
      else waiting.push(resolve)
    })
  }

  wake(key: string): void {
    const waiting = this.#byKey.get(key)
    this.#byKey.delete(key)
    for (const resolve of waiting ?? []) resolve()
  }
}
