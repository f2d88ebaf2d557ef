// Caches encoded responses for a few milliseconds. A write invalidates the paths that it changes before it is acknowledged, so
// that a client which has been told of a write also reads it. Responses are kept in two generations, so that they are dropped soon
// after they expire: those that nobody asks for again would otherwise grow old in the heap, with the buffers they were cut from.
import type { HttpAnswer } from '../context.ts'
import {
  CACHED_RESPONSE_BYTES_MAX,
  CACHED_RESPONSES_MAX,
  DEAR_INVALIDATIONS_AT_ONCE,
  DEAR_INVALIDATIONS_PER_SECOND,
  RESPONSE_CACHE_BYTES_MAX,
  RESPONSE_KEPT_MS_MIN,
} from '../limits.ts'
import type { Route } from '../route.ts'

export interface CachedResponse {
  route: Route
  /** Status line and headers as the engine's writeStatus takes them, with a request id at the end, renewed each time. */
  head: Buffer
  /** Bytes of it before the request id, for a request that brought its own id or needs more headers. */
  bytesBeforeId: number
  body: Buffer
  /** Rows that count against the limit of each reader. */
  rows: number
  /** Whether it is still what would be answered, after writes to its path that changed a row each. */
  isUnchanged: (() => boolean) | undefined
  /** Whether it is what would be answered now; undefined: it cannot tell. */
  isNewest: (() => boolean) | undefined
}

interface CacheEntry {
  response: CachedResponse
  /** Until when it may be reused whatever changes, on the monotonic clock. */
  untilMs: number
  /** Until when it may be reused while it is the newest. */
  keptUntilMs: number
  /** Writes that were acknowledged when the request began which made it, or when it was last found to be unchanged. */
  writes: number
}

/** Responses that were cached within a span of time. They are dropped together, and at a maximum of number or bytes. */
class Generation {
  /** From when on it takes no more, on the monotonic clock. */
  readonly untilMs: number
  readonly #byPath = new Map<string, Map<string, CacheEntry>>()
  #count = 0
  #bytes = 0

  constructor(untilMs: number) {
    this.untilMs = untilMs
  }

  find(path: string, cacheKey: string): CacheEntry | undefined {
    return this.#byPath.get(path)?.get(cacheKey)
  }

  isFullFor({ body }: CachedResponse): boolean {
    return this.#count >= CACHED_RESPONSES_MAX || this.#bytes + body.length > RESPONSE_CACHE_BYTES_MAX
  }

  set(path: string, cacheKey: string, entry: CacheEntry): void {
    let entries = this.#byPath.get(path)
    if (entries === undefined) {
      entries = new Map()
      this.#byPath.set(path, entries)
    }
    const replaced = entries.get(cacheKey)
    if (replaced === undefined) this.#count++
    else this.#bytes -= replaced.response.body.length
    this.#bytes += entry.response.body.length
    entries.set(cacheKey, entry)
  }
}

export class ResponseCache {
  readonly #reuseMs: number
  #newer = new Generation(0)
  #older = new Generation(0)
  #writes = 0
  /** Number of the last write that changed every path, and of the last one that changed a given path. */
  #lastWrite = 0
  readonly #lastWriteByPath = new Map<string, number>()
  /** Of those, the last one of a route whose writes change any number of rows, their order, and which there are. */
  readonly #lastDearByPath = new Map<string, number>()
  /** Writes that may still make dear answers invalid, and since when there have been so many, on the monotonic clock. */
  #dearCredit = DEAR_INVALIDATIONS_AT_ONCE
  #dearCreditAtMs = 0

  /** @param reuseMs how old a cached response may be that is not the newest any more. */
  constructor(reuseMs: number) {
    this.#reuseMs = reuseMs
  }

  find(path: string, cacheKey: string, nowMs: number): CachedResponse | undefined {
    const found = this.#newer.find(path, cacheKey) ?? this.#older.find(path, cacheKey)
    return found !== undefined && this.#isFresh(path, found, nowMs) ? found.response : undefined
  }

  /**
   * A response is fresh while it may be reused: at its age anything but a write to its path may have changed it, and after such a
   * write it says itself whether it is still what would be answered: not after a dear one, since it knows of its rows alone. Whatever its
   * age, it is fresh while it is the newest.
   */
  #isFresh(path: string, entry: CacheEntry, nowMs: number): boolean {
    const { isUnchanged, isNewest } = entry.response
    if (nowMs >= entry.untilMs) return nowMs < entry.keptUntilMs && isNewest?.() === true
    if (!this.#isStale(path, entry)) return true
    if (entry.writes < (this.#lastDearByPath.get(path) ?? 0) || isUnchanged?.() !== true) return false
    entry.writes = this.#writes
    return true
  }

  #isStale(path: string, { writes }: CacheEntry): boolean {
    return writes < this.#lastWrite || writes < (this.#lastWriteByPath.get(path) ?? 0)
  }

  /** Writes acknowledged so far. */
  get writes(): number {
    return this.#writes
  }

  /** @param startedAtMs when the request began. @param writes `writes` at that moment. */
  add(path: string, cacheKey: string, response: CachedResponse, startedAtMs: number, writes: number): void {
    if (this.#reuseMs === 0 && response.isNewest === undefined) return
    const untilMs = startedAtMs + this.#reuseMs
    const keptUntilMs = startedAtMs + Math.max(this.#reuseMs, RESPONSE_KEPT_MS_MIN)
    // A generation takes responses for as long as one is kept: when the next one ends, all of its own have expired.
    if (startedAtMs >= this.#newer.untilMs || this.#newer.isFullFor(response)) {
      this.#older = this.#newer
      this.#newer = new Generation(keptUntilMs)
    }
    this.#newer.set(path, cacheKey, { response, untilMs, keptUntilMs, writes })
  }

  /** Invalidates what was cached for the paths that a route's write changes, or is being made for them. Call it before the write is
   *  acknowledged. */
  invalidate({ changes, changesDear }: Pick<Route, 'changes' | 'changesDear'>, nowMs: number): void {
    this.#writes++
    if (changes === undefined) this.#lastWrite = this.#writes
    for (const path of changes ?? []) this.#lastWriteByPath.set(path, this.#writes)
    if (changesDear === undefined || !this.#takeDearCredit(nowMs)) return
    for (const path of changesDear) {
      this.#lastWriteByPath.set(path, this.#writes)
      this.#lastDearByPath.set(path, this.#writes)
    }
  }

  #takeDearCredit(nowMs: number): boolean {
    const earned = ((nowMs - this.#dearCreditAtMs) / 1_000) * DEAR_INVALIDATIONS_PER_SECOND
    const credit = Math.min(DEAR_INVALIDATIONS_AT_ONCE, this.#dearCredit + earned)
    const isEnough = credit >= 1
    this.#dearCredit = isEnough ? credit - 1 : credit
    this.#dearCreditAtMs = nowMs
    return isEnough
  }
}

/** Whether the cache takes an answer: its route allows it, and it is not too large. */
export const isReusable = (answer: HttpAnswer): answer is HttpAnswer & { body: Buffer } =>
  answer.reusable === true &&
  answer.status === 200 &&
  Buffer.isBuffer(answer.body) &&
  answer.body.length <= CACHED_RESPONSE_BYTES_MAX
