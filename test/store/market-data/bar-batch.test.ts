// The two bounds of a batch of bars: its rows and its tokens.
import { expect, test } from 'vitest'
import { BARS_BATCH_ROWS, BARS_WAITING_MAX } from '../../../src/store/limits.ts'
import { BarBuffer } from '../../../src/store/market-data/bar-batch.ts'
import { BarMarks } from '../../../src/store/market-data/bar-marks.ts'
import { closedBar as bar } from '../support.ts'

test('beyond the bound bars are dropped and counted, and a batch that did not arrive keeps its place', () => {
  const buffer = new BarBuffer()
  for (let i = 0; i < BARS_WAITING_MAX + 3; i++) buffer.add(bar({ n: i }))
  expect([buffer.waiting, buffer.dropped]).toEqual([BARS_WAITING_MAX, 3])
  const first = buffer.take()!
  buffer.giveBack(first)
  expect(buffer.take()).toEqual(first)
  buffer.sent(first)
  expect(buffer.waiting).toBe(BARS_WAITING_MAX - BARS_BATCH_ROWS)
  // What is in no file yet may have to be sent again.
  buffer.add(bar())
  expect(buffer.dropped).toBe(4)
  buffer.confirm(BARS_BATCH_ROWS)
  buffer.add(bar())
  expect(buffer.dropped).toBe(4)
})

test('a token whose mark was given up is in doubt, others are not', () => {
  const marks = new BarMarks(100, 2)
  expect(marks.note('a', 3, 100)).toBe('doubtful')
  expect(marks.note('a', 3, 160)).toBe('new')
  expect(marks.note('a', 3, 160)).toBe('again')
  expect(marks.note('b', 4, 200)).toBe('new')
  expect(marks.note('c', 3, 300)).toBe('new')
  expect(marks.note('a', 3, 160)).toBe('doubtful')
  expect(marks.note('c', 3, 310)).toBe('new')
})
