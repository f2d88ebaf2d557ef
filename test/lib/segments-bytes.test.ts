// The bytes of the files are those of version 0.1.0, so that nothing has to be upgraded: log, journal and checkpoint.
import { hash } from 'node:crypto'
import { expect, test } from 'vitest'
import { writeCheckpoint } from '../../src/checkpoint/checkpoint-file.ts'
import { openLog } from '../../src/store/log/log.ts'
import { appendNumbered, NOON_MS, openTestJournal, quietLog, SETTINGS } from '../journal/support.ts'
import { rowOf } from '../store/log/rows.ts'
import { clockOf } from '../support/clock.ts'
import { SimulatedDisk } from '../support/disk/simulated-disk.ts'

const FILES = {
  '00000000000000000001.events': '849140b84137b04e5231a3f2b621b8c0bcb2b3af118acd9a826b1b870123cb27',
  '00000000000000000005.log': '442c82c7c1e36f33007dcbddd3458dc00cc440aedd8dd8fd34c5d1465574b0f6',
  '00000000000000000007.checkpoint': 'f5db9ff1b3f9c4303023bfb3dd513d659a4bae7a909a0b8ae621c0fa607d33cb',
}

const disk = new SimulatedDisk()

async function writeLog(): Promise<void> {
  const flushed = { lsn: 4, knownAtMs: 5 }
  const log = await openLog(
    { disk, folder: '/log', logId: 'test', clock: clockOf(() => NOON_MS), log: quietLog, flushed },
    () => undefined,
  )
  await Promise.all(['first', 'second'].map((id) => log.append([rowOf(id)])))
  await log.append([rowOf('third')])
  await log.close()
}

async function writeJournal(): Promise<void> {
  const journal = await openTestJournal('/journal', { disk })
  appendNumbered(journal, 25)
  await journal.seal()
  await journal.close()
}

function writeOneCheckpoint(): Promise<number> {
  const times = { atMs: 1, barsInLakeToMs: 0, lostEvents: 0, writtenAtMs: 1 }
  const head = { folderId: 'folder-1', eventNo: 7, originEventNo: 1, version: 'test', settings: SETTINGS }
  const sections = ['abc', 'defgh'].map((text) => ({ name: text, bytes: Buffer.from(text) }))
  return writeCheckpoint('/checkpoints', { ...head, ...times }, sections, () => {}, disk)
}

test('the same commits, events and market give the same bytes', async () => {
  await writeLog()
  await writeJournal()
  await writeOneCheckpoint()
  const names = disk.fileNames.filter((name) => /^\d/.test(name))
  expect(Object.fromEntries(names.map((name) => [name, hash('sha256', disk.file(name))]))).toEqual(FILES)
})
