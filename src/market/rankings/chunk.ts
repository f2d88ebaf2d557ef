// Sorted chunks of (id, key) entries, of which ranking.ts makes a sorted list.

export const CHUNK_MAX = 512
/** A chunk with fewer entries is joined to its neighbour. */
export const CHUNK_MIN = 96
/** Entries of chunks that are made many at a time, so that they have room for more. */
const CHUNK_FILLED = 384

export class Chunk {
  keys = new Float64Array(CHUNK_MAX)
  ids = new Uint32Array(CHUNK_MAX)
  size = 0
  /** A snapshot shares this chunk, so it is copied before the next write. */
  isShared = false
}

/** Moves the entry at `from` to before the one at `before`, with a new key. */
export function moveWithin(
  { keys, ids }: Chunk,
  from: number,
  before: number,
  id: number,
  key: number,
): void {
  let at = from
  // Loops instead of copyWithin: most entries move a few places, less work than the call.
  for (; at < before - 1; at++) {
    keys[at] = keys[at + 1]
    ids[at] = ids[at + 1]
  }
  for (; at > before; at--) {
    keys[at] = keys[at - 1]
    ids[at] = ids[at - 1]
  }
  keys[at] = key
  ids[at] = id
}

/** Sorted entries, side by side. */
export interface Entries {
  keys: Float64Array
  ids: Uint32Array
}

let scratch: Entries = { keys: new Float64Array(0), ids: new Uint32Array(0) }

/** Memory for the entries of one chunk and its arrivals, shared by all rankings: valid until the next call. */
export function scratchFor(size: number): Entries {
  if (scratch.keys.length < size)
    scratch = { keys: new Float64Array(2 * size), ids: new Uint32Array(2 * size) }
  return scratch
}

/**
 * Appends sorted entries to a list of chunks: a few to the last chunk, many as several chunks.
 * @param reused a chunk that may be overwritten.
 */
export function appendEntries(
  chunks: Chunk[],
  reused: Chunk | null,
  { keys, ids }: Entries,
  size: number,
): void {
  const last = chunks.at(-1)
  const isFew = size < CHUNK_MIN || (last !== undefined && last.size < CHUNK_MIN)
  if (last !== undefined && !last.isShared && isFew && last.size + size <= CHUNK_FILLED) {
    last.keys.set(keys.subarray(0, size), last.size)
    last.ids.set(ids.subarray(0, size), last.size)
    last.size += size
    return
  }
  const pieces = size < CHUNK_MAX ? 1 : Math.ceil(size / CHUNK_FILLED)
  let free = reused
  for (let piece = 0, from = 0; size > 0 && piece < pieces; piece++) {
    const to = Math.floor((size * (piece + 1)) / pieces)
    const chunk = free ?? new Chunk()
    free = null
    chunk.keys.set(keys.subarray(from, to))
    chunk.ids.set(ids.subarray(from, to))
    chunk.size = to - from
    chunks.push(chunk)
    from = to
  }
}

/** Ranks behind every known key, in either direction. */
export const KEY_UNKNOWN = Number.NEGATIVE_INFINITY

/** How many entries have a known key. */
function countKnown(chunks: readonly Chunk[], size: number): number {
  let known = size
  for (let index = chunks.length - 1; index >= 0; index--) {
    const { keys, size: inChunk } = chunks[index]
    let at = inChunk
    while (at > 0 && keys[at - 1] === KEY_UNKNOWN) at--
    known -= inChunk - at
    if (at > 0) break
  }
  return known
}

/** Up to `limit` ids from `offset` on. Ascending is descending reversed, but for unknown keys, which are last in both. */
export function sliceChunks(
  chunks: readonly Chunk[],
  size: number,
  offset: number,
  limit: number,
  descending: boolean,
): Uint32Array {
  if (descending) return sliceDescending(chunks, size, offset, limit)
  return sliceAscending(countKnown(chunks, size), offset, limit, (from, count) =>
    sliceDescending(chunks, size, from, count),
  )
}

/** @param known how many ids have a known key. @param descending ids of the list in descending order. */
export function sliceAscending(
  known: number,
  offset: number,
  limit: number,
  descending: (offset: number, limit: number) => Uint32Array,
): Uint32Array {
  const count = Math.max(0, Math.min(limit, known - offset))
  const ids = descending(known - offset - count, count).reverse()
  if (count === limit) return ids
  const unknown = descending(Math.max(offset, known), limit - count)
  const both = new Uint32Array(count + unknown.length)
  both.set(ids)
  both.set(unknown, count)
  return both
}

function sliceDescending(chunks: readonly Chunk[], size: number, offset: number, limit: number): Uint32Array {
  const count = Math.max(0, Math.min(limit, size - offset))
  const ids = new Uint32Array(count)
  let skip = offset
  let chunkIndex = 0
  if (count === 0) return ids
  while (skip >= chunks[chunkIndex].size) skip -= chunks[chunkIndex++].size
  for (let filled = 0; filled < count; chunkIndex++, skip = 0) {
    const chunk = chunks[chunkIndex]
    const take = Math.min(chunk.size - skip, count - filled)
    ids.set(chunk.ids.subarray(skip, skip + take), filled)
    filled += take
  }
  return ids
}
