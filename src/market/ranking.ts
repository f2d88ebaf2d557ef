// In: (token, key) pairs that change one at a time. Out: any page of them in order, at the cost of the page.
// A sorted list in chunks with the keys inline, so that a search touches no other memory. Descending by key; equal
// keys by a tie-breaker that never changes. Never knows what a key means.

const CHUNK_MAX = 512
/** A chunk below this is joined to its neighbour. */
const CHUNK_MIN = 96

/** Room for heads at first; doubled when more chunks come. */
const HEADS_MIN = 64

class Chunk {
  keys = new Float64Array(CHUNK_MAX)
  ids = new Uint32Array(CHUNK_MAX)
  size = 0
  /** Set once a snapshot shares this chunk: it is copied before the next write. */
  shared = false
}

/** One frozen order of a list. Reading it never sees later changes. */
export interface RankingSnapshot {
  size: number
  slice(offset: number, limit: number, descending: boolean): Uint32Array
}

export class Ranking {
  #chunks: Chunk[] = [new Chunk()]
  /** First key and id of each chunk, side by side: the search for a chunk touches nothing else. */
  #headKeys = new Float64Array(HEADS_MIN)
  #headIds = new Uint32Array(HEADS_MIN)
  #size = 0
  /** True when `a` comes before `b` at equal keys. */
  #before: (a: number, b: number) => boolean

  constructor(before: (a: number, b: number) => boolean) {
    this.#before = before
  }

  get size(): number {
    return this.#size
  }

  insert(id: number, key: number): void {
    const chunkIndex = this.#chunkFor(id, key)
    this.#insertAt(chunkIndex, this.#position(this.#chunks[chunkIndex], id, key), id, key)
  }

  remove(id: number, key: number): void {
    const chunkIndex = this.#chunkFor(id, key)
    this.#removeAt(chunkIndex, this.#find(chunkIndex, id, key))
  }

  /** Gives `id`, which stands here with `oldKey`, the key `newKey`. */
  update(id: number, oldKey: number, newKey: number): void {
    if (oldKey === newKey) return
    const chunkIndex = this.#chunkFor(id, oldKey)
    const chunk = this.#chunks[chunkIndex]
    const position = this.#find(chunkIndex, id, oldKey)
    const fitsAbove =
      position > 0
        ? this.#precedes(chunk.ids[position - 1], chunk.keys[position - 1], id, newKey)
        : chunkIndex === 0
    const fitsBelow =
      position < chunk.size - 1
        ? this.#precedes(id, newKey, chunk.ids[position + 1], chunk.keys[position + 1])
        : chunkIndex === this.#chunks.length - 1
    if (fitsAbove && fitsBelow) {
      this.#writable(chunkIndex).keys[position] = newKey
      if (position === 0) this.#headKeys[chunkIndex] = newKey
      return
    }
    const target = this.#chunkFor(id, newKey)
    if (target === chunkIndex) {
      this.#moveWithin(this.#writable(chunkIndex), position, id, newKey)
      this.#setHead(chunkIndex)
      return
    }
    this.#removeAt(chunkIndex, position)
    this.insert(id, newKey)
  }

  /** The token at the lowest end, or -1. */
  last(): number {
    if (this.#size === 0) return -1
    const chunk = this.#chunks[this.#chunks.length - 1]
    return chunk.ids[chunk.size - 1]
  }

  /** Up to `limit` ids from `offset` on; ascending is the exact reverse of descending. */
  slice(offset: number, limit: number, descending: boolean): Uint32Array {
    return sliceOf(this.#chunks, this.#size, offset, limit, descending)
  }

  /** Freezes the present order at the cost of its list of chunks; later writes copy the chunk they touch. */
  snapshot(): RankingSnapshot {
    const chunks = this.#chunks.slice()
    for (const chunk of chunks) chunk.shared = true
    const size = this.#size
    return { size, slice: (offset, limit, descending) => sliceOf(chunks, size, offset, limit, descending) }
  }

  #precedes(a: number, aKey: number, b: number, bKey: number): boolean {
    return aKey === bKey ? this.#before(a, b) : aKey > bKey
  }

  /** The chunk in which (id, key) stands or would stand: the last one that does not begin after it. */
  #chunkFor(id: number, key: number): number {
    let low = 0
    let high = this.#chunks.length - 1
    while (low < high) {
      const middle = (low + high + 1) >>> 1
      const headKey = this.#headKeys[middle]
      const headId = this.#headIds[middle]
      const notAfter = headKey === key ? headId === id || this.#before(headId, id) : headKey > key
      if (notAfter) low = middle
      else high = middle - 1
    }
    return low
  }

  /** The first entry of a chunk has changed. */
  #setHead(chunkIndex: number): void {
    this.#headKeys[chunkIndex] = this.#chunks[chunkIndex].keys[0]
    this.#headIds[chunkIndex] = this.#chunks[chunkIndex].ids[0]
  }

  /** Chunks were added or taken away from `chunkIndex` on: rare, once in many changes. */
  #setHeadsFrom(chunkIndex: number): void {
    if (this.#chunks.length > this.#headKeys.length) {
      const keys = new Float64Array(this.#headKeys.length * 2)
      const ids = new Uint32Array(this.#headIds.length * 2)
      keys.set(this.#headKeys)
      ids.set(this.#headIds)
      this.#headKeys = keys
      this.#headIds = ids
    }
    for (let index = chunkIndex; index < this.#chunks.length; index++) this.#setHead(index)
  }

  /** The first place in the chunk whose entry does not come before (id, key). */
  #position(chunk: Chunk, id: number, key: number): number {
    const keys = chunk.keys
    let low = 0
    let high = chunk.size
    while (low < high) {
      const middle = (low + high) >>> 1
      const middleKey = keys[middle]
      const before =
        middleKey === key ? chunk.ids[middle] !== id && this.#before(chunk.ids[middle], id) : middleKey > key
      if (before) low = middle + 1
      else high = middle
    }
    return low
  }

  #find(chunkIndex: number, id: number, key: number): number {
    const chunk = this.#chunks[chunkIndex]
    const position = this.#position(chunk, id, key)
    if (chunk.ids[position] !== id || position >= chunk.size)
      throw new Error(`assertion failed: ${id} is not ranked with ${key}`)
    return position
  }

  #writable(chunkIndex: number): Chunk {
    const chunk = this.#chunks[chunkIndex]
    if (!chunk.shared) return chunk
    const copy = new Chunk()
    copy.keys.set(chunk.keys)
    copy.ids.set(chunk.ids)
    copy.size = chunk.size
    this.#chunks[chunkIndex] = copy
    return copy
  }

  #moveWithin(chunk: Chunk, from: number, id: number, key: number): void {
    chunk.keys.copyWithin(from, from + 1, chunk.size)
    chunk.ids.copyWithin(from, from + 1, chunk.size)
    chunk.size--
    const to = this.#position(chunk, id, key)
    chunk.keys.copyWithin(to + 1, to, chunk.size)
    chunk.ids.copyWithin(to + 1, to, chunk.size)
    chunk.keys[to] = key
    chunk.ids[to] = id
    chunk.size++
  }

  #insertAt(chunkIndex: number, position: number, id: number, key: number): void {
    const chunk = this.#writable(chunkIndex)
    chunk.keys.copyWithin(position + 1, position, chunk.size)
    chunk.ids.copyWithin(position + 1, position, chunk.size)
    chunk.keys[position] = key
    chunk.ids[position] = id
    chunk.size++
    this.#size++
    if (position === 0) this.#setHead(chunkIndex)
    if (chunk.size === CHUNK_MAX) this.#split(chunkIndex)
  }

  #removeAt(chunkIndex: number, position: number): void {
    const chunk = this.#writable(chunkIndex)
    chunk.keys.copyWithin(position, position + 1, chunk.size)
    chunk.ids.copyWithin(position, position + 1, chunk.size)
    chunk.size--
    this.#size--
    if (position === 0) this.#setHead(chunkIndex)
    if (chunk.size < CHUNK_MIN && this.#chunks.length > 1) this.#join(chunkIndex)
  }

  #split(chunkIndex: number): void {
    const chunk = this.#chunks[chunkIndex]
    const half = chunk.size >>> 1
    const upper = new Chunk()
    upper.keys.set(chunk.keys.subarray(half, chunk.size))
    upper.ids.set(chunk.ids.subarray(half, chunk.size))
    upper.size = chunk.size - half
    chunk.size = half
    this.#chunks.splice(chunkIndex + 1, 0, upper)
    this.#setHeadsFrom(chunkIndex + 1)
  }

  #join(chunkIndex: number): void {
    const left = chunkIndex === 0 ? 0 : chunkIndex - 1
    const right = this.#chunks[left + 1]
    const size = this.#chunks[left].size + right.size
    // Joining into an almost full chunk would split it again at once; an empty chunk must go in any case.
    if (size > CHUNK_MAX - CHUNK_MIN && this.#chunks[chunkIndex].size > 0) return
    const target = this.#writable(left)
    target.keys.set(right.keys.subarray(0, right.size), target.size)
    target.ids.set(right.ids.subarray(0, right.size), target.size)
    target.size += right.size
    this.#chunks.splice(left + 1, 1)
    this.#setHeadsFrom(left)
  }
}

function sliceOf(
  chunks: readonly Chunk[],
  size: number,
  offset: number,
  limit: number,
  descending: boolean,
): Uint32Array {
  const count = Math.max(0, Math.min(limit, size - offset))
  const ids = new Uint32Array(count)
  let skip = descending ? offset : size - offset - count
  let chunkIndex = 0
  if (count === 0) return ids
  while (skip >= chunks[chunkIndex].size) skip -= chunks[chunkIndex++].size
  for (let filled = 0; filled < count; chunkIndex++, skip = 0) {
    const chunk = chunks[chunkIndex]
    const take = Math.min(chunk.size - skip, count - filled)
    ids.set(chunk.ids.subarray(skip, skip + take), filled)
    filled += take
  }
  return descending ? ids : ids.reverse()
}
