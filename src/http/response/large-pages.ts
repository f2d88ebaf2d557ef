// In: large pages, whose rows are not all made. Out: each of them once its rows are made, a few in each turn of the event
// loop and one page at a time: the rows of a whole market take a second, and others are served in between. The page is
// still taken at one moment. Never knows what a row is.
import { setImmediate } from 'node:timers/promises'
import pLimit from 'p-limit'
import { ServiceError } from '../../schema/errors.ts'
import { LARGE_PAGES_WAITING_MAX, ROWS_PER_TURN } from '../limits.ts'

export class LargePages {
  readonly #queue = pLimit(1)

  /**
   * @param admit refuses whoever may have no more by now, by throwing: before it waits, and before it is made.
   * @param prepare makes at most so many rows, and says whether all are made.
   * @param rowsMax of the page.
   * @param take takes the page: what it answers is answered.
   * @throws ServiceError `overloaded` when too many wait.
   */
  make<T>(
    admit: () => void,
    prepare: (rowsMax: number) => boolean,
    rowsMax: number,
    take: () => T,
  ): Promise<T> {
    admit()
    if (this.#queue.pendingCount >= LARGE_PAGES_WAITING_MAX) {
      throw new ServiceError(
        'overloaded',
        'Too many large lists are asked for at once; ask for fewer rows, or try again.',
        { retryAfterMs: 1_000 },
        { 'Retry-After': '1' },
      )
    }
    return this.#queue(async () => {
      // By then the rows of the one before it are counted.
      await setImmediate()
      admit()
      // Rows change meanwhile, and are made again. Where they change faster than they are made the rest is made at once.
      const turnsMax = Math.ceil((2 * rowsMax) / ROWS_PER_TURN)
      for (let turn = 0; turn < turnsMax && !prepare(ROWS_PER_TURN); turn++) await setImmediate()
      return take()
    })
  }
}
