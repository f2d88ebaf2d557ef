// Encodes the rows of large pages a few at a time, so that other requests are served in between: the rows of a whole market take
// a second. One page is prepared at a time, and taken at one moment once its rows are there.

import pLimit from 'p-limit'
import { nextTurn } from '../../lib/wait.ts'
import { LARGE_PAGES_WAITING_MAX, ROWS_PER_TURN } from '../limits.ts'
import { overloaded } from './rate-limit-headers.ts'

export class LargePages {
  readonly #queue = pLimit(1)

  /**
   * @param admitRows throws if the reader has used up its rows. Called before the page waits, and again before it is made.
   * @param prepare encodes at most so many rows. Returns whether all are encoded.
   * @param rowsMax rows of the page.
   * @param take makes the answer from the page.
   * @throws ServiceError `overloaded` if too many pages wait.
   */
  make<T>(
    admitRows: () => void,
    prepare: (rowsMax: number) => boolean,
    rowsMax: number,
    take: () => T,
  ): Promise<T> {
    admitRows()
    if (this.#queue.pendingCount >= LARGE_PAGES_WAITING_MAX) {
      throw overloaded('Too many clients ask for large lists at once; ask for fewer rows, or try again.')
    }
    return this.#queue(async () => {
      // Lets the answer before this one be counted first.
      await nextTurn()
      admitRows()
      // Rows that change meanwhile are encoded again. If they change faster than that, the rest is encoded in one go.
      const turnsMax = Math.ceil((2 * rowsMax) / ROWS_PER_TURN)
      for (let turn = 0; turn < turnsMax && !prepare(ROWS_PER_TURN); turn++) await nextTurn()
      return take()
    })
  }
}
