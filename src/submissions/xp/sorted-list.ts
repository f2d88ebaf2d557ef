// A list that stays sorted while items are added and removed. It is kept in chunks, so that a change moves a few hundred items
// of a million, and the place of an item follows from the lengths of the chunks before it.

/** A chunk that grows beyond this is split in two. */
const CHUNK_ITEMS_MAX = 512

export class SortedList<Item> {
  readonly #compare: (a: Item, b: Item) => number
  /** None is empty. */
  readonly #chunks: Item[][] = []

  /** @param compare a total order: 0 only for an item and itself. */
  constructor(compare: (a: Item, b: Item) => number, items: Iterable<Item> = []) {
    this.#compare = compare
    const sorted = [...items].sort(compare)
    const size = CHUNK_ITEMS_MAX / 2
    for (let from = 0; from < sorted.length; from += size) this.#chunks.push(sorted.slice(from, from + size))
  }

  add(item: Item): void {
    const chunks = this.#chunks
    const index = Math.min(this.#chunkOf(item), Math.max(0, chunks.length - 1))
    const chunk = chunks[index]
    if (chunk === undefined) {
      chunks.push([item])
      return
    }
    chunk.splice(this.#indexIn(chunk, item), 0, item)
    if (chunk.length > CHUNK_ITEMS_MAX) chunks.splice(index + 1, 0, chunk.splice(CHUNK_ITEMS_MAX / 2))
  }

  /** Removes an item that is in the list. What it is sorted by must not have changed since it was added. */
  remove(item: Item): void {
    const index = this.#chunkOf(item)
    const chunk = this.#chunks[index]
    if (chunk === undefined) return
    chunk.splice(this.#indexIn(chunk, item), 1)
    if (chunk.length === 0) this.#chunks.splice(index, 1)
  }

  /** How many items come before this one. */
  indexOf(item: Item): number {
    const index = this.#chunkOf(item)
    const before = this.#chunks.slice(0, index).reduce((sum, { length }) => sum + length, 0)
    const chunk = this.#chunks[index]
    return chunk === undefined ? before : before + this.#indexIn(chunk, item)
  }

  /** The first items, `count` at most. */
  first(count: number): Item[] {
    const items: Item[] = []
    for (const chunk of this.#chunks) {
      if (items.length >= count) break
      items.push(...chunk.slice(0, count - items.length))
    }
    return items
  }

  /** The first chunk whose last item does not come before `item`. */
  #chunkOf(item: Item): number {
    return lowerBound(this.#chunks, (chunk) => {
      const last = chunk.at(-1)
      return last !== undefined && this.#compare(last, item) < 0
    })
  }

  /** The first place in a chunk whose item does not come before `item`. */
  #indexIn(chunk: readonly Item[], item: Item): number {
    return lowerBound(chunk, (each) => this.#compare(each, item) < 0)
  }
}

/** The first `count` items in the order of `compare`, without sorting all of them. */
export function firstOf<Item>(
  items: Iterable<Item>,
  count: number,
  compare: (a: Item, b: Item) => number,
): Item[] {
  let first: Item[] = []
  /** Items behind this one are not among the first. */
  let last: Item | undefined
  for (const item of items) {
    if (last !== undefined && compare(item, last) > 0) continue
    first.push(item)
    if (first.length < 2 * count) continue
    first = first.sort(compare).slice(0, count)
    last = first.at(-1)
  }
  return first.sort(compare).slice(0, count)
}

/** The first index of an entry of which `isBefore` is false; it is true of all entries below. */
function lowerBound<Entry>(entries: readonly Entry[], isBefore: (entry: Entry) => boolean): number {
  let from = 0
  let to = entries.length
  while (from < to) {
    const middle = (from + to) >>> 1
    const entry = entries[middle]
    if (entry !== undefined && isBefore(entry)) from = middle + 1
    else to = middle
  }
  return from
}
