// Requests that wait for the time of a stepped market: when they end, and in which order.
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { TIME_WAIT_MS_MAX } from '../../src/http/limits.ts'
import { TimeWaits } from '../../src/http/time-waits.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

test('one whose time has come waits for its turn, however long those before it take; one whose time has not ends', async () => {
  const market = { timeMs: 0 }
  const waits = new TimeWaits(market, true)
  const ended: string[] = []
  const wait = (name: string, untilMs: number): void =>
    void waits.until(untilMs, () => {}, name).then(() => ended.push(name))
  wait('later', 100)
  wait('second', 10)
  wait('first', 10)
  market.timeMs = 10
  const rankOf = (key: string): number => ['first', 'second'].indexOf(key)
  expect(waits.wakeNext(rankOf)).toBe(true)
  await vi.advanceTimersByTimeAsync(TIME_WAIT_MS_MAX)
  expect(ended).toEqual(['first', 'later'])
  expect(waits.isDue).toBe(true)
  expect(waits.wakeNext(rankOf)).toBe(true)
  await vi.advanceTimersByTimeAsync(0)
  expect(ended).toEqual(['first', 'later', 'second'])
  expect([waits.wakeNext(rankOf), waits.size]).toEqual([false, 0])
})

test('one whose client goes ends', async () => {
  const market = { timeMs: 0 }
  const waits = new TimeWaits(market, true)
  let leave = (): void => {}
  const waiting = waits.until(10, (gone) => {
    leave = gone
  })
  market.timeMs = 10
  await vi.advanceTimersByTimeAsync(TIME_WAIT_MS_MAX)
  expect(waits.size).toBe(1)
  leave()
  await waiting
  expect(waits.size).toBe(0)
})
