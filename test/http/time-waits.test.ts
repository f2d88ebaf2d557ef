// Requests that wait for market time: when they end and, where it is stepped, in which order.
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { TIME_WAIT_MS_MAX } from '../../src/http/limits.ts'
import { TimeWaits } from '../../src/http/time-waits.ts'
import { openTestServer } from '../support/test-server.ts'

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

test('one that waits does not hold up the end of the server: it is told the time as it is', async () => {
  vi.useRealTimers()
  const server = await openTestServer()
  const untilMs = Date.now() + 3_600_000
  const waiting = server.client.get(`/api/v1/time?until=${untilMs}`)
  await expect.poll(() => server.timeWaits.size).toBe(1)
  const startedMs = performance.now()
  await server.remove()
  expect(performance.now() - startedMs).toBeLessThan(TIME_WAIT_MS_MAX / 2)
  const { status, body } = await waiting
  expect(status).toBe(200)
  expect(body.data.marketTime).toBeLessThan(untilMs)
})
