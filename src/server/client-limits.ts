import type { Config } from '../config/settings.ts'
import type { Reader } from '../http/access.ts'
import { READ_WINDOW_MS, READERS_MAX, REGISTER_WINDOW_MS, ROWS_PER_READ } from '../http/limits.ts'
import { NO_LIMITS, ReadLimits, readerOf } from '../http/request/read-limits.ts'
import { type Clock, readClock } from '../lib/clock.ts'
import type { Caller, Quota } from '../submissions/types.ts'

type ClientLimitSettings = Pick<Config, 'readLimitAnonymous' | 'readLimitKeyed' | 'registerLimit'>

/**
 * Applies the configured limits to clients: reads and rows per minute, registrations per hour. A client is a key, an address
 * where no key was sent, or the consoles of an address, which have the limit of a key together. All methods throw ServiceError 429 when a limit is reached; 0 switches a limit off.
 */
export class ClientLimits {
  readonly #settings: ClientLimitSettings
  readonly #clock: Clock
  readonly #rowsPerRead: number
  readonly #reads = new ReadLimits({
    policy: 'read',
    code: 'read_rate_limited',
    windowMs: READ_WINDOW_MS,
    readersMax: READERS_MAX,
  })
  readonly #registrations = new ReadLimits({
    policy: 'register',
    code: 'register_rate_limited',
    windowMs: REGISTER_WINDOW_MS,
    readersMax: READERS_MAX,
  })

  constructor(settings: ClientLimitSettings, clock: Clock, rowsPerRead = ROWS_PER_READ) {
    this.#settings = settings
    this.#rowsPerRead = rowsPerRead
    this.#clock = clock
  }

  /** Counts one read, and its rows where they are known already. @returns the rate-limit headers of the answer. */
  countRead(reader: Reader, ip: () => string, rows = 0): Record<string, string> {
    const limit = this.#readsMax(reader)
    if (limit === 0) return NO_LIMITS
    const counted = { count: rows, max: this.#rowsMax(reader) }
    return this.#reads.count(readerOf(reader, ip), limit, readClock(this.#clock), counted)
  }

  /** What is left of an agent's reads; null: they are not limited. */
  readQuota(caller: Caller): Quota | null {
    return this.#reads.quota(
      readerOf(caller, () => ''),
      this.#readsMax(caller),
      readClock(this.#clock),
    )
  }

  /** Counts the rows of a read that was counted before its rows were known. */
  countRows(reader: Reader, ip: () => string, rows: number): void {
    const counted = { count: rows, max: this.#rowsMax(reader) }
    if (counted.max > 0 && rows > 0)
      this.#reads.countRows(readerOf(reader, ip), counted, readClock(this.#clock))
  }

  /** Throws when the client has no rows left, without counting any. */
  admitRows(reader: Reader, ip: () => string): void {
    const max = this.#rowsMax(reader)
    if (max > 0) this.#reads.admitRows(readerOf(reader, ip), max, readClock(this.#clock))
  }

  /** Counts one registration. @returns the rate-limit headers of the answer. */
  countRegistration(ip: string): Record<string, string> {
    return this.#registrations.count(ip, this.#settings.registerLimit, readClock(this.#clock))
  }

  #readsMax(reader: Reader): number {
    return reader === null ? this.#settings.readLimitAnonymous : this.#settings.readLimitKeyed
  }

  #rowsMax(reader: Reader): number {
    return this.#readsMax(reader) * this.#rowsPerRead
  }
}
