// When a stop writes one more checkpoint, and which are kept then.
import { closeSync, ftruncateSync, openSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { checkpointNames } from '../../src/checkpoint/checkpoint-file.ts'
import {
  CheckpointScheduler,
  type CheckpointSchedulerOptions,
  savesTime,
} from '../../src/checkpoint/checkpoint-scheduler.ts'
import { Market } from '../../src/market/market.ts'
import { quietLog } from '../store/support.ts'
import { clockOf } from '../support/clock.ts'
import { temporaryFolder } from '../support/test-server.ts'

const MEGABYTE = 1_000_000

/** A folder with checkpoints of these events, so large that to write another takes longer than to apply what lies behind. */
function largeCheckpoints(eventNos: readonly number[]): string {
  const folder = temporaryFolder()
  for (const eventNo of eventNos) {
    const file = openSync(join(folder, checkpointNames.nameOf(eventNo)), 'w')
    ftruncateSync(file, 1_000 * MEGABYTE)
    closeSync(file)
  }
  return folder
}

/** What a stop behind event 20 writes. @param originEventNo the event with which the market began */
async function writtenLast(checkpointFolder: string, intervalMs: number, originEventNo = 1) {
  const nothing = async () => {}
  const scheduler = new CheckpointScheduler({
    ...{
      checkpointFolder,
      intervalMs,
      journalFolder: temporaryFolder(),
      folderId: 'folder',
      eventsKeptMin: 0,
    },
    journal: {
      lastEventNo: 20,
      originEventNo,
      removeThrough: nothing,
    } as unknown as CheckpointSchedulerOptions['journal'],
    market: new Market({ tokensMax: 1 }),
    lakeProgress: () => ({ eventNo: 20, retainedFrom: 21 }),
    ...{ emitBars: nothing, flushLake: nothing, barsInLakeToMs: () => 0, profilesInLake: () => true },
    ...{ lostEvents: () => 0, mayWrite: () => true, unusable: [], clock: clockOf(() => 0), log: quietLog },
  })
  await scheduler.start()
  await scheduler.stop()
  const isWritten = await scheduler.writeLast()
  const eventNos = readdirSync(checkpointFolder).map((name) => checkpointNames.numberOf(name))
  return { isWritten, eventNos: eventNos.sort((a, b) => Number(a) - Number(b)) }
}

test('behind a large one that the journal goes on from nothing is written', async () => {
  expect(await writtenLast(largeCheckpoints([10]), 60_000)).toEqual({ isWritten: false, eventNos: [10] })
})

test('without checkpoints while the server runs it is always written: the journal does not go on from the one before', async () => {
  expect(await writtenLast(largeCheckpoints([10]), 0)).toEqual({ isWritten: true, eventNos: [10, 20] })
})

test('the newest two are kept by stops too', async () => {
  expect(await writtenLast(largeCheckpoints([5, 7, 9, 11]), 0)).toEqual({
    isWritten: true,
    eventNos: [11, 20],
  })
})

test('those of a market before one that began empty are no reason not to write, and none to keep the journal for', async () => {
  expect(await writtenLast(largeCheckpoints([5, 7, 9]), 60_000, 12)).toEqual({
    isWritten: true,
    eventNos: [20],
  })
})

test.each([
  ['a small market: always', 1, 50 * MEGABYTE, true],
  ['a large market, behind which much was traded', 600_000, 750 * MEGABYTE, true],
  [
    'a large market, behind which little was traded: applying that takes less time',
    400_000,
    750 * MEGABYTE,
    false,
  ],
])('%s', (_, events, bytes, expected) => {
  expect(savesTime(events, bytes)).toBe(expected)
})
