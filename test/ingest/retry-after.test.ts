import { expect, test } from 'vitest'
import { readRetryAfterMs } from '../../src/ingest/retry-after.ts'

const DATE = 'Sun, 22 Nov 2026 10:00:00 GMT'

test.each([
  ['5', null, 5_000],
  [' 0.25 ', null, 250],
  ['0', null, null],
  ['-5', null, null],
  ['', null, null],
  [null, null, null],
  [undefined, undefined, null],
  ['soon', DATE, null],
  ['NaN', DATE, null],
  ['Sun, 22 Nov 2026 10:02:00 GMT', DATE, 120_000],
  ['Sun, 22 Nov 2026 09:00:00 GMT', DATE, null],
  // Without the date of the answer nobody knows how long that is.
  ['Sun, 22 Nov 2026 10:02:00 GMT', null, null],
])('Retry-After %j of an answer of %j asks for a wait of %j ms', (retryAfter, date, waitMs) => {
  expect(readRetryAfterMs(retryAfter, date)).toBe(waitMs)
})
