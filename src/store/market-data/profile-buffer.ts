// In: versions of token profiles from the server. Out: those that no file holds yet, for the next flush. Never holds more
// than TOKENS_HELD_MAX of them.
import type { Row } from '../../schema/tables.ts'
import { TOKENS_HELD_MAX } from '../limits.ts'

/** Versions of token profiles as the lake process is handed them: rows of `tokens` without `known_at`. */
export interface ProfileDelivery {
  first: number
  rows: readonly Row[]
}

export class ProfileBuffer {
  #rows: Row[] = []
  #inLake = 0

  /**
   * @param first how many rows this process was handed before these. An answer may come too late for the server, which then
   *   hands the same rows over again: what is here already is not taken twice.
   * @returns false: there is no room, and nothing was taken.
   */
  take({ first, rows }: ProfileDelivery): boolean {
    const fresh = rows.slice(Math.max(0, this.#inLake + this.#rows.length - first))
    if (this.#rows.length + fresh.length > TOKENS_HELD_MAX) return false
    this.#rows.push(...fresh)
    return true
  }

  get held(): number {
    return this.#rows.length
  }

  /** Rows taken since the start of this process that are in files. */
  get inLake(): number {
    return this.#inLake
  }

  /** What waits now. */
  waiting(): readonly Row[] {
    return this.#rows
  }

  /** The first `count` rows are in files. */
  release(count: number): void {
    this.#rows = this.#rows.slice(count)
    this.#inLake += count
  }
}
