import { afterEach, expect, it } from 'vitest'
import { ReaderHealth } from '../../../src/cluster/reader/reader-health.ts'
import type { ReaderLink } from '../../../src/cluster/reader/reader-link.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { createLog } from '../../../src/lib/log.ts'

const log = createLog('warn')
log.level = 'silent'

let health: ReaderHealth | null = null
afterEach(() => health?.stop())

it('a reader that was too far behind serves again once it has caught up, not a moment before', async () => {
  let behindMs = 0
  let ended = 0
  const lag = { behindMs: () => behindMs, lagMs: () => behindMs }
  const replica = {
    lag,
    isCurrent: true,
    trouble: null,
    state: 'following',
    eventNo: 1,
    runId: 'run',
    restored: 0,
  }
  const passingOn = { trouble: null }
  const parts = { replica, passingOn, accounts: { isReady: true }, bus: { watch: { isConnected: true } } }
  const link = { parts, gate: { nodeId: 'node' }, trouble: null, refusals: [] } as unknown as ReaderLink
  const ready = Promise.withResolvers<void>()
  const made = new ReaderHealth({
    ...{ link, clock: systemClock, log, lagMaxMs: 5_000 },
    onReady: ready.resolve,
    onBehind: () => {
      ended++
    },
  })
  health = made
  const servesAt = (ms: number): boolean => {
    behindMs = ms
    return made.health().notServing === null
  }
  const reasonsAt = (ms: number): readonly string[] => {
    behindMs = ms
    return made.health().reasons
  }
  await ready.promise
  // Nobody is left to guess before it refuses.
  expect([1_900, 4_000].map(reasonsAt)).toEqual([
    [],
    ['this reader is 4.0 s behind the writer: it shows an older market'],
  ])
  expect([900, 4_000, 5_000].map(servesAt)).toEqual([true, true, true])
  expect([5_001, 3_000, 1_001].map(servesAt)).toEqual([false, false, false])
  expect(reasonsAt(6_000)).toEqual(['This reader is 6.0 s behind the writer.'])
  expect([1_000, 4_000].map(servesAt)).toEqual([true, true])
  expect(ended).toBe(1)
})
