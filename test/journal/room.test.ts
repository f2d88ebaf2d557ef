// A disk that is behind: whoever can wait does, and what is lost all the same is told at once.
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { EventJournal } from '../../src/journal/journal.ts'
import { STALLED_MS } from '../../src/journal/limits.ts'
import type { JournalOptions, LostInterval } from '../../src/journal/types.ts'
import { clockOf } from '../support/clock.ts'
import { SimulatedDisk } from '../support/disk/simulated-disk.ts'
import { appendNumbered, numbersFrom, openTestJournal, readNumbered } from './support.ts'

const FOLDER = '/journal'
const WAITING_BYTES_MAX = 40_000
const SLICE_EVENTS = 50

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance'] })
})
afterEach(() => {
  vi.useRealTimers()
})

const disk = new SimulatedDisk()
beforeEach(() => {
  for (const name of disk.fileNames) disk.put(name, null)
})

const lines: string[] = []
const lost: LostInterval[] = []
const note = (details: object, message: string): void =>
  void lines.push('reason' in details ? `${message}: ${details.reason}` : message)
const log = { info: note, warn: note, error: note }

function open(over: Partial<JournalOptions> = {}): Promise<EventJournal> {
  lines.length = lost.length = 0
  return openTestJournal(FOLDER, {
    ...{ disk, log, clock: clockOf(() => performance.now()), waitingBytesMax: WAITING_BYTES_MAX },
    onLost: (interval) => void lost.push(interval),
    ...over,
  })
}

async function timePasses(ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 50) {
    await vi.advanceTimersByTimeAsync(50)
    for (let turn = 0; turn < 8; turn++) await new Promise((resolve) => setImmediate(resolve))
  }
}

/** As a feed that waits for room before each slice. */
async function feed(journal: EventJournal, slices: number, stats: { appended: number }): Promise<void> {
  for (let slice = 0; slice < slices; slice++) {
    for (let waiting = journal.room(); waiting !== null; waiting = journal.room()) await waiting
    appendNumbered(journal, SLICE_EVENTS)
    stats.appended += SLICE_EVENTS
    // What a slice leaves ends as a batch.
    void journal.written(0)
  }
}

test('several feeds wait for a slow disk, within the bound, and nothing is lost', async () => {
  const journal = await open()
  const stats = { appended: 0 }
  const release = disk.hold('write')
  const feeding = Promise.all([1, 2, 3, 4].map(() => feed(journal, 40, stats)))
  await timePasses(STALLED_MS - 1_000)
  expect(stats.appended).toBeLessThan(40 * SLICE_EVENTS)
  expect(journal.stats()).toMatchObject({ trouble: null, lost: 0 })
  expect(journal.stats().waitingBytes).toBeLessThanOrEqual(WAITING_BYTES_MAX)
  expect(journal.stats().unwrittenMs).toBe(STALLED_MS - 1_000)
  release()
  await timePasses(2_000)
  await feeding
  await timePasses(2_000)
  expect(journal.stats()).toMatchObject({ lost: 0, waitingBytes: 0, unwrittenMs: 0 })
  const { numbers, damage } = await readNumbered(FOLDER, 0, { disk })
  expect(damage).toEqual([])
  expect(numbers).toEqual(numbersFrom(1, 4 * 40 * SLICE_EVENTS))
  expect(lines).toEqual([])
})

test('batches that have waited are written together, and are read one by one', async () => {
  const journal = await open()
  appendNumbered(journal, 1)
  await timePasses(100)
  const release = disk.hold('write')
  const batches = 20
  for (let batch = 0; batch < batches; batch++) {
    appendNumbered(journal, 10)
    void journal.written(0)
  }
  await timePasses(100)
  const { operations } = disk
  release()
  await timePasses(100)
  expect(journal.stats()).toMatchObject({ lost: 0, waitingBytes: 0 })
  // The first of them was under way.
  expect(disk.operations - operations).toBeLessThan(batches / 2)
  const { numbers, damage } = await readNumbered(FOLDER, 0, { disk })
  expect(damage).toEqual([])
  expect(numbers).toEqual(numbersFrom(1, 1 + 10 * batches))
})

test('megabytes that have waited are one write: a busy thread comes back seldom, and feeds would wait for it', async () => {
  const journal = await open({ waitingBytesMax: 32 * 1024 * 1024 })
  appendNumbered(journal, 1)
  await timePasses(100)
  const release = disk.hold('write')
  let events = 1
  for (; journal.stats().waitingBytes < 3.5 * 1024 * 1024; events += 4_000) {
    appendNumbered(journal, 4_000)
    void journal.written(0)
  }
  await timePasses(100)
  const { operations } = disk
  release()
  await timePasses(100)
  expect(journal.stats()).toMatchObject({ lost: 0, waitingBytes: 0 })
  expect(disk.operations - operations).toBeLessThanOrEqual(2)
  expect((await readNumbered(FOLDER, 0, { disk })).numbers).toEqual(numbersFrom(1, events))
})

test('a disk that takes nothing for long is not waited for: losses are told as they begin, and as they end', async () => {
  const journal = await open()
  const stats = { appended: 0 }
  const release = disk.hold('write')
  const feeding = feed(journal, 100, stats)
  await timePasses(STALLED_MS)
  await feeding
  expect(stats.appended).toBe(100 * SLICE_EVENTS)
  expect(journal.room()).toBeNull()
  expect(journal.stats().lost).toBeGreaterThan(0)
  expect(journal.stats().trouble).toBe('the disk is too slow')
  expect(lines).toEqual([
    'the disk takes no market events: feeds go on',
    'market events are being lost: the disk is too slow',
  ])
  release()
  await timePasses(2_000)
  expect(lost).toHaveLength(1)
  expect(lines.slice(2)).toEqual(['market events were lost'])
  // Waited for again.
  const again = disk.hold('write')
  const next = feed(journal, 40, { appended: 0 })
  await timePasses(1_000)
  expect(journal.room()).not.toBeNull()
  again()
  await timePasses(1_000)
  await next
  expect(journal.room()).toBeNull()
})

test('nobody waits for a disk that refuses, nor for a journal that is closed', async () => {
  const journal = await open({ mayRecord: () => false })
  appendNumbered(journal, 6 * SLICE_EVENTS)
  void journal.written(0)
  expect(journal.stats().waitingBytes).toBeGreaterThan(WAITING_BYTES_MAX / 2)
  expect(journal.room()).toBeNull()
  const closing = journal.close()
  await timePasses(10_000)
  await closing
  expect(journal.room()).toBeNull()
})

test.each(['write', 'sync'] as const)(
  'a disk whose %s hangs is told, also while there is room, until it answers',
  async (kind) => {
    const journal = await open()
    appendNumbered(journal, 1)
    await timePasses(2_000)
    const release = disk.hold(kind)
    appendNumbered(journal, 1)
    await timePasses(STALLED_MS - 1_000)
    expect(journal.stats().trouble).toBeNull()
    await timePasses(2_500)
    expect(journal.stats().trouble).toBe('the disk does not answer')
    release()
    await timePasses(2_000)
    expect(journal.stats()).toMatchObject({ trouble: null, lost: 0 })
    await journal.close()
  },
)
