// While nothing arrives a reader looks at the stream: whether it has everything, and whether the stream is still what it has followed.
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import type { Bus } from '../../../src/cluster/bus.ts'
import { BusWatch } from '../../../src/cluster/reader/bus-watch.ts'
import { Lag } from '../../../src/cluster/reader/lag.ts'
import { SILENT_MS } from '../../../src/cluster/reader/limits.ts'

const CREATED = '2026-01-01T00:00:00Z'
/** Of the bus's clock, of the last message that was applied. */
const APPLIED_BUS_MS = 1_000_000.7
const APPLIED = { sequence: 10, isCurrent: true, created: CREATED, arrivedAtMs: 0 }

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** What a reader that has applied all of a stream up to its message 10 makes of how the stream is then. */
async function look(stream: { last: number; lastAtMs: number; created?: string }) {
  let nowMs = 0
  const lag = new Lag()
  lag.compareClocks(APPLIED_BUS_MS, nowMs)
  lag.applied(APPLIED_BUS_MS)
  const state = {
    ...{ messages: 5, first_seq: 6, last_seq: stream.last },
    last_ts: new Date(stream.lastAtMs).toISOString(),
  }
  const info = async () => ({ state, created: stream.created ?? CREATED })
  const bus = { manager: { streams: { info } }, names: { stream: 'events' } } as unknown as Bus
  let isStale = false
  const watch = new BusWatch(bus, { now: () => 0, monotonicMs: () => nowMs }, lag, APPLIED, () => {
    isStale = true
  })
  nowMs = SILENT_MS
  await vi.advanceTimersByTimeAsync(SILENT_MS)
  watch.stop()
  return { isStale, behindMs: lag.behindMs(nowMs) }
}

it('confirms that it has everything where the last message is the one that it has applied', async () => {
  expect(await look({ last: 10, lastAtMs: APPLIED_BUS_MS })).toEqual({ isStale: false, behindMs: 0 })
})

it.each([
  ['of the same number is a later one: those before were lost', { last: 10, lastAtMs: APPLIED_BUS_MS + 100 }],
  ['has a lower number: the stream has lost some', { last: 9, lastAtMs: APPLIED_BUS_MS - 100 }],
  ['is of a stream made anew', { last: 10, lastAtMs: APPLIED_BUS_MS, created: '2026-01-02T00:00:00Z' }],
])('asks for the messages anew where the last one %s', async (_what, stream) => {
  expect(await look(stream)).toEqual({ isStale: true, behindMs: SILENT_MS })
})
