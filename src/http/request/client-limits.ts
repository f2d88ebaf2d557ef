import type { Clock } from '../../lib/clock.ts'
import type { Caller, Quota } from '../../submissions/types.ts'
import type { Reader } from '../access.ts'
import type { DocumentSettings } from '../docs/texts/limits-text.ts'
import { READ_WINDOW_MS, REGISTER_WINDOW_MS, ROWS_PER_READ } from '../limits.ts'
import { NO_LIMITS, ReadLimits, readerOf } from './read-limits.ts'

type ClientLimitSettings = Pick<DocumentSettings, 'readLimitAnonymous' | 'readLimitKeyed' | 'registerLimit'>

/**
 * Applies the configured limits to clients: reads and rows per minute, registrations per hour. A client is a key, an address
 * where no key was sent, or the consoles of an address, which have the limit of a key together. All methods throw ServiceError 429 when a limit is reached; 0 switches a limit off.
 */
export class ClientLimits {
  readonly #settings: ClientLimitSettings
  readonly #rowsPerRead: number
  readonly #reads: ReadLimits
  readonly #registrations: ReadLimits

  constructor(settings: ClientLimitSettings, clock: Clock, rowsPerRead = ROWS_PER_READ) {
    this.#settings = settings
    this.#rowsPerRead = rowsPerRead
    this.#reads = new ReadLimits('read', READ_WINDOW_MS, clock)
    this.#registrations = new ReadLimits('register', REGISTER_WINDOW_MS, clock)
  }

  /** Counts one read, and its rows where they are known already. @returns the rate-limit headers of the answer. */
  countRead(reader: Reader, ip: () => string, rows = 0): Record<string, string> {
    const limit = this.#readsMax(reader)
    if (limit === 0) return NO_LIMITS
    const counted = { count: rows, max: this.#rowsMax(reader) }
    return this.#reads.count(readerOf(reader, ip), limit, counted)
  }

  /** What is left of an agent's reads; null: they are not limited. */
  readQuota(caller: Caller): Quota | null {
    const reader = readerOf(caller, () => '')
    return this.#reads.quota(reader, this.#readsMax(caller))
  }

  /** Counts the rows of a read that was counted before its rows were known. */
  countRows(reader: Reader, ip: () => string, rows: number): void {
    const counted = { count: rows, max: this.#rowsMax(reader) }
    if (counted.max > 0 && rows > 0) this.#reads.countRows(readerOf(reader, ip), counted)
  }

  /** Throws when the client has no rows left, without counting any. */
  admitRows(reader: Reader, ip: () => string): void {
    const max = this.#rowsMax(reader)
    if (max > 0) this.#reads.admitRows(readerOf(reader, ip), max)
  }

  /** Counts one registration. @returns the rate-limit headers of the answer. */
  countRegistration(ip: string): Record<string, string> {
    return this.#registrations.count(ip, this.#settings.registerLimit)
  }

  #readsMax(reader: Reader): number {
    return reader === null ? this.#settings.readLimitAnonymous : this.#settings.readLimitKeyed
  }

  #rowsMax(reader: Reader): number {
    return this.#readsMax(reader) * this.#rowsPerRead
  }
}
