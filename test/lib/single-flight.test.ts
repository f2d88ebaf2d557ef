import { expect, test } from 'vitest'
import { SingleFlight } from '../../src/lib/single-flight.ts'

/** A single flight whose calls the test ends, on a clock that the test sets. */
function testFlight() {
  let nowMs = 0
  const calls: { resolve(value: string): void; reject(error: Error): void }[] = []
  const flight = new SingleFlight(
    () => new Promise<string>((resolve, reject) => calls.push({ resolve, reject })),
    1_000,
    () => nowMs,
  )
  const pass = (ms: number) => {
    nowMs += ms
  }
  return { flight, calls, pass }
}

test('one call serves all who ask while it runs, and those who ask until its result is as old as the TTL', async () => {
  const { flight, calls, pass } = testFlight()
  const first = [flight.get(), flight.get()]
  pass(5_000)
  first.push(flight.get())
  calls[0].resolve('first')
  expect(await Promise.all(first)).toEqual(['first', 'first', 'first'])
  pass(999)
  expect(await flight.get()).toBe('first')
  pass(1)
  const second = flight.get()
  calls[1].resolve('second')
  expect(await second).toBe('second')
  expect(calls).toHaveLength(2)
})

test('a failure is given to those who waited for it, and the next one to ask starts a new call', async () => {
  const { flight, calls } = testFlight()
  const failing = [flight.get(), flight.get()]
  calls[0].reject(new Error('no answer'))
  for (const failed of failing) await expect(failed).rejects.toThrow('no answer')
  const next = flight.get()
  calls[1].resolve('well')
  expect(await next).toBe('well')
})
