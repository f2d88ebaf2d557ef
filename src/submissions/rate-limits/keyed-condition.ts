/** A condition variable for each key. A waiter that is notified must check its condition again. */
export class KeyedCondition {
  readonly #waitersByKey = new Map<string, (() => void)[]>()

  /** Resolves with the next `notifyAll` of that key. */
  wait(key: string): Promise<void> {
    return new Promise((resolve) => {
      const waiters = this.#waitersByKey.get(key)
      if (waiters === undefined) this.#waitersByKey.set(key, [resolve])
      else waiters.push(resolve)
    })
  }

  /** Wakes all waiters of a key, in the order in which they came. */
  notifyAll(key: string): void {
    const waiters = this.#waitersByKey.get(key)
    this.#waitersByKey.delete(key)
    for (const resolve of waiters ?? []) resolve()
  }
}
