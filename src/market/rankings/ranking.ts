import { assert } from '../../lib/assert.ts'
import { appendEntries, CHUNK_MAX, CHUNK_MIN, Chunk, moveWithin, scratchFor, sliceChunks } from './chunk.ts'

/** At most this many ids are sorted by insertion. */
const INSERTION_SORT_MAX = 64

/** Chunks for whose heads there is room at first. */
const HEADS_MIN = 64

/** The order of a list at one moment; later changes do not show. */
export interface RankingSnapshot {
  size: number
  slice(offset: number, limit: number, descending: boolean): Uint32Array
}

/**
 * Ids sorted by a key, descending; ids with equal keys by a tie-breaker that never changes. It is a sorted list in chunks, with the
 * keys beside the ids, so that a search touches no other memory. A page costs its rows, not the list.
 */
export class Ranking {
  #chunks: Chunk[] = [new Chunk()]
  /** First key and id of each chunk, so that the search for a chunk touches no chunk. */
  #headKeys = new Float64Array(HEADS_MIN)
  #headIds = new Uint32Array(HEADS_MIN)
  #size = 0
  /** True when `a` comes before `b` at equal keys. */
  readonly #before: (a: number, b: number) => boolean

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

  /** Inserts ids, which are in order, into a list that is empty. @param keys by id. */
  insertSorted(ids: Uint32Array, keys: Float64Array): void {
    assert(this.#size === 0, 'sorted ids are inserted into an empty list')
    if (ids.length === 0) return
    const chunks: Chunk[] = []
    appendEntries(chunks, null, { ids, keys: Float64Array.from(ids, (id) => keys[id]) }, ids.length)
    this.#chunks = chunks
    this.#size = ids.length
    this.#setHeadsFrom(0)
  }

  remove(id: number, key: number): void {
    const chunkIndex = this.#chunkFor(id, key)
    this.#removeAt(chunkIndex, this.#find(chunkIndex, id, key))
  }

  /** Changes the key of `id`. */
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
    if (this.#holds(chunkIndex, id, newKey)) {
      moveWithin(this.#writable(chunkIndex), position, this.#position(chunk, id, newKey), id, newKey)
      this.#setHead(chunkIndex)
      return
    }
    this.#removeAt(chunkIndex, position)
    this.insert(id, newKey)
  }

  /**
   * Changes the keys of many ids in one pass over the list, which from about a hundredth of the list on is much cheaper than as many
   * calls of `update`. The ids are grouped by the chunk where their new key belongs; then every chunk is rewritten once.
   * @param ids without repeats; all are in the list.
   * @param isMoving by id: not 0 for these ids and 0 for all others.
   * @param keys by id: the new key.
   */
  updateMany(ids: Uint32Array, isMoving: Uint8Array, keys: Float64Array): void {
    const { bounds, arrivals } = this.#groupByChunk(ids, keys)
    const chunks: Chunk[] = []
    for (let index = 0; index < this.#chunks.length; index++) {
      const coming = this.#sort(arrivals.subarray(bounds[index], bounds[index + 1]), keys)
      this.#rewrite(chunks, this.#chunks[index], coming, isMoving, keys)
    }
    if (chunks.length === 0) chunks.push(new Chunk())
    this.#chunks = chunks
    this.#setHeadsFrom(0)
  }

  /** Groups ids by the chunk where their new key belongs; those of chunk i begin at `bounds[i]`. */
  #groupByChunk(ids: Uint32Array, keys: Float64Array): { bounds: Uint32Array; arrivals: Uint32Array } {
    const targets = new Uint32Array(ids.length)
    const bounds = new Uint32Array(this.#chunks.length + 1)
    for (let at = 0; at < ids.length; at++) {
      targets[at] = this.#chunkFor(ids[at], keys[ids[at]])
      bounds[targets[at] + 1]++
    }
    for (let index = 1; index < bounds.length; index++) bounds[index] += bounds[index - 1]
    const next = bounds.slice()
    const arrivals = new Uint32Array(ids.length)
    for (let at = 0; at < ids.length; at++) arrivals[next[targets[at]]++] = ids[at]
    return { bounds, arrivals }
  }

  /** Sorts ids by their keys, in place. */
  #sort(ids: Uint32Array, keys: Float64Array): Uint32Array {
    if (ids.length > INSERTION_SORT_MAX)
      return ids.sort((a, b) => (this.#precedes(a, keys[a], b, keys[b]) ? -1 : a === b ? 0 : 1))
    for (let at = 1; at < ids.length; at++) {
      const id = ids[at]
      let to = at
      for (; to > 0 && this.#precedes(id, keys[id], ids[to - 1], keys[ids[to - 1]]); to--)
        ids[to] = ids[to - 1]
      ids[to] = id
    }
    return ids
  }

  /** Appends to `chunks` the entries that stay in a chunk, merged with those that come to it. */
  #rewrite(
    chunks: Chunk[],
    chunk: Chunk,
    coming: Uint32Array,
    isMoving: Uint8Array,
    keys: Float64Array,
  ): void {
    const merged = scratchFor(chunk.size + coming.length)
    let size = 0
    let arrival = 0
    for (let position = 0; position < chunk.size; position++) {
      const id = chunk.ids[position]
      if (isMoving[id] !== 0) continue
      const key = chunk.keys[position]
      for (; arrival < coming.length; arrival++, size++) {
        const other = coming[arrival]
        if (!this.#precedes(other, keys[other], id, key)) break
        merged.ids[size] = other
        merged.keys[size] = keys[other]
      }
      merged.ids[size] = id
      merged.keys[size++] = key
    }
    for (; arrival < coming.length; arrival++, size++) {
      merged.ids[size] = coming[arrival]
      merged.keys[size] = keys[coming[arrival]]
    }
    appendEntries(chunks, chunk.isShared ? null : chunk, merged, size)
  }

  /** The key at a position, counted from the highest key; -Infinity beyond the end. */
  keyAt(position: number): number {
    let rest = position
    for (const chunk of this.#chunks) {
      if (rest < chunk.size) return chunk.keys[rest]
      rest -= chunk.size
    }
    return Number.NEGATIVE_INFINITY
  }

  /** The id with the lowest key, or -1. */
  last(): number {
    if (this.#size === 0) return -1
    const chunk = this.#chunks[this.#chunks.length - 1]
    return chunk.ids[chunk.size - 1]
  }

  /** See `sliceChunks`. */
  slice(offset: number, limit: number, descending: boolean): Uint32Array {
    return sliceChunks(this.#chunks, this.#size, offset, limit, descending)
  }

  /** Freezes the present order by copying the list of chunks; later writes copy the chunk that they change. */
  snapshot(): RankingSnapshot {
    const chunks = this.#chunks.slice()
    for (const chunk of chunks) chunk.isShared = true
    const size = this.#size
    return {
      size,
      slice: (offset, limit, descending) => sliceChunks(chunks, size, offset, limit, descending),
    }
  }

  #precedes(a: number, aKey: number, b: number, bKey: number): boolean {
    return aKey === bKey ? this.#before(a, b) : aKey > bKey
  }

  /** The chunk that holds (id, key) or would hold it: the last one that does not begin after it. */
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

  /** Whether (id, key) belongs into this chunk. */
  #holds(chunkIndex: number, id: number, key: number): boolean {
    const next = chunkIndex + 1
    if (chunkIndex > 0 && !this.#precedes(this.#headIds[chunkIndex], this.#headKeys[chunkIndex], id, key))
      return false
    return next === this.#chunks.length || this.#precedes(id, key, this.#headIds[next], this.#headKeys[next])
  }

  /** The first entry of a chunk has changed. */
  #setHead(chunkIndex: number): void {
    this.#headKeys[chunkIndex] = this.#chunks[chunkIndex].keys[0]
    this.#headIds[chunkIndex] = this.#chunks[chunkIndex].ids[0]
  }

  /** Chunks were added or removed from `chunkIndex` on, which is rare. */
  #setHeadsFrom(chunkIndex: number): void {
    if (this.#chunks.length > this.#headKeys.length) {
      const keys = new Float64Array(this.#chunks.length * 2)
      const ids = new Uint32Array(this.#chunks.length * 2)
      keys.set(this.#headKeys)
      ids.set(this.#headIds)
      this.#headKeys = keys
      this.#headIds = ids
    }
    for (let index = chunkIndex; index < this.#chunks.length; index++) this.#setHead(index)
  }

  /** The first position in the chunk whose entry does not come before (id, key). */
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
    assert(position < chunk.size && chunk.ids[position] === id, 'an id is ranked with the key given for it')
    return position
  }

  #writable(chunkIndex: number): Chunk {
    const chunk = this.#chunks[chunkIndex]
    if (!chunk.isShared) return chunk
    const copy = new Chunk()
    copy.keys.set(chunk.keys)
    copy.ids.set(chunk.ids)
    copy.size = chunk.size
    this.#chunks[chunkIndex] = copy
    return copy
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
    // An almost full chunk would have to be split again at once. An empty chunk must go in any case.
    if (size > CHUNK_MAX - CHUNK_MIN && this.#chunks[chunkIndex].size > 0) return
    const target = this.#writable(left)
    target.keys.set(right.keys.subarray(0, right.size), target.size)
    target.ids.set(right.ids.subarray(0, right.size), target.size)
    target.size += right.size
    this.#chunks.splice(left + 1, 1)
    this.#setHeadsFrom(left)
  }
}
