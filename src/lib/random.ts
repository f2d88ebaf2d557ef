import { randomFillSync } from 'node:crypto'
import { assert } from './assert.ts'

const BATCH_NUMBERS = 1_024
const RANGE = 2 ** 32

/**
 * A source of cryptographically strong numbers, uniform in [0, 1), to be used like `Math.random`. It draws from the system in
 * batches, because one call for each number would cost more than the work it is needed for.
 */
export function machineRandom(): () => number {
  const drawn = new Uint32Array(BATCH_NUMBERS)
  let used = BATCH_NUMBERS
  return () => {
    if (used === BATCH_NUMBERS) {
      randomFillSync(drawn)
      used = 0
    }
    const number = drawn[used++]
    assert(number !== undefined, 'a new batch was drawn when the last one was used up')
    return number / RANGE
  }
}
