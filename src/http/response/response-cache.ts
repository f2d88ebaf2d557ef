// In: answers to reads that a route calls reusable. Out: the very bytes, head included, for whoever asks the same within
// a few milliseconds. A write that was answered ends the reuse of what was begun before it at the paths that it changes,
// so that whoever was told of a write reads it. Never asks what an answer means. At its maximum everything is forgotten:
// that costs one making.
import type { HttpAnswer } from '../context.ts'
import { CACHED_RESPONSE_BYTES_MAX, CACHED_RESPONSES_MAX, RESPONSE_CACHE_BYTES_MAX } from '../limits.ts'
import type { Route } from '../route.ts'

export interface CachedResponse {
  route: Route
  /** Status line and headers, as the engine's writeStatus takes them. Ends with a request id, to be renewed. */
  head: Buffer
  /** The same bytes without that header, for a request that has more to say. */
  headWithoutId: Buffer
  body: Buffer
  /** What each reader is counted for it. */
  rows: number
}

interface CacheEntry extends CachedResponse {
  /** Reuse ends here, ms of the monotonic clock. */
  untilMs: number
  /** Writes answered when its making began. */
  writes: number
}

export class ResponseCache {
  readonly #reuseMs: number
  readonly #byPath = new Map<string, Map<string, CacheEntry>>()
  #count = 0
  #bytes = 0
  #writes = 0
  /** The last write that changed any path's answers, and those that changed one path's. */
  #lastWrite = 0
  readonly #lastWriteOf = new Map<string, number>()

  /** @param reuseMs how old a reused answer may be; 0: every answer is made anew. */
  constructor(reuseMs: number) {
    this.#reuseMs = reuseMs
  }

  /** True when answers are reused at all. */
  get isOn(): boolean {
    return this.#reuseMs > 0
  }

  /** The answer to `question` at `path` that may be given again at `nowMs`. */
  find(path: string, cacheKey: string, nowMs: number): CachedResponse | undefined {
    const found = this.#byPath.get(path)?.get(cacheKey)
    return found !== undefined && nowMs < found.untilMs && !this.#isStale(path, found) ? found : undefined
  }

  #isStale(path: string, { writes }: CacheEntry): boolean {
    return writes < this.#lastWrite || writes < (this.#lastWriteOf.get(path) ?? 0)
  }

  /** Writes answered so far. */
  get writes(): number {
    return this.#writes
  }

  /** Keeps what was just made: begun at `startedAtMs`, when `writes` had been answered. */
  keep(path: string, cacheKey: string, answer: CachedResponse, startedAtMs: number, writes: number): void {
    const { body } = answer
    if (this.#count >= CACHED_RESPONSES_MAX || this.#bytes + body.length > RESPONSE_CACHE_BYTES_MAX)
      this.#clear()
    let entries = this.#byPath.get(path)
    if (entries === undefined) {
      entries = new Map()
      this.#byPath.set(path, entries)
    }
    const replaced = entries.get(cacheKey)
    if (replaced === undefined) this.#count++
    else this.#bytes -= replaced.body.length
    this.#bytes += body.length
    entries.set(cacheKey, { ...answer, untilMs: startedAtMs + this.#reuseMs, writes })
  }

  /** A write is about to be answered that changes what `paths` answer; null: any path. */
  writeAnswered(paths: readonly string[] | null): void {
    this.#writes++
    if (paths === null) this.#lastWrite = this.#writes
    else for (const path of paths) this.#lastWriteOf.set(path, this.#writes)
  }

  #clear(): void {
    this.#byPath.clear()
    this.#count = 0
    this.#bytes = 0
  }
}

/** Whether an answer may be given again: a route says so, and it is not too large to be kept. */
export const isReusable = (answer: HttpAnswer): answer is HttpAnswer & { body: Buffer } =>
  answer.reusable === true &&
  answer.status === 200 &&
  Buffer.isBuffer(answer.body) &&
  answer.body.length <= CACHED_RESPONSE_BYTES_MAX
