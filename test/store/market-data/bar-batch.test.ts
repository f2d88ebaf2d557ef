// The bounds of the buffer of closed bars and of the duplicate filter.
import { expect, test } from 'vitest'
import { BARS_BATCH_ROWS, BARS_WAITING_MAX, SEEN_BARS_TOKENS_MAX } from '../../../src/store/limits.ts'
import { BarBuffer } from '../../../src/store/market-data/bar-batch.ts'
import { SeenBars } from '../../../src/store/market-data/seen-bars.ts'
import { closedBar as bar } from '../support.ts'

test('a full buffer drops and counts bars, and a batch that did not arrive is sent first again', () => {
  const buffer = new BarBuffer()
  for (let i = 0; i < BARS_WAITING_MAX + 3; i++) buffer.add(bar({ n: i }))
  expect([buffer.waiting, buffer.dropped]).toEqual([BARS_WAITING_MAX, 3])
  const first = buffer.take()!
  buffer.requeue(first)
  expect(buffer.take()).toEqual(first)
  buffer.markSent(first)
  expect(buffer.waiting).toBe(BARS_WAITING_MAX - BARS_BATCH_ROWS)
  // Bars that are not in a file yet may have to be sent again.
  buffer.add(bar())
  expect(buffer.dropped).toBe(4)
  buffer.confirm(BARS_BATCH_ROWS)
  buffer.add(bar())
  expect(buffer.dropped).toBe(4)
})

test('bars of a forgotten token are uncertain up to its last bar, those of other tokens are not', () => {
  const seen = new SeenBars(100)
  expect(seen.note('a', 3, 100)).toBe('uncertain')
  expect(seen.note('a', 3, 160)).toBe('new')
  expect(seen.note('a', 3, 160)).toBe('duplicate')
  for (let token = 1; token < SEEN_BARS_TOKENS_MAX; token++) seen.note(`token ${token}`, 4, 200)
  expect(seen.note('c', 3, 300)).toBe('new')
  expect(seen.note('a', 3, 160)).toBe('uncertain')
  expect(seen.note('c', 3, 310)).toBe('new')
})
