// A power cut at each operation of a scripted run loses nothing that was acknowledged and brings back nothing that was refused.
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { random as seeded } from '../../../bench/datasets/random.ts'
import { anyCut, anyLoss, type Cut, cutEverywhere, diskAfter, quiet } from '../../support/disk/cuts.ts'
import { SimulatedDisk } from '../../support/disk/simulated-disk.ts'
import { TIMEOUT_MS, World } from './world.ts'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
})
afterEach(() => {
  vi.useRealTimers()
})

/** Group commits, seals, flushes, and segments that are sealed because of their size. */
async function workScript(world: World): Promise<void> {
  await world.open()
  await world.append()
  await world.appendTogether(3)
  await world.log.seal()
  await world.append()
  await world.flush()
  await world.appendTogether(5)
  // Appends during a group's write form the next group.
  const first = world.appendTogether(2)
  await world.quiet()
  await Promise.all([first, world.appendTogether(3)])
  await world.flush()
  world.nowMs -= 60_000
  await world.appendTogether(9)
  await world.append()
  await world.append()
  await world.log.close()
  await world.open()
  await world.append()
  await world.flush()
  await world.append()
}

/** Writes and syncs that fail, in every place where they can. */
async function failureScript(world: World): Promise<void> {
  const { disk } = world
  await world.open()
  await world.append()
  disk.fail('sync', 'EIO')
  await world.appendTogether(3)
  await world.append()
  // The write fails, and then the header that should void the group, at each of its steps.
  disk.fail('write', 'EIO')
  for (const kind of ['create', 'write', 'sync', 'rename', 'syncFolder'] as const) disk.fail(kind, 'EIO')
  const inDoubt = world.appendTogether(2)
  for (let attempt = 0; attempt < 6; attempt++) {
    await world.quiet()
    await world.append()
    await world.timePasses(200)
  }
  for (let second = 0; second < 5; second++) await world.timePasses(1_000)
  await inDoubt
  await world.quiet()
  await world.appendTogether(2)
  // The zeros ahead, and the write behind them.
  for (const kind of ['writeZeros', 'sync', 'write'] as const) {
    await world.log.seal()
    await world.append()
    if (kind === 'write') await world.append()
    disk.fail(kind, 'EIO')
    await world.appendTogether(2)
    await world.quiet()
    await world.append()
  }
  for (const bytes of [0, 50]) {
    await world.log.seal()
    await world.append()
    disk.fail('writeZeros', 'ENOSPC', bytes)
    await world.appendTogether(2)
    await world.append()
  }
  // A full disk takes a part of a write, and the file can be truncated.
  await world.log.seal()
  await world.append()
  await world.append()
  disk.fail('write', 'ENOSPC', 50)
  await world.appendTogether(2)
  await world.append()
  // It takes all of it, and has no room when it is synced.
  disk.fail('sync', 'ENOSPC')
  await world.appendTogether(2)
  await world.append()
  // Truncating fails too.
  disk.fail('write', 'ENOSPC', 80)
  disk.fail('truncate', 'EIO')
  await world.append()
  await world.quiet()
  await world.append()
  // The first group of a new segment.
  for (const kind of ['create', 'write', 'sync', 'rename', 'syncFolder'] as const) {
    await world.log.seal()
    disk.fail(kind, 'EIO')
    await world.append()
    await world.quiet()
    await world.append()
  }
  // The end of a segment.
  disk.fail('sync', 'EIO')
  await world.flush()
  await world.append()
  disk.fail('unlink', 'EIO')
  await world.flush().catch(() => undefined)
  await world.append()
  await world.flush()
}

/** Operations that hang until all callers have been answered. */
async function hangScript(world: World): Promise<void> {
  const { disk } = world
  await world.open()
  await world.append()
  for (const kind of ['writeZeros', 'write', 'sync'] as const) {
    const release = disk.hold(kind)
    const hanging = world.appendTogether(2)
    await world.quiet()
    const waiting = world.append()
    await world.timePasses(TIMEOUT_MS)
    await Promise.all([hanging, waiting, world.append()])
    release()
    await world.quiet()
    await world.append()
  }
  for (const kind of ['create', 'sync', 'rename', 'syncFolder'] as const) {
    await world.log.seal()
    const release = disk.hold(kind, kind === 'create' ? 'EIO' : undefined)
    const hanging = world.appendTogether(2)
    await world.quiet()
    await world.timePasses(TIMEOUT_MS)
    await hanging
    release()
    await world.quiet()
    await world.append()
  }
  await world.flush()
  const release = disk.hold('sync')
  const last = world.append()
  await world.quiet()
  await world.timePasses(TIMEOUT_MS)
  await last
  expect(release).toBeTypeOf('function')
}

const SCRIPTS = { work: workScript, failures: failureScript, hangs: hangScript }

/** Restarts the log, sometimes cutting the disk during recovery, and restarts it again after power cuts. */
async function checkRestarts(before: World, cut: Cut, random: () => number): Promise<void> {
  let disk = diskAfter(before.disk, cut, random)
  if (random() < 0.3) {
    const world = new World(disk.cutAt(Math.floor(random() * 25), random() < 0.5), before)
    await Promise.race([world.open(), disk.whenCut])
    disk = diskAfter(disk, anyCut(random), random)
  }
  const world = new World(disk, before)
  const found = await world.open()
  world.expectConsistent(found)
  // Commits that a start has visited survive a power cut right after it.
  const second = new World(disk.afterPowerCut(anyLoss(random), random), world)
  expect(await second.open()).toEqual(found)
  await second.expectRising(found)
  const third = new World(second.disk.afterPowerCut('nothing kept', random), second)
  const again = await third.open()
  expect(again.slice(0, -1)).toEqual(found)
  expect(again.at(-1)?.id).toBe('probe')
  expect(third.log.recovered.damage).toEqual([])
}

/** How many kinds of loss are tried at each operation. */
const CUTS_EACH = Number(process.env.MINTLAKE_TEST_LOG_CUTS ?? 1)

/** In `npm test` one operation of seven is cut: the kinds of cut, which take turns, are six, so each has its turn. */
const STRIDES = [
  { everyOperation: 7, tags: [] },
  { everyOperation: 1, tags: ['drill'] },
]

describe.each(Object.entries(SCRIPTS))('a log cut off during its %s', (_, run) => {
  const begin = (): World => new World(new SimulatedDisk())

  for (const { everyOperation, tags } of STRIDES)
    test(`holds every acknowledged commit and no refused one, cut at every ${everyOperation} operations`, {
      tags,
    }, async () => {
      const whole = await cutEverywhere({
        begin,
        run,
        check: checkRestarts,
        cutsEach: CUTS_EACH,
        everyOperation,
      })
      expect(whole.disk.runningMax).toBe(1)
    })

  test('answers every caller when it is not cut', async () => {
    const world = begin()
    await run(world)
    expect(world.acknowledged.size + world.notStored.size + world.maybeStored.size).toBe(world.asked.size)
    expect(world.acknowledged.size).toBeGreaterThan(0)
  })
})

test('a start finds a prefix of the group that a power cut interrupted, whatever order its pages were written in', async () => {
  let shorter = 0
  for (let seed = 0; seed < 100; seed++) {
    const random = seeded(seed)
    const world = new World(new SimulatedDisk())
    await world.open()
    await world.append()
    // Writes zeros ahead, which the group then replaces.
    await world.append()
    world.disk.hold('sync')
    void world.appendTogether(8)
    await quiet()
    const next = new World(world.disk.afterPowerCut('pages reordered', random), world)
    const found = await next.open()
    next.expectConsistent(found)
    expect(found.map(({ id }) => id)).toEqual(found.map((_, index) => `c${index}`))
    if (next.log.recovered.highestLsn > found.length) shorter++
  }
  expect(shorter).toBeGreaterThan(70)
})
