import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { Backoff, backoffMs, jittered } from '../../src/lib/backoff.ts'
import { nextTurn, Pause, unlessLate, within } from '../../src/lib/wait.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))
afterEach(() => void vi.useRealTimers())
const never = new Promise<never>(() => {})
const fail = () => Promise.reject(new Error('it failed'))

it('what is done in time is waited for, and no timer is left', async () => {
  expect(await within(1_000, Promise.resolve('done'))).toBe(true)
  expect(await unlessLate(1_000, Promise.resolve('done'), () => 'late')).toBe('done')
  expect(vi.getTimerCount()).toBe(0)
})

it('what is not done in time is not waited for any longer', async () => {
  const [isDone, value, thrown] = [
    within(1_000, never),
    unlessLate(1_000, never, () => 'late'),
    unlessLate(1_000, never, () => {
      throw new Error('late')
    }),
  ]
  const refused = expect(thrown).rejects.toThrow('late')
  vi.advanceTimersByTime(999)
  expect(await Promise.race([isDone, nextTurn('not yet')])).toBe('not yet')
  vi.advanceTimersByTime(1)
  expect([await isDone, await value]).toEqual([false, 'late'])
  await refused
})

it('a failure in time is the caller’s; one that comes later is nobody’s', async () => {
  await expect(within(1_000, fail())).rejects.toThrow('it failed')
  await expect(unlessLate(1_000, fail(), () => 'late')).rejects.toThrow('it failed')
  expect(vi.getTimerCount()).toBe(0)
  const { promise, reject } = Promise.withResolvers<void>()
  const isDone = within(1_000, promise)
  vi.advanceTimersByTime(1_000)
  expect(await isDone).toBe(false)
  // Vitest fails a run with a rejection that nobody handles.
  reject(new Error('too late'))
  await nextTurn()
})

it('a pause lasts its time, or until it is ended, and an end before it does not count', async () => {
  const pause = new Pause()
  pause.end()
  const ended = pause.forMs(1_000)
  expect(await Promise.race([ended, nextTurn('not yet')])).toBe('not yet')
  pause.end()
  await ended
  expect(vi.getTimerCount()).toBe(0)
  const whole = pause.forMs(1_000)
  vi.advanceTimersByTime(1_000)
  await whole
})

it('waits between attempts double up to a maximum, and begin anew after a success', () => {
  const backoff = new Backoff(100, 1_000)
  const waits = Array.from({ length: 6 }, () => backoff.nextMs())
  expect(waits).toEqual([100, 200, 400, 800, 1_000, 1_000])
  backoff.reset()
  expect(backoff.nextMs()).toBe(100)
  expect(backoffMs(1e9, 1, 30_000)).toBe(30_000)
  for (let each = 0; each < 100; each++) {
    const ms = jittered(1_000)
    expect(ms).toBeGreaterThanOrEqual(500)
    expect(ms).toBeLessThan(1_000)
  }
})
