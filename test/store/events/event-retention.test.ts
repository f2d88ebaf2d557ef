// Recorded events leave the lake file by file, oldest first and of both tables.
import { statfsSync } from 'node:fs'
import { afterEach, expect, test } from 'vitest'
import type { MarketEvent } from '../../../src/schema/event.ts'
import { eventBytesMax, planEventExpiry } from '../../../src/store/events/event-retention.ts'
import type { ListedFile } from '../../../src/store/lake/manifest.ts'
import { readEventRange, readRecordedEvents } from '../../../src/store/query/recorded-events.ts'
import { verifyLake } from '../../../src/store/verify/verify.ts'
import { NOON_MS, removeFolder, temporaryFolder } from '../support.ts'
import { openWorld, trade, type World } from './world.ts'

const DAY_MS = 86_400_000
const dataDir = temporaryFolder()
let world: World | null = null
afterEach(async () => {
  await world?.close()
  world = null
  removeFolder(dataDir)
})

let seq = 0
const file = (table: string, count: number, bytes: number, writtenAtMs = NOON_MS): ListedFile => {
  const first = table === 'trades' ? seq + 1 : Math.max(1, seq - count + 1)
  if (table === 'trades') seq += count
  const figures = { rows: count, bytes, sha256: null, schemaVersion: 3, writtenAtMs }
  return { table, date: '2025-06-01', first, last: seq, ...figures }
}

test('the oldest files leave until the rest is small enough, and what is older in the other table leaves too', () => {
  seq = 0
  const [a, aEvents, b, c] = [
    file('trades', 10, 500),
    file('events', 10, 1),
    file('trades', 10, 400),
    file('trades', 10, 300),
  ]
  const files = [c, aEvents, b, a]
  expect(planEventExpiry(files, null, 1_201)).toEqual([])
  expect(planEventExpiry(files, null, 1_200)).toEqual([aEvents, a])
  expect(planEventExpiry(files, null, 700)).toEqual([aEvents, a])
  expect(planEventExpiry(files, null, 699)).toEqual([aEvents, a, b])
  // The newest stays.
  expect(planEventExpiry(files, null, 0)).toEqual([aEvents, a, b])
})

test('files of earlier days leave, by when they were written', () => {
  seq = 0
  const old = file('trades', 10, 1, NOON_MS - 2 * DAY_MS)
  const files = [old, file('trades', 10, 1, NOON_MS - DAY_MS), file('events', 5, 1)]
  expect(planEventExpiry(files, '2025-05-31', 100)).toEqual([old])
})

test('the smaller of a number of bytes and a share of the disk counts', async () => {
  const { blocks, bsize } = statfsSync('/tmp')
  const disk = blocks * bsize
  expect(await eventBytesMax({ days: 0, bytesMax: 0, diskPct: 0 }, '/tmp')).toBe(Number.POSITIVE_INFINITY)
  expect(await eventBytesMax({ days: 0, bytesMax: 1e3, diskPct: 20 }, '/tmp')).toBe(1e3)
  expect(await eventBytesMax({ days: 0, bytesMax: disk, diskPct: 20 }, '/tmp')).toBe((disk * 20) / 100)
})

test('what has left is told, and the rest is whole', async () => {
  const price: MarketEvent = { type: 'solPrice', ts: NOON_MS, usd: 150 }
  world = await openWorld(dataDir, { retainEvents: { days: 0, bytesMax: 1, diskPct: 0 } })
  world.journal.append([trade(), price])
  await world.flush()
  world.journal.append([trade(), trade()])
  await world.flush()
  await world.compact(NOON_MS, Number.MAX_SAFE_INTEGER)
  expect(await world.flush()).toMatchObject({ eventNo: 4, retainedFrom: 3 })
  expect(await readEventRange(dataDir)).toEqual({ from: 3, to: 4 })
  const found: number[] = []
  for await (const batch of readRecordedEvents({ dataDir }))
    found.push(...batch.map(({ eventNo }) => eventNo))
  expect(found).toEqual([3, 4])
  await world.close()
  world = null
  expect(await verifyLake({ dataDir, nowMs: NOON_MS })).toMatchObject({ scope: 'whole', findings: [] })
})
