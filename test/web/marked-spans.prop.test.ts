// Which bars of a chart are marked as incomplete, against the plain rule: those that a gap touches.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { ToldGap } from '../../src/schema/event.ts'
import { markedSpans } from '../../src/web/views/token/marked-spans.ts'

const BAR_MS = 60_000
const gapOf = (from: number, to: number | null): ToldGap => ({ from, to, reason: 'disconnect', feed: 'a' })
const barTimes = fc
  .uniqueArray(fc.integer({ min: 10, max: 60 }), { minLength: 1, maxLength: 20 })
  .map((numbers) => numbers.toSorted((a, b) => a - b).map((number) => number * BAR_MS))
const moment = fc.integer({ min: 0, max: 70 * BAR_MS })

test('the bars that a gap touches are marked, and no others', () => {
  fc.assert(
    fc.property(barTimes, moment, fc.option(moment), (timesMs, from, length) => {
      const gap = gapOf(from, length === null ? null : from + length)
      const end = gap.to ?? Number.POSITIVE_INFINITY
      const isTouched = (t: number): boolean => gap.from < t + BAR_MS && end >= t
      const spans = markedSpans(timesMs, BAR_MS, [gap])
      const isMarked = (at: number): boolean => spans.some(({ first, last }) => first <= at && at <= last)
      expect(timesMs.map((_, at) => isMarked(at))).toEqual(timesMs.map(isTouched))
    }),
  )
})

test('a gap that goes on is marked to the edge, and one between two bars between them', () => {
  const timesMs = [1, 2, 9].map((number) => number * BAR_MS)
  expect(markedSpans(timesMs, BAR_MS, [gapOf(20 * BAR_MS, null)])).toEqual([
    { first: 3, last: 2, isOpen: true },
  ])
  expect(markedSpans(timesMs, BAR_MS, [gapOf(4 * BAR_MS, 5 * BAR_MS)])).toEqual([
    { first: 2, last: 1, isOpen: false },
  ])
  expect(markedSpans(timesMs, BAR_MS, [gapOf(0, BAR_MS - 1), gapOf(10 * BAR_MS, 11 * BAR_MS)])).toEqual([])
  expect(markedSpans([], BAR_MS, [gapOf(0, null)])).toEqual([])
})
