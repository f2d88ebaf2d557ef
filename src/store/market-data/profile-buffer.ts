// In: versions of token profiles from the server. Out: those that no file holds yet, for the next flush. Never holds more
// than TOKENS_HELD_MAX of them.
import type { Row } from '../../schema/tables.ts'
import { TOKENS_HELD_MAX } from '../limits.ts'

export class ProfileBuffer {
  #rows: Row[] = []
  #inLake = 0

  /** False: there is no room, and nothing was taken. */
  take(rows: readonly Row[]): boolean {
    if (this.#rows.length + rows.length > TOKENS_HELD_MAX) return false
    this.#rows.push(...rows)
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
