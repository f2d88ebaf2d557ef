// In: who reads, how many rows, and when. Out: whether one more read is allowed, over a rolling window, and the headers that
// say so. A window opens with the first read and holds at most the limit of reads; and of rows the limit, and what the
// read that reached it had beyond: a list that is longer than the limit can still be read. Windows run on the monotonic
// clock; only what a header says of their end is wall time.
// At the maximum of readers those idle for a window are forgotten, then the longest known.

import { BoundedMap } from '../../lib/bounded-map.ts'
import type { Instant } from '../../lib/clock.ts'
import { ServiceError } from '../../schema/errors.ts'
import type { Caller } from '../../submissions/types.ts'

interface Reader {
  /** Start of the current window on the monotonic clock; the first read opens it. */
  windowStartMs: number
  used: number
  rows: number
}

/** Rows that a read takes, of so many in a window; `max` 0: no limit. */
export interface Rows {
  count: number
  max: number
}

export interface LimitOptions {
  /** Name in the RateLimit headers. */
  policy: string
  code: 'read_rate_limited' | 'register_rate_limited'
  windowMs: number
  readersMax: number
}

/** The headers where nothing is limited. */
export const NO_LIMITS: Record<string, string> = {}

export class ReadLimits {
  /** The window that was opened first comes first. */
  #readers = new BoundedMap<string, Reader>({})
  #options: LimitOptions

  constructor(options: LimitOptions) {
    this.#options = options
  }

  /**
   * Counts one read of `who`, and its rows where they are known, and answers the headers of its answer; throws 429 when
   * there is none left. `limit` 0 switches the limit off.
   */
  count(who: string, limit: number, now: Instant, rows?: Rows): Record<string, string> {
    if (limit === 0) return NO_LIMITS
    const { policy } = this.#options
    const reader = this.#reader(who, now.monotonicMs)
    if (reader.used >= limit) throw this.#refusal(policy, '', limit, reader, now)
    if (rows !== undefined) this.#countRows(reader, rows, now)
    reader.used++
    return this.#headers(policy, limit, limit - reader.used, this.#resetMs(reader, now), now.wallMs)
  }

  /** Counts rows of a read of `who` that was counted before they were known; throws 429 when there are none left. */
  countRows(who: string, rows: Rows, now: Instant): void {
    this.#countRows(this.#reader(who, now.monotonicMs), rows, now)
  }

  /** Throws 429 when `who` has no rows left of `max`; 0: no limit. */
  admitRows(who: string, max: number, now: Instant): void {
    this.#admitRows(this.#reader(who, now.monotonicMs), max, now)
  }

  #countRows(reader: Reader, { count, max }: Rows, now: Instant): void {
    if (max === 0) return
    if (count > 0) this.#admitRows(reader, max, now)
    reader.rows += count
  }

  #admitRows(reader: Reader, max: number, now: Instant): void {
    if (max > 0 && reader.rows >= max)
      throw this.#refusal(`${this.#options.policy}-rows`, ' rows', max, reader, now)
  }

  /** The reader, in a window that is open. */
  #reader(who: string, nowMs: number): Reader {
    const known = this.#readers.get(who)
    if (known !== undefined && nowMs - known.windowStartMs < this.#options.windowMs) return known
    if (known === undefined && this.#readers.size >= this.#options.readersMax) this.#forget(nowMs)
    const reader = { windowStartMs: nowMs, used: 0, rows: 0 }
    this.#readers.set(who, reader)
    return reader
  }

  #resetMs(reader: Reader, now: Instant): number {
    return Math.ceil(reader.windowStartMs + this.#options.windowMs - now.monotonicMs)
  }

  #refusal(policy: string, what: '' | ' rows', limit: number, reader: Reader, now: Instant): ServiceError {
    const { code, windowMs } = this.#options
    const resetMs = this.#resetMs(reader, now)
    const seconds = Math.ceil(resetMs / 1_000)
    const advice = what === '' ? '' : ' Ask for fewer rows with limit, or have changes alone with follow=1.'
    return new ServiceError(
      code,
      `The limit of ${limit}${what} in ${windowMs / 1_000} seconds is used up; try again in ${seconds} seconds.${advice}`,
      { limit, retryAfterMs: resetMs },
      { ...this.#headers(policy, limit, 0, resetMs, now.wallMs), 'Retry-After': `${seconds}` },
    )
  }

  /** Makes room for one more: all windows that have ended go, and the oldest one in any case. */
  #forget(nowMs: number): void {
    const { windowMs, readersMax } = this.#options
    for (let { oldest } = this.#readers; oldest !== null; { oldest } = this.#readers) {
      const isOpen = nowMs - oldest.value.windowStartMs < windowMs
      if (isOpen && this.#readers.size < readersMax) return
      this.#readers.delete(oldest.key)
    }
  }

  #headers(
    policy: string,
    limit: number,
    remaining: number,
    resetMs: number,
    wallMs: number,
  ): Record<string, string> {
    const { windowMs } = this.#options
    return {
      'RateLimit-Policy': `"${policy}";q=${limit};w=${windowMs / 1_000}`,
      RateLimit: `"${policy}";r=${remaining};t=${Math.ceil(resetMs / 1_000)}`,
      'X-RateLimit-Limit': `${limit}`,
      'X-RateLimit-Remaining': `${remaining}`,
      'X-RateLimit-Reset': `${Math.ceil((wallMs + resetMs) / 1_000)}`,
    }
  }
}

/** Reads are counted by key where one is sent, else by address. */
export const readerOf = (caller: Caller | null, ip: () => string): string =>
  caller === null ? `ip ${ip()}` : `key ${caller.keyHash}`
