// Tests of the pace at which requests go to a provider.
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { RequestPace } from '../../../src/ingest/request-pace.ts'

const INTERVAL_MS = 30
const { signal } = new AbortController()

test('what was not asked for is not made up for: requests after a silence keep their distance too', async () => {
  const pace = new RequestPace(1_000 / INTERVAL_MS)
  await pace.turn(signal)
  await sleep(3 * INTERVAL_MS)
  const beganMs = performance.now()
  await Promise.all([1, 2, 3].map(() => pace.turn(signal)))
  expect(performance.now() - beganMs).toBeGreaterThanOrEqual(2 * INTERVAL_MS)
})

test('requests that others leave room for come when no other waits, and a pause holds up all', async () => {
  const pace = new RequestPace(1_000 / INTERVAL_MS)
  const order: string[] = []
  const beganMs = performance.now()
  pace.pause(2 * INTERVAL_MS)
  const turns = (['spare', 'live', 'spare', 'live'] as const).map(async (lane, index) => {
    await pace.turn(signal, lane)
    order.push(`${lane} ${index}`)
  })
  await turns[1]
  expect(performance.now() - beganMs).toBeGreaterThanOrEqual(2 * INTERVAL_MS)
  await Promise.all(turns)
  expect(order).toEqual(['live 1', 'live 3', 'spare 0', 'spare 2'])
})

test('whoever stops waiting waits no more, however long the pause is', async () => {
  const pace = new RequestPace(1_000 / INTERVAL_MS)
  const stopping = new AbortController()
  pace.pause(60_000)
  const stopped = [1, 2, 3].map(() => pace.turn(stopping.signal))
  stopping.abort()
  await Promise.all(stopped)
})
