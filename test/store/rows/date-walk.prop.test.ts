// A walk over the lake's dates visits each once, newest first, within its bound, and tells where it stopped.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type DateRows, walkDates } from '../../../src/store/query/date-walk.ts'

const START_MS = Date.UTC(2026, 0, 1)
const DAY_MS = 86_400_000
const dateOf = (day: number): string => new Date(START_MS + day * DAY_MS).toISOString().slice(0, 10)

const dates = fc
  .uniqueArray(fc.record({ day: fc.integer({ min: 0, max: 400 }), rows: fc.integer({ min: 0, max: 50 }) }), {
    selector: ({ day }) => day,
    maxLength: 40,
  })
  .map((days) => days.map(({ day, rows }): DateRows => ({ date: dateOf(day), rows })))

test('a walk takes the newest dates in growing steps, until the next one would exceed the bound', () => {
  fc.assert(
    fc.property(dates, fc.integer({ min: 0, max: 500 }), (listed, rowsMax) => {
      const steps = [...walkDates(listed, rowsMax)]
      const newestFirst = listed.toSorted((a, b) => (a.date < b.date ? 1 : -1))
      const walked = steps.flatMap(({ step }) => step)
      const toMs = steps.at(-1)?.toMs ?? null
      expect(walked).toEqual(newestFirst.slice(0, walked.length).map(({ date }) => date))
      for (const [index, { step }] of steps.entries()) expect(step.length).toBeLessThanOrEqual(2 ** index)
      const rowsOf = (count: number) => newestFirst.slice(0, count).reduce((sum, { rows }) => sum + rows, 0)
      if (walked.length > 1) expect(rowsOf(walked.length)).toBeLessThanOrEqual(rowsMax)
      if (walked.length === listed.length) {
        expect(toMs).toBeNull()
      } else {
        expect(walked.length).toBeGreaterThan(0)
        expect(rowsOf(walked.length + 1)).toBeGreaterThan(rowsMax)
        expect(toMs).toBe(Date.parse(walked.at(-1) ?? ''))
      }
    }),
  )
})
