// A kill or a power cut at each operation of a scripted run: what has the name of a checkpoint is whole, and one that was finished is
// there.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { CheckpointFile, writeCheckpoint } from '../../src/checkpoint/checkpoint-file.ts'
import { listCheckpoints } from '../../src/checkpoint/checkpoint-folder.ts'
import { systemCode } from '../../src/lib/error-text.ts'
import { type Cut, cutEverywhere, diskAfter } from '../support/disk/cuts.ts'
import { SimulatedDisk } from '../support/disk/simulated-disk.ts'
import { temporaryFolder } from '../support/test-server.ts'

let folder: string
beforeEach(() => {
  folder = temporaryFolder()
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const head = {
  ...{
    folderId: 'folder-1',
    atMs: 1,
    originEventNo: 1,
    barsInLakeToMs: 0,
    lostEvents: 0,
    version: 'test',
    writtenAtMs: 1,
  },
  settings: { tokensMax: 10, newWindowMs: 1, solPriceMaxAgeMs: 0, barsPerTokenMax: 8, versionsMax: 9 },
}
const SECTIONS = ['first', 'second', 'third']
const contentOf = (eventNo: number, name: string): Buffer => Buffer.from(`${name} of ${eventNo} `.repeat(20))

/** A process that writes checkpoints, one after another. */
class World {
  readonly disk: SimulatedDisk
  readonly finished: number[] = []

  constructor(disk: SimulatedDisk) {
    this.disk = disk
  }

  async write(eventNo: number): Promise<void> {
    const sections = SECTIONS.map((name) => ({ name, bytes: contentOf(eventNo, name) }))
    await writeCheckpoint('/checkpoints', { ...head, eventNo }, sections, () => {}, this.disk)
    this.finished.push(eventNo)
  }

  /** At a disk that refuses. */
  async fail(eventNo: number, code: string): Promise<void> {
    expect(await this.write(eventNo).catch(systemCode)).toBe(code)
  }
}

/** Checkpoints that are finished, and some at which the disk fails in every place where it can. */
async function writeSome(world: World): Promise<void> {
  await world.write(1)
  await world.write(20)
  let eventNo = 20
  for (const kind of ['create', 'write', 'sync', 'rename', 'syncFolder'] as const) {
    world.disk.fail(kind, 'EIO')
    await world.fail(++eventNo, 'EIO')
  }
  world.disk.fail('write', 'ENOSPC', 50)
  await world.fail(++eventNo, 'ENOSPC')
  await world.write(++eventNo)
}

/** The checkpoints on a disk, oldest first. Each is whole. */
async function wholeOnes(disk: SimulatedDisk): Promise<number[]> {
  const copy = join(folder, 'checkpoints')
  rmSync(copy, { recursive: true, force: true })
  mkdirSync(copy)
  for (const name of disk.fileNames) writeFileSync(join(copy, name), disk.file(name))
  const found = (await listCheckpoints(copy)).toReversed()
  for (const { path, eventNo } of found) {
    const file = new CheckpointFile(path)
    expect(file.head.eventNo).toBe(eventNo)
    for (const name of SECTIONS) expect(file.read(name)).toEqual(contentOf(eventNo, name))
    file.close()
  }
  return found.map(({ eventNo }) => eventNo)
}

async function checkRestart(before: World, cut: Cut, random: () => number): Promise<void> {
  const world = new World(diskAfter(before.disk, cut, random))
  const found = await wholeOnes(world.disk)
  expect(found).toEqual(expect.arrayContaining(before.finished))
  await world.write(99)
  // The next one takes the place of what was left unfinished.
  const next = await wholeOnes(world.disk.afterPowerCut('nothing kept', random))
  expect(next).toEqual([...found, 99])
}

test('what has the name of a checkpoint is whole, and one that was finished is there', async () => {
  const whole = await cutEverywhere({
    begin: () => new World(new SimulatedDisk()),
    run: writeSome,
    check: checkRestart,
    cutsEach: 3,
  })
  expect(whole.finished).toEqual([1, 20, 27])
})
