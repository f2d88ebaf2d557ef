// In: the real program on a disk whose syncs fail, hang or are slow. Out: what callers are told meanwhile; that it goes on
// by itself when the disk does; and that afterwards each acknowledged submission is there once, and no refused one is,
// also when the power fails: bytes of which a sync failed may be readable and never come to the disk.
import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import { noWatchedDisk } from '../support/disk/disk-shim.ts'
import { type Sent, until, WatchedHouse } from '../support/disk/watched-server.ts'
import { expectProblem } from '../support/submission.ts'

const COMMIT_TIMEOUT_MS = 10_000
/** A read while the disk hangs: far more than one takes, on a busy machine, and far less than the disk. */
const READ_MS_MAX = 2_000
const HANG_MS = 15_000
const SLOW_MS = 150
const CALLERS = 200
/** Syncs of the log while that many callers wait, those of its folder and of ended segments among them: most callers come
 *  while the first are being synced. */
const GROUPS_MAX = 8

/** That of `temporaryFolder`, and nothing in it. */
const DATA_FOLDER = '*/mintlake-test-??????'

const houses: WatchedHouse[] = []

beforeEach((context) => context.skip(noWatchedDisk !== null, noWatchedDisk ?? ''))
afterAll(async () => {
  for (const house of houses) await house.remove()
})

async function start(settings: Record<string, string> = {}): Promise<WatchedHouse> {
  const house = new WatchedHouse(settings)
  houses.push(house)
  return house.start()
}

/** Refused as the contract says, all of them; `mayBeStored` said by those of whom it is true. */
function expectRefused(sent: readonly Sent[], mayBeStored: boolean): void {
  for (const { answer } of sent) {
    expectProblem(answer, 'store_unavailable')
    expect(answer.body.mayBeStored ?? false).toBe(mayBeStored)
  }
}

/** Submits until one is accepted. */
async function untilAccepted(house: WatchedHouse): Promise<void> {
  await until('a submission is accepted', async () => {
    const [mint] = await house.tokens(1)
    return (await house.submit(mint)).answer.status === 201
  })
}

/** Asks for a page and a record again and again while `lasts`; answers how long the slowest took. */
async function slowestReadMs(house: WatchedHouse, lasts: () => boolean): Promise<number> {
  const paths = ['/api/v1/market?tab=live', `/api/v1/analysis/${house.acknowledged[0]}`]
  let slowestMs = 0
  while (lasts()) {
    for (const path of paths) {
      const beganMs = performance.now()
      expect((await house.client.get(path)).status).toBe(200)
      slowestMs = Math.max(slowestMs, performance.now() - beganMs)
    }
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  return slowestMs
}

/** Callers at once while the next sync fails. */
async function refusedOnce(house: WatchedHouse, pattern: string, callers: number): Promise<void> {
  const mints = await house.tokens(callers)
  house.disk.disturb('fail', 'once', pattern)
  const sent = await house.submitAll(mints)
  expect(house.disk.isTaken).toBe(true)
  const refused = sent.filter(({ answer }) => answer.status !== 201)
  expect(refused.length).toBeGreaterThan(0)
  expectRefused(refused, false)
}

describe.concurrent('a sync of the log', () => {
  // Those that wait longest begin first.
  it('that fails for longer than callers wait: they are told that nobody knows, all others that nothing is stored', async () => {
    const house = await start()
    const [first, doubtful, ...mints] = await house.tokens(4)
    await house.submit(first)
    house.disk.disturb('fail', 'always', '*/log/*')
    const beganMs = performance.now()
    const answered = house.submit(doubtful)
    await until('the log says that it recovers', async () => {
      const { reasons } = await house.health()
      return reasons.some((reason: string) => reason.startsWith('a write to the log failed'))
    })
    expectRefused(await house.submitAll(mints), false)
    expectRefused([await answered], true)
    expect(performance.now() - beganMs).toBeGreaterThan(COMMIT_TIMEOUT_MS - 100)
    house.disk.calm()
    await untilAccepted(house)
    await house.expectWholeAfterKill()
  })

  it('that hangs: callers wait 10 s and no longer, reads go on, and the log by itself once it ends', async () => {
    const house = await start()
    const [first, ...mints] = await house.tokens(3)
    await house.submit(first)
    house.disk.disturb(HANG_MS, 'once', '*/log/*')
    const beganMs = performance.now()
    const answered = house.submitAll(mints)
    let isAnswered = false
    void answered.finally(() => {
      isAnswered = true
    })
    expect(await slowestReadMs(house, () => !isAnswered)).toBeLessThan(READ_MS_MAX)
    const waitedMs = performance.now() - beganMs
    expect(waitedMs).toBeGreaterThan(COMMIT_TIMEOUT_MS - 100)
    expect(waitedMs).toBeLessThan(COMMIT_TIMEOUT_MS + READ_MS_MAX)
    // One at least is in the group that hangs; whoever waited behind it is not stored.
    const sent = await answered
    const doubtful = sent.filter(({ answer }) => answer.body.mayBeStored)
    expect(doubtful.length).toBeGreaterThan(0)
    expectRefused(doubtful, true)
    expectRefused(
      sent.filter((each) => !doubtful.includes(each)),
      false,
    )
    await until('it says that the disk does not answer', async () =>
      (await house.health()).reasons.includes('the disk does not answer'),
    )
    expectRefused(await house.submitAll(await house.tokens(2)), false)
    await untilAccepted(house)
    expect(performance.now() - beganMs).toBeGreaterThan(HANG_MS - 100)
    await house.expectWholeAfterKill()
  })

  it('that fails once, of a segment, a new one or their folder: its callers are refused as not stored, the next are accepted', async () => {
    const house = await start()
    for (const pattern of ['*.log', '*/log/next.tmp', '*/log']) {
      await refusedOnce(house, pattern, 4)
      const [mint] = await house.tokens(1)
      expect((await house.submit(mint)).answer.status).toBe(201)
      // Killed before anything else is written: whoever was told that nothing is stored was told so in time.
      await refusedOnce(house, '*.log', 1)
      await house.killAndStart()
      // The next commit begins a segment.
      await house.untilFlushed()
      await house.expectLake()
    }
    await house.expectWholeAfterKill()
  })
})

describe.concurrent('a disk', () => {
  it('whose syncs take 150 ms each serves many callers at once with few of them', async () => {
    const house = await start({ 'lake-flush-ms': '200' })
    const mints = await house.tokens(CALLERS)
    house.disk.disturb(SLOW_MS, 'always', '*')
    const from = house.disk.calls().length
    const beganMs = performance.now()
    for (const { answer } of await house.submitAll(mints)) expect(answer.status, answer.text).toBe(201)
    const tookMs = performance.now() - beganMs
    const syncs = house.disk
      .calls()
      .slice(from)
      .filter(({ word, path }) => word === 'sync' && path.startsWith('log/'))
    expect(syncs.length).toBeLessThanOrEqual(GROUPS_MAX)
    // One after the other they would take four times as long.
    expect(tookMs).toBeLessThan((CALLERS * SLOW_MS) / 4)
    await house.untilFlushed()
    expect((await house.health()).reasons).toEqual([])
    house.disk.calm()
    await house.expectWholeAfterKill()
  })
})

describe.concurrent('a sync of the lake', () => {
  const UNWRITTEN = /^the lake could not be written|^the lake process does not run/

  /** Whatever fails, commits go on, and the flush is tried again. */
  async function failAndGoOn(house: WatchedHouse, pattern: string): Promise<void> {
    house.disk.disturb('fail', 'always', pattern)
    const mints = await house.tokens(6)
    await house.trade(mints[0])
    const submitted = [...(await house.submitAll(mints.slice(0, 3)))]
    await until('it says that the lake is not written', async () =>
      (await house.health()).reasons.some((reason: string) => UNWRITTEN.test(reason)),
    )
    submitted.push(...(await house.submitAll(mints.slice(3))))
    for (const { answer } of submitted) expect(answer.status, answer.text).toBe(201)
    house.disk.calm()
    await house.untilFlushed()
    await until('it says that all is well', async () => (await house.health()).healthy)
    await house.expectLake()
  }

  // A folder is made by the first flush alone.
  it.each([
    [
      'a date’s folder, a Parquet file and the catalog',
      ['*/dt=????-??-??', '*.parquet.tmp', '*/catalog.duckdb.tmp'],
    ],
    ['a table’s folder and the state database', ['*/lake/.files/training', '*/state.duckdb*']],
    ['a folder that readers list and the data folder', ['*/lake/training*', DATA_FOLDER]],
  ])(
    'that fails, of %s: the flush is tried again until it succeeds, and nothing goes with it',
    async (_, patterns) => {
      const house = await start({ 'lake-flush-ms': '100' })
      for (const pattern of patterns) await failAndGoOn(house, pattern)
      await house.expectWholeAfterKill()
    },
  )
})
