const ZEROS_KEPT_MAX = 1_024

/**
 * Sums by key. One that is zero is forgotten, but only where there are more than ZEROS_KEPT_MAX: a Map that is emptied and filled
 * again makes a new table each time, and V8's old tables hold on to the new ones until the next full collection.
 */
export class KeyedSums {
  readonly #sums = new Map<string, number>()

  get(key: string): number {
    return this.#sums.get(key) ?? 0
  }

  add(key: string, amount: number): void {
    const sum = this.get(key) + amount
    if (sum === 0 && this.#sums.size > ZEROS_KEPT_MAX) this.#sums.delete(key)
    else this.#sums.set(key, sum)
  }
}
