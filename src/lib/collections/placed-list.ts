/** An item that knows where it is in its list. */
export interface Placed {
  /** Its index, or -1 outside. Belongs to the list. */
  place: number
}

/**
 * Items in no order, for what comes and goes with each request. Unlike a Set it allocates nothing for that: a Set that is emptied
 * and filled again makes a new table each time, and V8's old tables hold on to the new ones until the next full collection.
 */
export class PlacedList<Item extends Placed> {
  readonly #items: Item[] = []

  get size(): number {
    return this.#items.length
  }

  add(item: Item): void {
    item.place = this.#items.push(item) - 1
  }

  /** Does nothing for an item outside. */
  remove(item: Item): void {
    if (item.place < 0) return
    const last = this.#items.pop()
    if (last !== undefined && last !== item) {
      this.#items[item.place] = last
      last.place = item.place
    }
    item.place = -1
  }

  /** A copy, so that items may be removed meanwhile. */
  toArray(): Item[] {
    return [...this.#items]
  }
}
