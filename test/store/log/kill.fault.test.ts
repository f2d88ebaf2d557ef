// A real process under load is killed, or its disk is full: every acknowledged commit is in the files once.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { LogError } from '../../../src/store/log/errors.ts'
import { type CommitLog, openLog } from '../../../src/store/log/log.ts'
import { readLog } from '../../../src/store/log/reader.ts'
import { noSmallDisk, openSmallDisk } from '../../support/disk/small-disk.ts'
import { NOON_MS, quietLog, removeFolder, temporaryFolder } from '../support.ts'
import { clockAt, rowOf } from './rows.ts'

const CHILD = fileURLToPath(new URL('./log.child.ts', import.meta.url))
const KILLS = Number(process.env.MINTLAKE_TEST_LOG_KILLS ?? 3)

let folder: string
let child: ChildProcess | null = null
beforeEach(() => {
  folder = temporaryFolder()
})
afterEach(async () => {
  await killChild()
  removeFolder(folder)
})

async function killChild(): Promise<void> {
  if (child === null) return
  const exited = once(child, 'close')
  child.kill('SIGKILL')
  await exited
  child = null
}

/** Runs the child until it has acknowledged this many commits and kills it. @returns its lines, one for each commit that it acknowledged */
async function acknowledgedUntilKilled(commits: number, run: number): Promise<string[]> {
  const started = spawn(process.execPath, [CHILD, folder, '16', String(run)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  child = started
  const lines: string[] = []
  const reading = createInterface({ input: started.stdout! })
  await new Promise<void>((resolve, reject) => {
    reading.on('line', (line) => {
      lines.push(line)
      if (lines.length === commits) resolve()
    })
    started.once('close', () => reject(new Error('the child ended by itself')))
  })
  const drained = once(reading, 'close')
  await killChild()
  await drained
  return lines
}

const options = (path = folder) => ({
  folder: path,
  logId: 'killed',
  clock: clockAt(() => NOON_MS),
  log: quietLog,
  flushed: { lsn: 0, knownAtMs: 0 },
})

async function open(path = folder): Promise<{ log: CommitLog; found: string[] }> {
  const found: string[] = []
  const log = await openLog(options(path), (record) => {
    found.push(`${record.lsn} ${record.rows()[0][1].analysis_id}`)
  })
  return { log, found }
}

test('every acknowledged commit of a process that is killed under load several times is in the files once', {
  tags: 'drill',
}, async () => {
  const acknowledged: string[] = []
  for (let run = 0; run < KILLS; run++)
    acknowledged.push(...(await acknowledgedUntilKilled(400 + run * 700, run)))
  const { log, found } = await open()
  expect(log.recovered.damage).toEqual([])
  expect(new Set(found).size).toBe(found.length)
  const lsns = found.map((line) => Number(line.split(' ')[0]))
  expect(lsns).toEqual([...new Set(lsns)].sort((a, b) => a - b))
  const stored = new Set(found)
  expect(acknowledged.filter((line) => !stored.has(line))).toEqual([])
  expect(acknowledged.length).toBeGreaterThan(KILLS * 400)
  await log.close()
  // Another process reads the same commits, and none is left once all segments are removed.
  const again: string[] = []
  const report = await readLog({ ...options(), afterLsn: 0 }, (record) => {
    again.push(`${record.lsn} ${record.rows()[0][1].analysis_id}`)
  })
  expect(again).toEqual(found)
  const last = await open()
  expect(last.log.segments()).toEqual(report.segments)
  for (const { firstLsn } of report.segments) await last.log.remove(firstLsn)
  await last.log.close()
  expect((await open()).found).toEqual([])
})

test.skipIf(noSmallDisk !== null)(
  'a log on a full disk refuses commits as not stored, can be read, and takes commits once there is space',
  async () => {
    const disk = await openSmallDisk(folder, '2m')
    try {
      const path = join(disk.root, 'a', 'log')
      mkdirSync(join(disk.root, 'a'))
      const { log } = await open(path)
      const append = (id: string): Promise<string> =>
        log.append([rowOf(id), rowOf('x'.repeat(5_000))]).then(
          ({ lsn }) => `stored ${lsn}`,
          ({ code, mayBeStored }: LogError) => `${code} ${mayBeStored}`,
        )
      const { position } = await log.append([rowOf('first')])
      disk.fill(10_000)
      const answers: string[] = []
      for (let each = 0; each < 6; each++) answers.push(await append(`${each}`))
      expect(answers.slice(-3)).toEqual(['no_space false', 'no_space false', 'no_space false'])
      expect((await log.read(position)).lsn).toBe(1)
      disk.clear()
      const stored = answers.filter((answer) => answer.startsWith('stored')).length
      expect(await append('last')).toMatch(/^stored /)
      await log.close()
      const { found, log: again } = await open(path)
      expect(found).toHaveLength(stored + 2)
      await again.close()
    } finally {
      await disk.remove()
    }
  },
)
