// Recorded events leave the lake file by file, oldest first and of both tables.

import { readdirSync, statfsSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import type { MarketEvent } from '../../../src/schema/event.ts'
import {
  eventBytesMax,
  judgeEventExpiry,
  planEventEviction,
} from '../../../src/store/events/event-retention.ts'
import type { ListedFile } from '../../../src/store/lake/manifest.ts'
import { KEEP_FOR_EVER } from '../../../src/store/retention-setting.ts'
import { verifyLake } from '../../../src/store/verify/verify.ts'
import { allEvents, spanOf } from '../../support/lake/all-events.ts'
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
const utcDate = (ms: number): string => new Date(ms).toISOString().slice(0, 10)
const file = (table: string, count: number, bytes: number, atMs = NOON_MS): ListedFile => {
  const first = table === 'trades' ? seq + 1 : Math.max(1, seq - count + 1)
  if (table === 'trades') seq += count
  const figures = { rows: count, bytes, sha256: null, schemaVersion: 3, writtenAtMs: atMs }
  return { table, date: utcDate(atMs), first, last: seq, ...figures }
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
  expect(planEventEviction(files, 1_201)).toEqual([])
  expect(planEventEviction(files, 1_200)).toEqual([aEvents, a])
  expect(planEventEviction(files, 700)).toEqual([aEvents, a])
  expect(planEventEviction(files, 699)).toEqual([aEvents, a, b])
  // The newest stays.
  expect(planEventEviction(files, 0)).toEqual([aEvents, a, b])
})

test('the newest files stay, those of both tables, however large they are', () => {
  seq = 0
  const older = [file('trades', 10, 500), file('events', 10, 1)]
  const newest = [file('trades', 10, 500), file('events', 10, 1)]
  expect(planEventEviction(newest, 0)).toEqual([])
  expect(planEventEviction([...older, ...newest], 400)).toEqual(older)
  const { files } = judgeEventExpiry([...older, ...newest], 1, NOON_MS + 40 * DAY_MS, 100)
  expect(files).toEqual(older)
})

/** Files of consecutive days, the last of which is that of `NOON_MS`. */
const ofDays = (days: number): ListedFile[] =>
  Array.from({ length: days }, (_, day) => file('trades', 10, 1, NOON_MS - (days - 1 - day) * DAY_MS))

test('files of earlier days leave, by when they were recorded', () => {
  seq = 0
  const files = ofDays(20)
  expect(judgeEventExpiry(files, 18, NOON_MS, 10)).toEqual({
    files: files.slice(0, 1),
    doubt: null,
  })
})

test('a replay of old events is as old as its recording', () => {
  seq = 0
  const files = ofDays(20).map((each) => ({ ...each, date: '2012-01-01' }))
  expect(judgeEventExpiry(files, 18, NOON_MS, 10).files).toEqual(files.slice(0, 1))
})

test.each([
  ['40 days behind', NOON_MS - 40 * DAY_MS],
  ['in 1970', 86_400_000],
])(
  'a file of a clock that was %s is no older than those before it, and takes none with it',
  (_, behindMs) => {
    seq = 0
    const files = [...ofDays(20), file('trades', 10, 1, behindMs), file('trades', 10, 1, NOON_MS)]
    expect(judgeEventExpiry(files, 18, NOON_MS, 10)).toEqual({ files: files.slice(0, 1), doubt: null })
    expect(judgeEventExpiry(files.slice(19), 18, NOON_MS, 10).files).toEqual([])
  },
)

test('a file of a clock that was ahead keeps none for ever: they leave on an operator’s word', () => {
  seq = 0
  const files = [file('trades', 10, 1, NOON_MS + 200 * DAY_MS), ...ofDays(20)]
  expect(judgeEventExpiry(files, 19, NOON_MS, 10)).toEqual({ files: [], doubt: null })
  expect(judgeEventExpiry(files, 18, NOON_MS, 10)).toEqual({
    files: files.slice(0, 2),
    doubt: 'rows of trades that are over their time come after rows of 2025-12-18, a date ahead of the clock',
  })
  const ahead = file('trades', 10, 1, NOON_MS + 200 * DAY_MS)
  expect(judgeEventExpiry([...files.slice(1), ahead], 18, NOON_MS, 10)).toEqual({
    files: files.slice(1, 2),
    doubt: null,
  })
})

test('more than a tenth, or what is within a day of the newest, needs a word', () => {
  seq = 0
  const files = ofDays(20)
  const at = (date: number, pct = 10) => judgeEventExpiry(files, -date, NOON_MS, pct)
  expect(at(-17)).toMatchObject({ files: files.slice(0, 2), doubt: null })
  expect(at(-16)).toMatchObject({
    files: files.slice(0, 3),
    doubt: '30 of 200 rows of trades are over their time, more than 10 %',
  })
  expect(at(-1, 95)).toMatchObject({ files: files.slice(0, 18), doubt: null })
  expect(at(0, 95)).toMatchObject({ doubt: expect.stringMatching(/rows of trades are among its newest/) })
  expect(at(1, 100)).toMatchObject({ files: files.slice(0, 19), doubt: null })
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
  world = await openWorld(dataDir, {
    retain: { ...KEEP_FOR_EVER, events: { days: 0, bytesMax: 1, diskPct: 0 } },
  })
  world.journal.append([trade(), price])
  await world.flush()
  world.journal.append([trade(), trade()])
  await world.flush()
  await world.compact(NOON_MS, Number.MAX_SAFE_INTEGER)
  expect(await world.flush()).toMatchObject({ eventNo: 4, retainedFrom: 3 })
  expect(await spanOf(dataDir)).toEqual({ from: 3, to: 4, lost: [] })
  const found: number[] = []
  for await (const batch of allEvents(dataDir)) found.push(...batch.map(({ eventNo }) => eventNo))
  expect(found).toEqual([3, 4])
  await world.close()
  world = null
  expect(await verifyLake({ dataDir, nowMs: NOON_MS })).toMatchObject({ scope: 'whole', findings: [] })
})

test('what is over its time stays so when it is merged, and leaves on an operator’s word', async () => {
  const laterMs = NOON_MS + 20 * DAY_MS
  const days = { days: 10, bytesMax: 0, diskPct: 0 }
  world = await openWorld(dataDir, { retain: { ...KEEP_FOR_EVER, events: days, unaskedPct: 10 } })
  for (const writtenAtMs of [NOON_MS - DAY_MS, NOON_MS, laterMs]) {
    // The last one is of another date, so that it is merged with none.
    world.journal.append([trade()], writtenAtMs === laterMs ? laterMs : NOON_MS)
    await world.flush(writtenAtMs)
  }
  await world.compact(laterMs)
  expect(world.trouble?.retentionHeld).toContain('2 of 3 rows of trades are over their time')
  await world.compact(laterMs)
  expect(readdirSync(join(dataDir, 'lake/trades/dt=2025-06-01'))).toHaveLength(1)
  expect(await world.retire(laterMs)).toBe(1)
  expect(await spanOf(dataDir)).toEqual({ from: 3, to: 3, lost: [] })
})
