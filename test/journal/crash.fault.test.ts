// A kill or a power cut at each operation of a scripted run: nothing that was durable is lost, nothing is out of order, and what a
// reader has consumed is never contradicted by what follows.
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { EventJournal } from '../../src/journal/journal.ts'
import type { JournalOptions, LostInterval } from '../../src/journal/types.ts'
import { clockOf } from '../support/clock.ts'
import { anyLoss, type Cut, cutEverywhere, diskAfter } from '../support/disk/cuts.ts'
import { SimulatedDisk } from '../support/disk/simulated-disk.ts'
import { appendNumbered, numbersFrom, openTestJournal, readNumbered } from './support.ts'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance'] })
})
afterEach(() => {
  vi.useRealTimers()
})

const FOLDER = '/journal'
const never = new Promise<never>(() => undefined)

/** A journal on a simulated disk, and a reader in another process that consumes what is durable. */
class World {
  readonly disk: SimulatedDisk
  journal!: EventJournal
  /** The reader has the events up to this one. */
  consumed: number
  /** The highest number that was said to be durable. */
  durable: number
  readonly lost: LostInterval[] = []

  constructor(disk: SimulatedDisk, before?: World) {
    this.disk = disk
    this.consumed = before?.consumed ?? 0
    this.durable = before?.durable ?? 0
  }

  async open(over: Partial<JournalOptions> = {}): Promise<void> {
    this.journal = await openTestJournal(FOLDER, {
      ...{ disk: this.disk, clock: clockOf(() => performance.now()), segmentBytes: 1_500 },
      markPath: '/journal.mark',
      afterEventNo: this.consumed,
      onLost: (interval) => void this.lost.push(interval),
      ...over,
    })
    expect(this.journal.lastEventNo).toBeGreaterThanOrEqual(this.durable)
  }

  /** Appends and lets the disk work. */
  async append(count: number): Promise<void> {
    appendNumbered(this.journal, count)
    await this.timePasses(60)
    this.durable = Math.max(this.durable, this.journal.stats().syncedEventNo)
  }

  async seal(): Promise<number> {
    let sealed: { throughEventNo: number } | null = null
    const sealing = this.journal.seal().then((result) => {
      sealed = result
    })
    while (sealed === null) await this.timePasses(200)
    await sealing
    const { throughEventNo } = sealed as { throughEventNo: number }
    this.durable = Math.max(this.durable, throughEventNo)
    return throughEventNo
  }

  /** Seals, reads what is new, and removes what it has read. */
  async consume(): Promise<void> {
    const throughEventNo = await this.seal()
    if (throughEventNo <= this.consumed) return
    const { numbers, damage } = await this.#read({ throughEventNo })
    expect(damage).toEqual([])
    const fresh = numbers.filter((number) => number > this.consumed && number <= throughEventNo)
    expect(fresh).toEqual(numbersFrom(this.consumed + 1, throughEventNo))
    this.consumed = throughEventNo
    await this.journal.removeThrough(this.consumed)
  }

  /** Everything behind what the reader has is there, in order. */
  async expectWhole(): Promise<void> {
    const { numbers, damage } = await this.#read({})
    expect(damage).toEqual([])
    const fresh = numbers.filter((number) => number > this.consumed)
    expect(fresh).toEqual(numbersFrom(this.consumed + 1, this.consumed + fresh.length))
    expect(this.consumed + fresh.length).toBeGreaterThanOrEqual(this.durable)
  }

  async timePasses(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += 500) {
      if (this.disk.isCut) await never
      await vi.advanceTimersByTimeAsync(Math.min(500, ms - passed))
      await this.#idle()
    }
  }

  /** Resolves when the journal has nothing more to do. */
  async #idle(): Promise<void> {
    let { operations } = this.disk
    for (let turn = 0; turn < 3; turn++) {
      await new Promise((resolve) => setImmediate(resolve))
      if (this.disk.operations !== operations) turn = 0
      operations = this.disk.operations
    }
  }

  #read(options: { throughEventNo?: number }) {
    return readNumbered(FOLDER, this.consumed, { disk: this.disk, ...options })
  }
}

/** Batches, segments that end because of their size, seals, syncs, and a restart in order. */
async function workScript(world: World): Promise<void> {
  await world.open()
  await world.append(3)
  await world.append(20)
  await world.timePasses(1_100)
  await world.append(5)
  await world.consume()
  await world.append(30)
  await world.append(1)
  await world.timePasses(1_100)
  await world.consume()
  await world.append(9)
  const closing = world.journal.close()
  await world.timePasses(4_000)
  await closing
  await world.open()
  await world.append(4)
  await world.consume()
  await world.append(2)
}

/** Writes and syncs that fail, in every place where they can. */
async function failureScript(world: World): Promise<void> {
  const { disk } = world
  await world.open()
  await world.append(3)
  for (const kind of ['write', 'sync', 'syncFolder', 'create', 'rename'] as const) {
    disk.fail(kind, 'EIO')
    await world.append(5)
    await world.timePasses(1_100)
    await world.append(5)
    if (kind === 'create') await world.consume()
  }
  disk.fail('write', 'ENOSPC', 70)
  disk.fail('write', 'ENOSPC', 30)
  await world.append(5)
  await world.timePasses(2_000)
  await world.append(5)
  // A segment whose sync has failed is written anew, and that fails too.
  disk.fail('sync', 'EIO')
  await world.append(5)
  await world.timePasses(1_100)
  disk.fail('write', 'EIO')
  disk.fail('rename', 'EIO')
  await world.append(5)
  await world.consume()
  disk.fail('unlink', 'EIO')
  await world.append(5)
  await world.consume().catch(() => undefined)
  await world.append(5)
  await world.consume()
}

/** A journal whose last events were not synced when its process was killed is taken over, and written at once. */
async function takeoverScript(world: World): Promise<void> {
  await world.open()
  await world.append(20)
  await world.append(20)
  await world.timePasses(1_100)
  await world.append(5)
  await world.consume()
  await world.append(5)
}

const emptyDisk = async (): Promise<World> => new World(new SimulatedDisk())

async function killedRun(): Promise<World> {
  const world = new World(new SimulatedDisk())
  await world.open()
  await world.append(40)
  await world.timePasses(1_100)
  await world.append(40)
  return world
}

const SCRIPTS = {
  work: { before: emptyDisk, script: workScript },
  failures: { before: emptyDisk, script: failureScript },
  takeover: { before: killedRun, script: takeoverScript },
}

/** Restarts after the cut, works, and is cut once more. */
async function checkRestarts(before: World, cut: Cut, random: () => number): Promise<void> {
  const world = new World(diskAfter(before.disk, cut, random), before)
  await world.open()
  await world.expectWhole()
  await world.append(8)
  await world.expectWhole()
  if (random() < 0.5) await world.consume()
  await world.append(8)
  const again: Cut = random() < 0.5 ? 'killed' : anyLoss(random)
  const second = new World(diskAfter(world.disk, again, random), world)
  await second.open()
  await second.expectWhole()
  await second.append(3)
  await second.consume()
  expect(second.consumed).toBe(second.journal.lastEventNo)
}

/** How many kinds of loss are tried at each operation. */
const CUTS_EACH = Number(process.env.MINTLAKE_TEST_JOURNAL_CUTS ?? 1)

describe.each(Object.entries(SCRIPTS))('a journal cut off during its %s', (_, { before, script: run }) => {
  /** On the disk as the run before left it when it was killed. */
  const begin = async (): Promise<World> => {
    const earlier = await before()
    return new World(earlier.disk.afterKill(), earlier)
  }

  test('keeps what was durable, wherever it is cut', { tags: 'drill' }, async () => {
    const whole = await cutEverywhere({ begin, run, check: checkRestarts, cutsEach: CUTS_EACH })
    expect(whole.lost).toEqual([])
  })
})

test('a disk that hangs: events wait, then are lost and told once it works again', async () => {
  const world = new World(new SimulatedDisk())
  await world.open({ waitingBytesMax: 20_000 })
  await world.append(10)
  const release = world.disk.hold('write')
  for (let round = 0; round < 40; round++) await world.append(20)
  const stalled = world.journal.stats()
  expect(stalled).toMatchObject({ trouble: 'the disk is too slow' })
  expect(stalled.lost).toBeGreaterThan(0)
  expect(stalled.waitingBytes).toBeLessThan(25_000)
  expect(world.lost).toEqual([])
  release()
  await world.timePasses(1_000)
  expect(world.lost).toHaveLength(1)
  expect(world.lost[0].toMs).toBeGreaterThanOrEqual(world.lost[0].fromMs)
  await world.append(5)
  await world.consume()
  // Lost events get no numbers.
  expect(world.consumed).toBe(world.journal.lastEventNo)
  expect(world.journal.stats()).toMatchObject({ trouble: null, recorded: world.journal.lastEventNo })
})

test('nothing is written while the disk is nearly full, or the journal has its largest size', async () => {
  let hasRoom = false
  const world = new World(new SimulatedDisk())
  await world.open({ mayRecord: () => hasRoom, bytesMax: 3_000 })
  await world.append(10)
  expect(world.journal.stats()).toMatchObject({ trouble: 'the disk is nearly full', writtenEventNo: 0 })
  hasRoom = true
  await world.timePasses(1_000)
  expect(world.journal.stats()).toMatchObject({ trouble: null, writtenEventNo: 10 })
  for (let round = 0; round < 5; round++) await world.append(20)
  expect(world.journal.stats().trouble).toContain('largest size')
  expect(world.journal.stats().bytes).toBeLessThan(6_000)
  await world.consume()
  await world.timePasses(1_000)
  await world.consume()
  await world.timePasses(1_000)
  expect(world.journal.stats()).toMatchObject({ trouble: null, lost: 0, writtenEventNo: 110 })
})

describe('a stop', () => {
  const written = async ({ disk }: World) => (await readNumbered(FOLDER, 0, { disk })).numbers

  test('writes what waited for room, beyond the largest size too, and leaves nothing to tell', async () => {
    const warnings: string[] = []
    const log = {
      info: () => {},
      error: () => {},
      warn: (_: object, text: string) => void warnings.push(text),
    }
    const world = new World(new SimulatedDisk())
    await world.open({ log, mayRecord: (_, usesReserve) => usesReserve, bytesMax: 0 })
    await world.append(30)
    expect(world.journal.stats()).toMatchObject({ trouble: 'the disk is nearly full', writtenEventNo: 0 })
    const closing = world.journal.close()
    await world.timePasses(500)
    expect(await closing).toBe(true)
    expect(world.journal.stats()).toMatchObject({ lost: 0, syncedEventNo: 30 })
    expect(await written(world)).toEqual(numbersFrom(1, 30))
    expect(warnings).toEqual([])
  })

  test('records the gap of what was lost before it', async () => {
    const world = new World(new SimulatedDisk())
    const append = () => appendNumbered(world.journal, 1)
    await world.open({
      ...{ mayRecord: (_, usesReserve) => usesReserve, waitingBytesMax: 5_000, onLost: append },
    })
    for (let round = 0; round < 10; round++) await world.append(20)
    const { lastEventNo } = world.journal
    expect(world.journal.stats().lost).toBe(200 - lastEventNo)
    const closing = world.journal.close()
    await world.timePasses(500)
    expect(await closing).toBe(true)
    expect(await written(world)).toEqual(numbersFrom(1, lastEventNo + 1))
  })

  test('that cannot write what waits counts it as lost, and says so', async () => {
    const warnings: object[] = []
    const log = { info: () => {}, error: () => {}, warn: (details: object) => void warnings.push(details) }
    const world = new World(new SimulatedDisk())
    await world.open({ log })
    await world.append(10)
    world.disk.hold('write')
    appendNumbered(world.journal, 5)
    const closing = world.journal.close()
    await world.timePasses(10_000)
    expect(await closing).toBe(false)
    expect(warnings).toEqual([{ lost: 5, notWritten: 5 }])
    appendNumbered(world.journal, 1)
    expect(world.journal.stats().lost).toBe(6)
  })

  test('writes nothing into a folder that is not its own', async () => {
    const world = new World(new SimulatedDisk())
    await world.open({ mayRecord: () => false })
    await world.append(10)
    const closing = world.journal.close()
    await world.timePasses(10_000)
    expect(await closing).toBe(false)
    expect(world.journal.stats().lost).toBe(10)
    expect(world.disk.fileNames).toEqual([])
  })
})
