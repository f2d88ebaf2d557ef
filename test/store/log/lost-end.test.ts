// The end of the log is deleted or cut off: the mark beside it tells which acknowledged commits are gone.
import { beforeEach, expect, test } from 'vitest'
import { readHighWaterMark } from '../../../src/lib/disk/high-water-mark.ts'
import { type CommitLog, openLog } from '../../../src/store/log/log.ts'
import { readLog } from '../../../src/store/log/reader.ts'
import { SimulatedDisk } from '../../support/disk/simulated-disk.ts'
import { NOON_MS, quietLog } from '../support.ts'
import { clockAt, rowOf } from './rows.ts'

const MARK = '/log.mark'
const FIRST = '00000000000000000001.log'
const LAST = '00000000000000000005.log'
const COMMITS = 9

let disk: SimulatedDisk
let lines: object[] = []
const log = { ...quietLog, error: (details: object) => void lines.push(details) }

const open = (): Promise<CommitLog> =>
  openLog(
    {
      ...{ disk, folder: '/log', logId: 'test', markPath: MARK, log },
      ...{ clock: clockAt(() => NOON_MS), flushed: { lsn: 0, knownAtMs: 0 } },
    },
    () => undefined,
  )

const markOf = (owner = 'test'): Promise<number> => readHighWaterMark(disk, MARK, owner)

/** The LSNs that are read, and those that are told to be missing. */
async function read(): Promise<{ found: number[]; missing: number[]; torn: number }> {
  const found: number[] = []
  const knownLsn = await markOf()
  const options = { disk, folder: '/log', logId: 'test', afterLsn: 0, knownLsn }
  const report = await readLog(options, ({ lsn }) => void found.push(lsn))
  const missing = report.damage.flatMap(({ missing: range }) =>
    range === null ? [] : Array.from({ length: range.to - range.from + 1 }, (_, at) => range.from + at),
  )
  return { found, missing, torn: report.tornTails.length }
}

const numbers = (from: number, to: number): number[] =>
  Array.from({ length: Math.max(0, to - from + 1) }, (_, at) => from + at)

/** Commits 1 to 4 in a segment that is sealed, 5 to 9 in one that a kill left open. */
beforeEach(async () => {
  lines = []
  disk = new SimulatedDisk()
  const written = await open()
  for (let commit = 1; commit <= COMMITS; commit++) {
    await written.append([rowOf(`c${commit}`)])
    if (commit === 4) await written.seal()
  }
  while ((await markOf()) < COMMITS) await new Promise((resolve) => setImmediate(resolve))
  disk = disk.afterKill()
})

test('a kill alone is no loss', async () => {
  expect(await read()).toEqual({ found: numbers(1, 9), missing: [], torn: 0 })
  expect((await open()).recovered.damage).toEqual([])
  expect(lines).toEqual([])
})

test('the newest segment cut at any byte: each commit is read or told to be missing', async () => {
  const whole = disk.file(LAST)
  // Behind its lines there are zeros.
  const linesEnd = whole.findLastIndex((byte) => byte !== 0) + 1
  for (let bytes = 0; bytes <= linesEnd; bytes += 5) {
    disk.put(LAST, whole.subarray(0, bytes))
    const { found, missing } = await read()
    expect(found.concat(missing), `${bytes} bytes`).toEqual(numbers(1, 9))
  }
})

test.each([
  ['the newest segment', [LAST], 4],
  ['every segment', [FIRST, LAST], 0],
])('%s deleted: what is missing is told, and its numbers are not used again', async (_, names, kept) => {
  for (const name of names) disk.put(name, null)
  expect(await read()).toEqual({ found: numbers(1, kept), missing: numbers(kept + 1, 9), torn: 0 })
  const opened = await open()
  const damage = [{ kind: 'missing', file: null, missing: { from: kept + 1, to: 9 } }]
  expect(opened.recovered.damage).toMatchObject(damage)
  expect(lines).toMatchObject([{ count: 1, damage }])
  expect((await opened.append([rowOf('next')])).lsn).toBe(10)
  // The log itself tells it from now on.
  await opened.close()
  disk.put('log.mark', null)
  expect((await read()).missing).toEqual(numbers(kept + 1, 9))
})

test('a mark of another log, or one that is damaged, says nothing', async () => {
  disk.put(LAST, null)
  expect(await markOf('another')).toBe(0)
  const bytes = disk.file('log.mark')
  for (let at = 0; at < bytes.length; at++) {
    const damaged = Buffer.from(bytes)
    damaged[at] ^= 1
    disk.put('log.mark', damaged)
    expect(await markOf(), `byte ${at}`).toBe(0)
  }
  disk.put('log.mark', bytes.subarray(0, 100))
  expect(await markOf()).toBe(0)
  expect((await read()).missing).toEqual([])
})
