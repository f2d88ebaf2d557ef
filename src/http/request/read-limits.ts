// Limits reads and rows for each reader, in windows that open with the reader's first read. The answer that reaches the limit
// of rows is sent whole, so that a list longer than the limit can be read. Windows run on the monotonic clock; only the
// header that tells when one ends is wall time.
import { type Clock, type Instant, readClock } from '../../lib/clock.ts'
import { BoundedMap } from '../../lib/collections/bounded-map.ts'
import { ServiceError } from '../../schema/errors.ts'
import type { Quota } from '../../submissions/types.ts'
import { CONSOLE_READER, type Reader } from '../access.ts'
import { READERS_MAX } from '../limits.ts'
import { rateLimitHeaders, retryAfter } from '../response/rate-limit-headers.ts'

/** What one reader has used of its window. */
interface Usage {
  /** Start of the window on the monotonic clock. */
  windowStartMs: number
  reads: number
  rows: number
}

/** Rows of one read, and how many a window allows; `max` 0: no limit. */
export interface Rows {
  count: number
  max: number
}

/** The headers of an answer that no limit applies to. */
export const NO_LIMITS: Record<string, string> = {}

export class ReadLimits {
  /** By reader; the one whose window opened first is the oldest. */
  readonly #usage = new BoundedMap<string, Usage>({ entriesMax: READERS_MAX })
  readonly #policy: 'read' | 'register'
  readonly #windowMs: number
  readonly #clock: Clock

  /** @param policy its name in the RateLimit headers */
  constructor(policy: 'read' | 'register', windowMs: number, clock: Clock) {
    this.#policy = policy
    this.#windowMs = windowMs
    this.#clock = clock
  }

  /**
   * Counts one read, and its rows if they are known.
   * @param limit reads in a window; 0: no limit.
   * @returns the headers that describe the limit. @throws ServiceError with status 429.
   */
  count(reader: string, limit: number, rows?: Rows): Record<string, string> {
    if (limit === 0) return NO_LIMITS
    const now = readClock(this.#clock)
    const usage = this.#openWindow(reader, now.monotonicMs)
    if (usage.reads >= limit) throw this.#refusal('', limit, usage, now)
    if (rows !== undefined) this.#countRows(usage, rows, now)
    usage.reads++
    return rateLimitHeaders(this.#policy, this.#quota(limit, limit - usage.reads, usage, now))
  }

  /** What is left of a reader's reads. Counts nothing; null: there is no limit. */
  quota(reader: string, limit: number): Quota | null {
    if (limit === 0) return null
    const [now, windowMs] = [readClock(this.#clock), this.#windowMs]
    const usage = this.#usage.get(reader)
    const resetMs = usage === undefined ? 0 : Math.max(0, this.#resetMs(usage, now))
    const remaining = usage === undefined || resetMs === 0 ? limit : Math.max(0, limit - usage.reads)
    return { limit, remaining, windowMs, resetMs, resetAtMs: now.wallMs + resetMs }
  }

  /** Counts the rows of a read that is counted already. @throws ServiceError with status 429 if none are left. */
  countRows(reader: string, rows: Rows): void {
    const now = readClock(this.#clock)
    this.#countRows(this.#openWindow(reader, now.monotonicMs), rows, now)
  }

  /** Counts nothing. @param max rows in a window; 0: no limit. @throws ServiceError with status 429 if none are left. */
  admitRows(reader: string, max: number): void {
    const now = readClock(this.#clock)
    this.#admitRows(this.#openWindow(reader, now.monotonicMs), max, now)
  }

  #countRows(usage: Usage, { count, max }: Rows, now: Instant): void {
    if (max === 0) return
    if (count > 0) this.#admitRows(usage, max, now)
    usage.rows += count
  }

  #admitRows(usage: Usage, max: number, now: Instant): void {
    if (max > 0 && usage.rows >= max) throw this.#refusal(' rows', max, usage, now)
  }

  /** The reader's current window; a new one if the last has ended. */
  #openWindow(reader: string, nowMs: number): Usage {
    const known = this.#usage.get(reader)
    if (known !== undefined && nowMs - known.windowStartMs < this.#windowMs) return known
    const usage = { windowStartMs: nowMs, reads: 0, rows: 0 }
    this.#usage.set(reader, usage)
    return usage
  }

  /** Time until the window ends. */
  #resetMs(usage: Usage, now: Instant): number {
    return Math.ceil(usage.windowStartMs + this.#windowMs - now.monotonicMs)
  }

  #quota(limit: number, remaining: number, usage: Usage, now: Instant): Quota {
    const resetMs = this.#resetMs(usage, now)
    return { limit, remaining, windowMs: this.#windowMs, resetMs, resetAtMs: now.wallMs + resetMs }
  }

  #refusal(what: '' | ' rows', limit: number, usage: Usage, now: Instant): ServiceError {
    const policy = what === '' ? this.#policy : `${this.#policy}-rows`
    const quota = this.#quota(limit, 0, usage, now)
    const { resetMs } = quota
    const seconds = Math.ceil(resetMs / 1_000)
    const advice = what === '' ? '' : ' Ask for fewer rows with limit, or for changes only with follow=1.'
    return new ServiceError(
      `${this.#policy}_rate_limited`,
      `The limit of ${limit}${what} in ${this.#windowMs / 1_000} seconds is used up; try again in ${seconds} seconds.${advice}`,
      { limit, retryAfterMs: resetMs },
      { ...rateLimitHeaders(policy, quota), ...retryAfter(resetMs) },
    )
  }
}

/** Reads are counted by the owner of the key, whichever of its keys it sends, without one by address; those of the consoles of an
 *  address apart from its others. */
export function readerOf(reader: Reader, ip: () => string): string {
  if (reader === null) return `ip ${ip()}`
  return reader === CONSOLE_READER ? `console ${ip()}` : `agent ${reader.agent.agentId}`
}
