// @module-tag drill
// The real program on a disk whose syncs fail, hang or are slow: callers get the right errors, the server recovers by itself,
// every acknowledged submission is stored once and no refused one is, also when the power fails.
import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import { noWatchedDisk } from '../support/disk/disk-shim.ts'
import { type Sent, until, WatchedServer } from '../support/disk/watched-server.ts'
import { expectProblem } from '../support/submission.ts'

const COMMIT_TIMEOUT_MS = 10_000
/** Limit for a read while the disk hangs: far more than a read takes, and far less than the disk hangs. */
const READ_MS_MAX = 2_000
const HANG_MS = 15_000
const SLOW_MS = 150
const CALLERS = 200
/** Syncs of the log while that many callers wait, those of its folder and of ended segments among them: most callers come
 *  while the first are being synced. */
const GROUPS_MAX = 8

/** The parent of `temporaryFolder`, without its content. */
const DATA_FOLDER = '*/mintlake-test-??????'

const servers: WatchedServer[] = []

beforeEach((context) => context.skip(noWatchedDisk !== null, noWatchedDisk ?? ''))
afterAll(async () => {
  for (const server of servers) await server.remove()
})

async function start(settings: Record<string, string> = {}): Promise<WatchedServer> {
  const server = new WatchedServer(settings)
  servers.push(server)
  return server.start()
}

/** Checks that all were refused as the contract says, with or without `mayBeStored`. */
function expectRefused(sent: readonly Sent[], mayBeStored: boolean): void {
  for (const { answer } of sent) {
    expectProblem(answer, 'store_unavailable')
    expect(answer.body.mayBeStored ?? false).toBe(mayBeStored)
  }
}

/** Submits until one is accepted. */
async function untilAccepted(server: WatchedServer): Promise<void> {
  await until('a submission is accepted', async () => {
    const [mint] = await server.tokens(1)
    return (await server.submit(mint)).answer.status === 201
  })
}

/** Reads a page and a record repeatedly while `lasts` is true. Returns the time of the slowest read. */
async function slowestReadMs(server: WatchedServer, lasts: () => boolean): Promise<number> {
  const paths = ['/api/v1/market?tab=live', `/api/v1/analysis/${server.acknowledged[0]}`]
  let slowestMs = 0
  while (lasts()) {
    for (const path of paths) {
      const beganMs = performance.now()
      expect((await server.client.get(path)).status).toBe(200)
      slowestMs = Math.max(slowestMs, performance.now() - beganMs)
    }
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  return slowestMs
}

describe.concurrent('a sync of the log', () => {
  // The longest test comes first.
  it('that fails for longer than the commit timeout: its callers get mayBeStored, all others are refused as not stored', {
    tags: 'drill',
  }, async () => {
    const server = await start()
    const [first, doubtful, ...mints] = await server.tokens(4)
    await server.submit(first)
    server.disk.disturb('fail', 'always', '*/log/*')
    const beganMs = performance.now()
    const answered = server.submit(doubtful)
    await until('the log says that it recovers', async () => {
      const { reasons } = await server.health()
      return reasons.some((reason: string) => reason.startsWith('a write to the log failed'))
    })
    expectRefused(await server.submitAll(mints), false)
    expectRefused([await answered], true)
    expect(performance.now() - beganMs).toBeGreaterThan(COMMIT_TIMEOUT_MS - 100)
    server.disk.calm()
    await untilAccepted(server)
    await server.expectWholeAfterKill()
  })

  it('that hangs: callers wait 10 s at most, reads are served, and the log recovers by itself when the sync ends', {
    tags: 'drill',
  }, async () => {
    const server = await start()
    const [first, ...mints] = await server.tokens(3)
    await server.submit(first)
    server.disk.disturb(HANG_MS, 'once', '*/log/*')
    const beganMs = performance.now()
    const answered = server.submitAll(mints)
    let isAnswered = false
    void answered.finally(() => {
      isAnswered = true
    })
    expect(await slowestReadMs(server, () => !isAnswered)).toBeLessThan(READ_MS_MAX)
    const waitedMs = performance.now() - beganMs
    expect(waitedMs).toBeGreaterThan(COMMIT_TIMEOUT_MS - 100)
    expect(waitedMs).toBeLessThan(COMMIT_TIMEOUT_MS + READ_MS_MAX)
    // At least one is in the group that hangs. Those that waited behind it are not stored.
    const sent = await answered
    const doubtful = sent.filter(({ answer }) => answer.body.mayBeStored)
    expect(doubtful.length).toBeGreaterThan(0)
    expectRefused(doubtful, true)
    expectRefused(
      sent.filter((each) => !doubtful.includes(each)),
      false,
    )
    await until('it says that the disk does not answer', async () =>
      (await server.health()).reasons.includes('the disk does not answer'),
    )
    expectRefused(await server.submitAll(await server.tokens(2)), false)
    await untilAccepted(server)
    expect(performance.now() - beganMs).toBeGreaterThan(HANG_MS - 100)
    await server.expectWholeAfterKill()
  })
})

// What follows keeps the machine busy, where the tests above wait: at once, they would slow each other down to their limits.
describe('a disk', () => {
  it('whose syncs take 150 ms each serves many concurrent callers with few syncs', {
    tags: 'drill',
  }, async () => {
    const server = await start({ 'lake-flush-ms': '200' })
    const mints = await server.tokens(CALLERS)
    server.disk.disturb(SLOW_MS, 'always', '*')
    const from = server.disk.calls().length
    const beganMs = performance.now()
    for (const { answer } of await server.submitAll(mints)) expect(answer.status, answer.text).toBe(201)
    const tookMs = performance.now() - beganMs
    const syncs = server.disk
      .calls()
      .slice(from)
      .filter(({ word, path }) => word === 'sync' && path.startsWith('log/'))
    expect(syncs.length).toBeLessThanOrEqual(GROUPS_MAX)
    // One sync for each caller would take at least four times as long.
    expect(tookMs).toBeLessThan((CALLERS * SLOW_MS) / 4)
    await server.untilFlushed()
    expect((await server.health()).reasons).toEqual([])
    server.disk.calm()
    await server.expectWholeAfterKill()
  })
})

describe('a sync of the lake', () => {
  const UNWRITTEN = /^the lake could not be written|^the lake process does not run/

  /** While the syncs fail, commits are accepted. Afterwards the flush succeeds. */
  async function failAndGoOn(server: WatchedServer, pattern: string): Promise<void> {
    server.disk.disturb('fail', 'always', pattern)
    const mints = await server.tokens(6)
    await server.trade(mints[0])
    const submitted = [...(await server.submitAll(mints.slice(0, 3)))]
    await until('it says that the lake is not written', async () =>
      (await server.health()).reasons.some((reason: string) => UNWRITTEN.test(reason)),
    )
    submitted.push(...(await server.submitAll(mints.slice(3))))
    for (const { answer } of submitted) expect(answer.status, answer.text).toBe(201)
    server.disk.calm()
    await server.untilFlushed()
    await until('it says that all is well', async () => (await server.health()).healthy)
    await server.expectLake()
  }

  // Only the first flush creates a folder.
  it.each([
    [
      'a date’s folder, a Parquet file and the catalog',
      ['*/dt=????-??-??', '*.parquet.tmp', '*/catalog.duckdb.tmp'],
    ],
    ['a table’s folder and the state database', ['*/lake/.files/training', '*/state.duckdb*']],
    ['a folder that readers list and the data folder', ['*/lake/training*', DATA_FOLDER]],
  ])(
    'that fails, for %s: the flush is repeated until it succeeds, and nothing is lost',
    async (_, patterns) => {
      const server = await start({ 'lake-flush-ms': '100' })
      for (const pattern of patterns) await failAndGoOn(server, pattern)
      await server.expectWholeAfterKill()
    },
  )
})
