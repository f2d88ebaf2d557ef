// The market times that a writer tells: never one that an event which is not told yet has happened before.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { MarketTimes } from '../../../src/cluster/writer/market-times.ts'

test('a time is told with the events before it, however often and in whichever order it is asked for', () => {
  const step = fc.record({ events: fc.nat(3), ms: fc.nat(5), asked: fc.nat(100) })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 100 }), (steps) => {
      const times = new MarketTimes()
      /** When each event happened, from the first one on. */
      const atMs: number[] = []
      let nowMs = 1_000
      for (const { events, ms, asked } of steps) {
        for (let count = 0; count < events; count++) atMs.push(nowMs)
        nowMs += ms
        times.note(atMs.length, nowMs)
        for (const eventNo of [atMs.length, asked % (atMs.length + 1)])
          expect(times.at(eventNo)).toBeLessThanOrEqual(atMs[eventNo] ?? nowMs)
        expect(times.at(atMs.length)).toBe(nowMs)
      }
    }),
  )
})

test('is not known of events before those that are remembered', () => {
  const times = new MarketTimes()
  for (let eventNo = 1; eventNo <= 1_000; eventNo++) times.note(eventNo, 5_000 + eventNo)
  expect(times.at(1)).toBe(0)
  expect(times.at(999)).toBe(5_999)
})
