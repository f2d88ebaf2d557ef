/** A condition variable for each key. A waiter that is notified must check its condition again. */
export class KeyedCondition {
  readonly #nextByKey = new Map<string, PromiseWithResolvers<void>>()

  /** Resolves with the next `notifyAll` of that key. */
  wait(key: string): Promise<void> {
    const next = this.#nextByKey.get(key) ?? Promise.withResolvers<void>()
    this.#nextByKey.set(key, next)
    return next.promise
  }

  /** Wakes all waiters of a key, in the order in which they came. */
  notifyAll(key: string): void {
    this.#nextByKey.get(key)?.resolve()
    this.#nextByKey.delete(key)
  }
}
