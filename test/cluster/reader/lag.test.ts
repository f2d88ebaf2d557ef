// How far behind a reader says that it is, with a clock that the test sets.
import { expect, it } from 'vitest'
import { Lag } from '../../../src/cluster/reader/lag.ts'
import { CLOCK_SPAN_MS } from '../../../src/cluster/reader/limits.ts'

/** Messages every 100 ms for so long, each `delayMs` on its way. @returns the own time at the end */
function live(lag: Lag, fromMs: number, forMs: number, busAheadMs: number, delayMs = 2): number {
  let nowMs = fromMs
  for (const endMs = fromMs + forMs; nowMs < endMs; nowMs += 100) {
    lag.compareClocks(nowMs - delayMs + busAheadMs, nowMs)
    lag.applied(nowMs - delayMs + busAheadMs)
  }
  return nowMs - 100
}

it.each([0, 10_000, -10_000, 1.8e12])('clocks that are %i ms apart make no difference', (busAheadMs) => {
  const lag = new Lag()
  expect(lag.lagMs(0)).toBe(Number.POSITIVE_INFINITY)
  const endMs = live(lag, 0, 5_000, busAheadMs)
  expect(lag.lagMs(endMs)).toBeCloseTo(0)
  expect(lag.lagMs(endMs + 700)).toBeCloseTo(700)
  expect(lag.behindMs(endMs + 700)).toBeCloseTo(700)
})

it('one that catches up is as far behind as the messages that it applies are old', () => {
  const lag = new Lag()
  // The bus tells its time where its messages are asked for.
  lag.compareClocks(1_000_000, 50)
  lag.applied(400_000)
  expect(lag.lagMs(50)).toBe(600_000)
  lag.applied(1_000_000)
  expect(lag.lagMs(60)).toBe(10)
})

it('a clock of the bus that is set back is followed, and where the bus has nothing newer nobody is behind meanwhile', () => {
  const lag = new Lag()
  let nowMs = live(lag, 0, 5_000, 0)
  nowMs = live(lag, nowMs + 100, 1_000, -10_000)
  expect(lag.lagMs(nowMs)).toBeGreaterThan(9_000)
  lag.confirm(nowMs - 20)
  expect(lag.behindMs(nowMs)).toBeCloseTo(20)
  nowMs = live(lag, nowMs + 100, 3 * CLOCK_SPAN_MS, -10_000)
  expect(lag.lagMs(nowMs)).toBeLessThan(5)
})

it('while the writer is away the age of the state grows, and what was confirmed counts for the reader', () => {
  const lag = new Lag()
  const endMs = live(lag, 0, 1_000, 0)
  lag.confirm(endMs + 60_000)
  expect(lag.lagMs(endMs + 60_500)).toBeCloseTo(60_500)
  expect(lag.behindMs(endMs + 60_500)).toBeCloseTo(500)
})

it('what tells nothing new leaves the age of the state as it is, and nobody is behind or without a writer by it', () => {
  const lag = new Lag()
  const endMs = live(lag, 0, 1_000, 0)
  lag.compareClocks(endMs + 9_998, endMs + 10_000)
  lag.heard(endMs + 9_998)
  expect(lag.lagMs(endMs + 10_000)).toBeCloseTo(10_000)
  expect(lag.silentMs(endMs + 10_000)).toBeCloseTo(0)
  expect(lag.behindMs(endMs + 10_000)).toBeCloseTo(0)
  expect([lag.isBefore(endMs + 9_998), lag.isBefore(endMs + 10_000)]).toEqual([false, true])
})
