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

test('a replay of less than a day ago stands once it has ended, as the server says that it is one', () => {
  const time = new MarketTime()
  const endMs = Date.now() - 7_200 * SECOND_MS
  for (let second = 0; second < 5; second++) {
    time.take(endMs, true)
    vi.advanceTimersByTime(SECOND_MS)
  }
  expect(time.nowMs()).toBe(endMs)
})

test('the market of today goes as clocks do, however near or late messages are, and is older each second where it tells nothing new', () => {
  const time = new MarketTime()
  let marketMs = 0
  const aheadMs = 3_600_000
  const steps = [0, 15, 3, 1_000, 1_900, 100, 1_000, 60_000]
  for (const [at, passedMs] of steps.entries()) {
    vi.advanceTimersByTime(passedMs)
    // Told in steps of 100 ms, and up to 900 ms late.
    marketMs = Math.floor((Date.now() + aheadMs) / 100) * 100 - (at % 2 === 0 ? 0 : 900)
    const before = time.nowMs()
    time.take(marketMs)
    expect(Math.abs(time.nowMs() - (Date.now() + aheadMs))).toBeLessThan(2_000)
    if (at > 0) expect(time.nowMs()).toBe(before)
  }
  const lastMs = time.nowMs()
  for (let second = 0; second < 60; second++) {
    vi.advanceTimersByTime(SECOND_MS)
    time.take(marketMs)
  }
  expect(time.nowMs()).toBe(lastMs + 60 * SECOND_MS)
})

test('what it was told behind a long time says nothing of its pace', () => {
  const time = new MarketTime()
  const beginMs = Date.now() - WEEK_MS
  time.take(beginMs)
  vi.advanceTimersByTime(SECOND_MS)
  time.take(beginMs + 100 * SECOND_MS)
  vi.advanceTimersByTime(3_600 * SECOND_MS)
  time.take(beginMs + 200 * SECOND_MS)
  expect(time.nowMs()).toBe(beginMs + 200 * SECOND_MS)
  vi.advanceTimersByTime(3)
  time.take(beginMs + 201 * SECOND_MS)
  vi.advanceTimersByTime(SECOND_MS)
  expect(time.nowMs()).toBe(beginMs + 300.3 * SECOND_MS)
})
