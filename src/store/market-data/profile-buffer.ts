// Versions of token profiles that wait in the lake process for the next flush; at most TOKENS_HELD_MAX.
import type { Row } from '../../schema/tables.ts'
import { TOKENS_HELD_MAX } from '../limits.ts'

/** Versions of token profiles, as the server sends them to the lake process: rows of `tokens` without `known_at`. */
export interface ProfileDelivery {
  first: number
  rows: readonly Row[]
}

/**
 * Leaves out each version that one of the same token and of the same time follows, or of an earlier time, as where market time was
 * put right: rows of one flush are in the order of these times, and nothing else in them says which is valid.
 */
export function lastVersions(rows: readonly Row[]): Row[] {
  const followedByMs = new Map<unknown, number>()
  const last = rows.toReversed().filter(({ mint, updated_at }) => {
    const atMs = Number(updated_at)
    if (atMs >= (followedByMs.get(mint) ?? Number.POSITIVE_INFINITY)) return false
    followedByMs.set(mint, atMs)
    return true
  })
  return last.reverse()
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
