// Waits that are longer than a timer can be.
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Deadline, wait } from '../../src/client/waiting.ts'

const MONTH_MS = 30 * 24 * 3_600_000
beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

test('a month passes before it is over, and a deadline that was restarted after weeks is over a month later', async () => {
  const events: string[] = []
  void wait(MONTH_MS).then(() => events.push('waited'))
  const deadline = new Deadline(MONTH_MS)
  deadline.signal.addEventListener('abort', () => events.push('over'))
  await vi.advanceTimersByTimeAsync(MONTH_MS - 1)
  expect(events).toEqual([])
  deadline.restart(MONTH_MS)
  await vi.advanceTimersByTimeAsync(1)
  expect(events).toEqual(['waited'])
  await vi.advanceTimersByTimeAsync(MONTH_MS)
  expect([events, deadline.isOver]).toEqual([['waited', 'over'], true])
})

test('what is for ever can be aborted, and leaves no timer', async () => {
  const controller = new AbortController()
  const waiting = expect(wait(Infinity, controller.signal)).rejects.toBe('enough')
  const deadline = new Deadline(Infinity)
  await vi.advanceTimersByTimeAsync(3 * MONTH_MS)
  controller.abort('enough')
  deadline.end()
  await waiting
  expect([deadline.isOver, vi.getTimerCount()]).toEqual([false, 0])
})
