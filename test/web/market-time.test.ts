// The market's time on the console's page, between what the server tells.
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { MarketTime } from '../../src/web/market-time.ts'

const SECOND_MS = 1_000
const WEEK_MS = 7 * 86_400 * SECOND_MS

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

test('it is the browser’s until it is told, and then goes on at the pace at which it was told', () => {
  const time = new MarketTime()
  expect(time.nowMs()).toBe(Date.now())
  const beginMs = Date.now() - WEEK_MS
  time.take(beginMs)
  vi.advanceTimersByTime(SECOND_MS)
  expect(time.nowMs()).toBe(beginMs + SECOND_MS)
  time.take(beginMs + 100 * SECOND_MS)
  vi.advanceTimersByTime(SECOND_MS / 2)
  expect(time.nowMs()).toBe(beginMs + 150 * SECOND_MS)
})

test('it stands once the market does, and never goes backwards by itself', () => {
  const time = new MarketTime()
  const endMs = Date.now() - WEEK_MS
  for (const toldMs of [endMs, endMs, endMs - SECOND_MS]) {
    time.take(toldMs)
    vi.advanceTimersByTime(SECOND_MS)
  }
  expect(time.nowMs()).toBe(endMs - SECOND_MS)
})
