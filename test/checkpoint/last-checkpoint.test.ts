// When a stop writes one more checkpoint.
import { expect, test } from 'vitest'
import { savesTime } from '../../src/checkpoint/checkpoint-scheduler.ts'

const MEGABYTE = 1_000_000

test.each([
  ['a small market: always', 1, 50 * MEGABYTE, true],
  ['a large market, behind which much was traded', 600_000, 750 * MEGABYTE, true],
  [
    'a large market, behind which little was traded: applying that takes less time',
    400_000,
    750 * MEGABYTE,
    false,
  ],
])('%s', (_, events, bytes, expected) => {
  expect(savesTime(events, bytes)).toBe(expected)
})
