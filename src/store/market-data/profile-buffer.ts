// Versions of token profiles that wait in the lake process for the next flush; at most TOKENS_HELD_MAX.
import type { Row } from '../../schema/tables.ts'
import { TOKENS_HELD_MAX } from '../limits.ts'

/** Versions of token profiles, as the server sends them to the lake process: rows of `tokens` without `known_at`. */
export interface ProfileDelivery {
  first: number
  rows: readonly Row[]
}

/** Leaves out each version that another one of the same token and time follows: nothing in a row would say which is valid. */
export function lastVersions(rows: readonly Row[]): Row[] {
  const last = new Map(rows.map((row) => [`${row.mint} ${row.updated_at}`, row]))
  return rows.filter((row) => last.get(`${row.mint} ${row.updated_at}`) === row)
}

export class ProfileBuffer {
  #rows: Row[] = []
  #inLake = 0

  /**
   * Takes rows for the next flush.
   * @param first how many rows this process was sent before these. A reply may come too late for the server, which then sends
   *   the same rows again: those already here are not taken twice.
   * @returns false where there is no room; then nothing was taken
   */
  take({ first, rows }: ProfileDelivery): boolean {
    const added = rows.slice(Math.max(0, this.#inLake + this.#rows.length - first))
    if (this.#rows.length + added.length > TOKENS_HELD_MAX) return false
    this.#rows = this.#rows.concat(added)
    return true
  }

  get held(): number {
    return this.#rows.length
  }

  /** How many rows taken since the start of this process are in files. */
  get inLake(): number {
    return this.#inLake
  }

  /** Rows that wait for a flush, oldest first. */
  waiting(): readonly Row[] {
    return this.#rows
  }

  /** Drops the first `count` rows: they are in files. */
  release(count: number): void {
    this.#rows = this.#rows.slice(count)
    this.#inLake += count
  }
}
