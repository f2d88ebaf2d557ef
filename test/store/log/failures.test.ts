// A disk that fails, is full or hangs: what callers get, and that the log recovers when the disk does.
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { LogError } from '../../../src/store/log/errors.ts'
import {
  GROUP_BYTES_MAX,
  GROUP_COMMITS_MAX,
  QUEUED_BYTES_MAX,
  QUEUED_COMMITS_MAX,
  RECORD_BYTES_MAX,
} from '../../../src/store/log/limits.ts'
import { type CommitLog, openLog } from '../../../src/store/log/log.ts'
import type { LogOptions } from '../../../src/store/log/types.ts'
import { quiet } from '../../support/disk/cuts.ts'
import { SimulatedDisk } from '../../support/disk/simulated-disk.ts'
import { NOON_MS, quietLog } from '../support.ts'
import { clockAt, rowOf } from './rows.ts'
import { TIMEOUT_MS, timePasses } from './world.ts'

let disk: SimulatedDisk
let nowMs: number

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
  disk = new SimulatedDisk()
  nowMs = NOON_MS
})
afterEach(() => {
  vi.useRealTimers()
})

async function open(over: Partial<LogOptions> = {}): Promise<{ log: CommitLog; found: number[] }> {
  const found: number[] = []
  const options = {
    disk,
    folder: '/log',
    logId: 'test',
    clock: clockAt(() => nowMs),
    log: quietLog,
    flushed: { lsn: 0, knownAtMs: 0 },
    timeoutMs: TIMEOUT_MS,
    ...over,
  }
  return { log: await openLog(options, ({ lsn }) => void found.push(lsn)), found }
}

/** What the caller of an append gets, in short. */
const append = (log: CommitLog, id = 'row'): Promise<string> =>
  log.append([rowOf(id)]).then(
    ({ lsn }) => `stored ${lsn}`,
    ({ code, mayBeStored }: LogError) => `${code}${mayBeStored ? ', may be stored' : ''}`,
  )

/** What a segment holds besides the zeros at its end. */
const linesOf = (name: string): string => disk.file(name).toString().replace(/\0+$/, '')

const appendTogether = (log: CommitLog, commits: number): Promise<string[]> =>
  Promise.all(Array.from({ length: commits }, () => append(log)))

describe('the log', () => {
  test('writes and syncs once for all appends of one event-loop turn, and creates a segment only for a commit', async () => {
    const { log } = await open()
    expect(disk.fileNames).toEqual([])
    const before = disk.operations
    await appendTogether(log, 100)
    // create, write, sync, rename, sync of the folder
    expect(disk.operations - before).toBe(5)
    await appendTogether(log, 100)
    // write zeros, sync, write, sync
    expect(disk.operations - before).toBe(9)
    await appendTogether(log, 100)
    expect(disk.operations - before).toBe(11)
    expect(log.status()).toMatchObject({
      state: 'ready',
      unflushedCommits: 300,
      totals: { commits: 300, refused: 0, failures: 0 },
    })
    expect(disk.fileNames).toEqual(['00000000000000000001.log'])
    expect(log.status().unflushedBytes).toBe(Buffer.byteLength(linesOf('00000000000000000001.log')))
  })

  test('assigns LSNs without a gap, and known_at that never decreases and rises from segment to segment', async () => {
    const { log } = await open({ flushed: { lsn: 41, knownAtMs: NOON_MS + 5 } })
    const first = await log.append([rowOf('a')])
    nowMs += 100
    const second = await log.append([rowOf('b')])
    nowMs -= 1_000
    const third = await log.append([rowOf('c')])
    await log.seal()
    const fourth = await log.append([rowOf('d')])
    expect([first, second, third, fourth].map(({ lsn }) => lsn)).toEqual([42, 43, 44, 45])
    expect([first, second, third, fourth].map(({ knownAtMs }) => knownAtMs - NOON_MS)).toEqual([
      6, 100, 100, 101,
    ])
  })

  test('lists a segment once it is sealed, and can remove it or set it aside', async () => {
    const { log } = await open()
    await appendTogether(log, 2)
    expect(log.segments()).toEqual([])
    await log.seal()
    await log.seal()
    await append(log)
    await log.seal()
    expect(log.segments()).toMatchObject([
      { firstLsn: 1, lastLsn: 2, commits: 2 },
      { firstLsn: 3, lastLsn: 3, commits: 1 },
    ])
    await log.remove(1)
    await log.setAside(3)
    expect(disk.fileNames).toEqual(['00000000000000000003.log.damaged'])
    expect(log.segments()).toEqual([])
    await expect(log.remove(1)).rejects.toMatchObject({ code: 'segment_removed' })
  })

  test('refuses commits that are too large, or for which there is no disk space, before writing them', async () => {
    let mayWrite = true
    const { log } = await open({ mayWrite: () => mayWrite })
    const tooLarge = log.append([{ table: 'training', json: 'x'.repeat(RECORD_BYTES_MAX) }])
    await expect(tooLarge).rejects.toMatchObject({ code: 'record_too_large', mayBeStored: false })
    mayWrite = false
    expect(await append(log)).toBe('no_space')
    mayWrite = true
    expect(await append(log)).toBe('stored 1')
    expect(log.status().totals.refused).toBe(2)
  })

  test('refuses commits behind which too many bytes wait for the disk, and not those before them', async () => {
    const { log } = await open()
    disk.hold('create')
    const json = 'x'.repeat(RECORD_BYTES_MAX - 200)
    const waiting = QUEUED_BYTES_MAX / RECORD_BYTES_MAX
    const appends = Array.from({ length: waiting + 2 }, () => log.append([{ table: 'training', json }]))
    for (const refused of appends.slice(waiting))
      await expect(refused).rejects.toMatchObject({ code: 'too_many_waiting', mayBeStored: false })
    expect(log.status().totals.refused).toBe(2)
  })

  test('refuses commits behind which too many wait for the disk, however small', async () => {
    const { log } = await open()
    disk.hold('create')
    const commits = Array.from({ length: QUEUED_COMMITS_MAX + 2 }, () =>
      log.append([{ table: 'training', json: '{}' }]),
    )
    for (const refused of commits.slice(QUEUED_COMMITS_MAX))
      await expect(refused).rejects.toMatchObject({ code: 'too_many_waiting', mayBeStored: false })
    expect(log.status().totals.refused).toBe(2)
  })

  test('passes its size to mayWrite', async () => {
    const asked: number[] = []
    const { log } = await open({ mayWrite: (unflushedBytes) => asked.push(unflushedBytes) > 0 })
    const held: number[] = []
    for (const between of [() => log.seal(), () => log.remove(1), () => undefined]) {
      held.push(log.status().unflushedBytes)
      await append(log)
      await between()
    }
    expect(asked).toEqual(held)
    expect(held[0]).toBe(0)
    expect(held[1]).toBeGreaterThan(0)
  })

  test('divides queued commits into groups of a bounded size', async () => {
    const { log } = await open()
    await appendTogether(log, 2 * GROUP_COMMITS_MAX + 1)
    // Commits of one group say the same of what was durable before them.
    const groups = () => new Set(linesOf('00000000000000000001.log').match(/"afterLsn":\d+,"knownAt"/g)).size
    expect(groups()).toBe(3)
    const json = `{"a":"${'x'.repeat(GROUP_BYTES_MAX / 4)}"}`
    await Promise.all(Array.from({ length: 4 }, () => log.append([{ table: 'training', json }])))
    expect(groups()).toBe(5)
  })
})

describe('a failed sync', () => {
  test('is reported as not stored once the next segment has durably voided the group', async () => {
    const { log } = await open()
    await append(log)
    await append(log)
    disk.fail('sync', 'EIO')
    expect(await appendTogether(log, 2)).toEqual(['disk_failed', 'disk_failed'])
    expect(await append(log)).toBe('stored 5')
    expect(log.recovered.damage).toEqual([])
    const { found } = await open()
    expect(found).toEqual([1, 2, 5])
    // The bytes of the void commits are still in the file.
    expect(disk.file('00000000000000000001.log').toString()).toContain('"lsn":4,')
  })

  test('refuses all appends before that, and is reported as possibly stored when the time limit has passed', async () => {
    const { log } = await open()
    await append(log)
    disk.fail('sync', 'EIO')
    for (let attempt = 0; attempt < 8; attempt++) disk.fail('create', 'EIO')
    const inDoubt = append(log)
    await quiet()
    expect(await append(log)).toBe('disk_failed')
    expect(log.status()).toMatchObject({ state: 'recovering', unflushedCommits: 1 })
    // Not listed: its commits are in doubt.
    await log.seal()
    expect(log.segments()).toEqual([])
    await timePasses(TIMEOUT_MS)
    expect(await inDoubt).toBe('disk_failed, may be stored')
    await timePasses(10_000)
    expect(log.status().state).toBe('ready')
    expect(log.segments()).toMatchObject([{ firstLsn: 1, lastLsn: 1, commits: 1 }])
    expect(await append(log)).toBe('stored 3')
  })

  test('of an end record loses no commit', async () => {
    const { log } = await open()
    await append(log)
    disk.fail('sync', 'EIO')
    await log.seal()
    expect(log.segments()).toMatchObject([{ firstLsn: 1, lastLsn: 1 }])
    expect(await append(log)).toBe('stored 2')
    expect(log.status().totals.failures).toBe(1)
  })
})

test('a limit of open files refuses commits without blaming the disk', async () => {
  const { log } = await open()
  for (const code of ['EMFILE', 'ENFILE']) {
    disk.fail('create', code)
    await expect(log.append([rowOf('row')])).rejects.toThrow(
      `too many files are open (ulimit -n): ${code}: simulated; the rows are not stored`,
    )
  }
  disk.fail('create', 'EIO')
  await expect(log.append([rowOf('row')])).rejects.toThrow('the disk refused the write: EIO')
  expect(await append(log)).toBe('stored 1')
})

describe('a full disk', () => {
  test('refuses commits at once as not stored, and takes commits again when there is space', async () => {
    const { log } = await open()
    await append(log)
    const before = disk.file('00000000000000000001.log').length
    disk.fail('write', 'ENOSPC', 40)
    expect(await append(log)).toBe('no_space')
    // The zeros that were written ahead are gone too.
    expect(disk.file('00000000000000000001.log').length).toBe(before)
    for (let attempt = 0; attempt < 3; attempt++) {
      disk.fail('create', 'ENOSPC')
      expect(await append(log)).toBe('no_space')
    }
    disk.fail('write', 'ENOSPC', 10)
    expect(await append(log)).toBe('no_space')
    expect(await append(log)).toBe('stored 2')
    expect((await open()).found).toEqual([1, 2])
  })

  test('that is found to be full by the sync refuses the commit too', async () => {
    const { log } = await open()
    await append(log)
    await append(log)
    disk.fail('sync', 'ENOSPC')
    expect(await append(log)).toBe('no_space')
    expect(await append(log)).toBe('stored 3')
    expect((await open()).found).toEqual([1, 2, 3])
  })

  test('that has no room for zeros ahead refuses one commit, and takes the next ones without zeros until a segment is sealed', async () => {
    const { log } = await open()
    await append(log)
    disk.fail('writeZeros', 'ENOSPC', 1_000)
    expect(await append(log)).toBe('no_space')
    disk.fail('writeZeros', 'ENOSPC')
    for (const lsn of [2, 3, 4]) expect(await append(log)).toBe(`stored ${lsn}`)
    const [, second] = disk.fileNames
    expect(disk.file(second).toString()).toBe(linesOf(second))
    await log.seal()
    expect(await append(log)).toBe('stored 5')
    // The fault that was left meets zeros again.
    expect(await append(log)).toBe('no_space')
    expect((await open()).found).toEqual([1, 2, 3, 4, 5])
  })

  test('that writes a part of the bytes without an error refuses the commit too', async () => {
    const { log } = await open()
    await append(log)
    await append(log)
    vi.spyOn(disk, 'step').mockImplementationOnce(async () => 7)
    expect(await append(log)).toBe('no_space')
    expect(await append(log)).toBe('stored 3')
  })
})

describe('a disk that hangs', () => {
  test.each(['write', 'sync'] as const)(
    'in a %s fails all callers after the time limit, starts nothing else, and takes commits afterwards',
    async (kind) => {
      const { log } = await open()
      await append(log)
      const release = disk.hold(kind)
      const hanging = append(log)
      await quiet()
      const waiting = append(log)
      const sealing = log.seal().catch(({ code }: LogError) => code)
      await timePasses(TIMEOUT_MS)
      expect(await hanging).toBe('disk_hanging, may be stored')
      expect(await waiting).toBe('disk_hanging')
      expect(await sealing).toBe('disk_hanging')
      const { operations } = disk
      expect(await append(log)).toBe('disk_hanging')
      await expect(log.seal()).rejects.toMatchObject({ code: 'disk_hanging' })
      await quiet()
      expect(disk.operations).toBe(operations)
      expect(log.status()).toMatchObject({ state: 'hanging', totals: { failures: 1 } })
      release()
      await quiet()
      expect(log.status().state).toBe('ready')
      expect(await append(log)).toBe('stored 3')
      expect((await open()).found).toEqual([1, 3])
    },
  )

  test('does not keep the log from closing, and nothing is written after the operation ends', async () => {
    const { log } = await open()
    await append(log)
    const release = disk.hold('sync')
    const hanging = append(log)
    await quiet()
    const closing = log.close()
    await timePasses(TIMEOUT_MS)
    await closing
    expect(await hanging).toBe('disk_hanging, may be stored')
    expect(await append(log)).toBe('closed')
    const { operations } = disk
    release()
    await quiet()
    // The only operation left closes the file.
    expect(disk.operations - operations).toBeLessThanOrEqual(1)
    expect(log.status().state).toBe('closed')
  })

  test('in a read by position delays no commit, and further reads are refused until it ends', async () => {
    const { log } = await open()
    const { position } = await log.append([rowOf('a')])
    const release = disk.hold('read')
    const code = ({ code }: LogError): string => code
    const first = log.read(position).catch(code)
    const second = log.read(position).catch(code)
    await quiet()
    expect(await append(log)).toBe('stored 2')
    await timePasses(TIMEOUT_MS)
    expect([await first, await second]).toEqual(['disk_hanging', 'disk_hanging'])
    expect(await log.read(position).catch(code)).toBe('disk_hanging')
    release()
    await quiet()
    expect(await log.read(position)).toMatchObject({ lsn: 1 })
  })
})

describe('a start', () => {
  /** A log whose process was killed right after a commit. */
  async function killed(): Promise<void> {
    const { log } = await open()
    await appendTogether(log, 2)
    disk = disk.afterKill()
  }

  test('on a full disk reads everything, and takes commits once there is space', async () => {
    await killed()
    for (let attempt = 0; attempt < 3; attempt++) disk.fail('create', 'ENOSPC')
    const { log, found } = await open()
    expect(found).toEqual([1, 2])
    expect(log.status().state).toBe('recovering')
    expect(await append(log)).toBe('disk_failed')
    await timePasses(1_000)
    expect(await append(log)).toBe('stored 3')
  })

  test('on a full disk lets a flush read and remove the segments, after which no recovery is needed', async () => {
    await killed()
    for (let attempt = 0; attempt < 3; attempt++) disk.fail('create', 'ENOSPC')
    const { log } = await open()
    expect(log.segments()).toMatchObject([{ firstLsn: 1, lastLsn: 2, commits: 2 }])
    await log.remove(1)
    expect(log.status().state).toBe('ready')
  })

  test('on a disk that hangs completes after the time limit, and takes commits once the disk works', async () => {
    await killed()
    const release = disk.hold('sync')
    const opening = open()
    await quiet()
    await timePasses(TIMEOUT_MS)
    const { log, found } = await opening
    expect(found).toEqual([1, 2])
    expect(await append(log)).toBe('disk_hanging')
    release()
    await quiet()
    await timePasses(200)
    expect(await append(log)).toBe('stored 3')
  })

  test('seals the segment that a killed process left, and does not rewrite one that was closed', async () => {
    await killed()
    const first = await open()
    expect(disk.file('00000000000000000001.log').toString()).toMatch(/"end":true,"afterLsn":2\}\n$/)
    await first.log.close()
    const before = disk.file('00000000000000000001.log')
    await open()
    expect(disk.file('00000000000000000001.log')).toBe(before)
  })
})
