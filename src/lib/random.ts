// In: the machine's randomness. Out: one number after another from it. Never gives a number twice.
import { randomFillSync } from 'node:crypto'

const NUMBERS_AT_ONCE = 1_024
const RANGE = 2 ** 32

/** Unpredictable numbers, uniform in [0, 1). Drawn many at a time: a call for each costs more than what it is for. */
export function machineRandom(): () => number {
  const drawn = new Uint32Array(NUMBERS_AT_ONCE)
  let used = NUMBERS_AT_ONCE
  return () => {
    if (used === NUMBERS_AT_ONCE) {
      randomFillSync(drawn)
      used = 0
    }
    return drawn[used++] / RANGE
  }
}
