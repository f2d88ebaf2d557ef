// The end of the journal is deleted or cut off: the mark beside it tells which durable events are gone.
import { beforeEach, expect, test } from 'vitest'
import type { EventJournal } from '../../src/journal/journal.ts'
import { findEnd } from '../../src/journal/reader.ts'
import { endFrame } from '../../src/journal/segments/format.ts'
import { readHighWaterMark } from '../../src/lib/disk/high-water-mark.ts'
import { SimulatedDisk } from '../support/disk/simulated-disk.ts'
import {
  appendNumbered,
  cutAfterLongSync,
  FOLDER_ID,
  numbersFrom,
  openTestJournal,
  readNumbered,
} from './support.ts'

const FOLDER = '/journal'
const MARK = '/journal.mark'
const NAMES = [1, 31].map((eventNo) => `${String(eventNo).padStart(20, '0')}.events`)

let disk: SimulatedDisk
const open = (afterEventNo = 0): Promise<EventJournal> =>
  openTestJournal(FOLDER, { disk, markPath: MARK, afterEventNo })

/** Events 1 to 30 in a sealed segment, 31 to 60 in an open one of three batches, all synced; 61 to 70 are written only. */
beforeEach(async () => {
  disk = new SimulatedDisk()
  const journal = await open()
  for (let batch = 1; batch <= 6; batch++) {
    appendNumbered(journal, 10)
    await journal.written(1_000)
    if (batch === 3) await journal.seal()
  }
  await expect.poll(() => readHighWaterMark(disk, MARK, FOLDER_ID)).toBe(60)
  appendNumbered(journal, 10)
  await journal.written(1_000)
  disk = disk.afterKill()
})

const read = async (): ReturnType<typeof readNumbered> =>
  readNumbered(FOLDER, 0, { disk, knownEventNo: await readHighWaterMark(disk, MARK, FOLDER_ID) })

const end = (lakeEventNo = 0) =>
  findEnd({ folder: FOLDER, folderId: FOLDER_ID, markPath: MARK }, lakeEventNo, disk)

test('a kill alone is no loss', async () => {
  expect(await read()).toMatchObject({ numbers: numbersFrom(1, 70), damage: [] })
  expect(await end()).toMatchObject({ lastEventNo: 70, heldEventNo: 70 })
})

test('the newest segment cut at any byte: each event that was durable is read or told to be missing', async () => {
  const whole = disk.file(NAMES[1])
  for (let bytes = 0; bytes < whole.length; bytes += 37) {
    disk.put(NAMES[1], whole.subarray(0, bytes))
    const { numbers, missing } = await read()
    expect(numbers.concat(missing), `${bytes} bytes`).toEqual(numbersFrom(1, 60))
    expect(await end()).toMatchObject({ lastEventNo: 60, heldEventNo: numbers.length })
  }
})

test.each([
  ['the newest segment', [NAMES[1]], 30],
  ['every segment', NAMES, 0],
])('%s deleted: what is missing is told, and its numbers are not used again', async (_, names, held) => {
  for (const name of names) disk.put(name, null)
  expect(await read()).toMatchObject({
    ...{ numbers: numbersFrom(1, held), missing: numbersFrom(held + 1, 60) },
  })
  expect(await end()).toMatchObject({ lastEventNo: 60, heldEventNo: held, syncedEventNo: 60 })
  const journal = await open()
  appendNumbered(journal, 5)
  expect(journal.lastEventNo).toBe(65)
  await journal.seal()
  // The journal itself tells it from now on.
  disk.put('journal.mark', null)
  expect(await read()).toMatchObject({
    ...{ numbers: [...numbersFrom(1, held), ...numbersFrom(61, 65)], missing: numbersFrom(held + 1, 60) },
  })
  await journal.close()
})

test('a deleted segment that a power cut brings back, without the one behind it, makes nothing void', async () => {
  // The lake has everything up to 70; the journal ends at 30, and nothing shows that so much was durable.
  disk.put(NAMES[0], disk.file(NAMES[0]).subarray(0, -endFrame(30).length))
  disk.put(NAMES[1], null)
  disk.put('journal.mark', null)
  const journal = await open(70)
  appendNumbered(journal, 10)
  await journal.written(1_000)
  disk = disk.afterKill()
  expect(await end()).toMatchObject({ lastEventNo: 80, heldEventNo: 80, voidSegments: [] })
  expect(await readNumbered(FOLDER, 70, { disk })).toMatchObject({ numbers: numbersFrom(71, 80), damage: [] })
})

test('a segment that was begun during a long sync, and is the first one left after a power cut, is not void', async () => {
  disk = await cutAfterLongSync(FOLDER, MARK)
  expect(await end(20)).toMatchObject({
    lastEventNo: 30,
    heldEventNo: 30,
    syncedEventNo: 20,
    voidSegments: [],
  })
  const journal = await openTestJournal(FOLDER, {
    ...{ disk, markPath: MARK, afterEventNo: 30, lakeEventNo: () => 20 },
  })
  appendNumbered(journal, 10)
  await journal.seal()
  expect(await readNumbered(FOLDER, 20, { disk })).toMatchObject({ numbers: numbersFrom(21, 40), damage: [] })
  await journal.close()
})
