// @module-tag drill
// Records every call that the real program makes on its disk, and checks for each moment that a power cut would lose
// nothing that was acknowledged.
import { afterEach, beforeEach, expect, it } from 'vitest'
import { noWatchedDisk } from '../support/disk/disk-shim.ts'
import { type DiskCall, isLakeFile, isState, lossesOf, SEGMENT } from '../support/disk/disk-trace.ts'
import { until, WatchedServer } from '../support/disk/watched-server.ts'

const ROUNDS = 2
const BURST = 4
/** Tables of which every flush of submissions writes a file. */
const TABLES = ['training', 'xp_ledger']
const PART = /\/part-0*(\d+)-0*(\d+)\.parquet$/

let server: WatchedServer

beforeEach((context) => {
  context.skip(noWatchedDisk !== null, noWatchedDisk ?? '')
  server = new WatchedServer({ 'lake-flush-ms': '100' })
})
afterEach(() => server?.remove())

/** Submissions and bars in rounds, each flushed to the lake separately. */
async function work(): Promise<void> {
  for (let round = 0; round < ROUNDS; round++) {
    const [traded, ...mints] = await server.tokens(BURST + 1)
    await server.trade(traded)
    for (const { answer } of await server.submitAll(mints)) expect(answer.status, answer.text).toBe(201)
    await server.untilFlushed()
  }
}

/** The last matching call before a position, and the first one after it. */
const before = (calls: readonly DiskCall[], at: number, isMeant: (call: DiskCall) => boolean) =>
  calls.findLast((call) => call.at < at && isMeant(call))
const behind = (calls: readonly DiskCall[], at: number, isMeant: (call: DiskCall) => boolean) =>
  calls.find((call) => call.at > at && isMeant(call))

/** The steps of a flush for one file, in order. A step that is missing or out of order is left out. */
function stepsOf(calls: readonly DiskCall[], part: string): Record<string, DiskCall | undefined> {
  const named = calls.find(({ word, to }) => word === 'rename' && to === part)!
  const linked = behind(calls, named.at, ({ word, path }) => word === 'link' && path === part)!
  const folder = part.slice(0, part.lastIndexOf('/'))
  const isCatalog = ({ word, to }: DiskCall) => word === 'rename' && to === 'lake/catalog.duckdb'
  const swapped = behind(calls, linked.at, isCatalog)!
  return {
    written: before(calls, named.at, ({ word, path }) => word === 'write' && path === named.path),
    'file synced': before(calls, named.at, ({ word, path }) => word === 'sync' && path === named.path),
    named,
    'folder synced': behind(
      calls,
      named.at,
      ({ word, path, beganAt }) => word === 'sync' && path === folder && beganAt > named.at,
    ),
    'list written': before(calls, linked.at, ({ word, path }) => word === 'write' && isState(path)),
    'list synced': before(calls, linked.at, ({ word, path }) => word === 'sync' && isState(path)),
    linked,
    'catalog synced': before(calls, swapped.at, ({ word, path }) => word === 'sync' && path === swapped.path),
    'catalog in its place': swapped,
  }
}

/** Files of the lake with the rows of a segment. */
function partsOf(calls: readonly DiskCall[], firstLsn: number, table: string): string[] {
  const names = calls.filter(({ word, to }) => word === 'rename' && isLakeFile(to)).map(({ to }) => to)
  return names.filter((name) => {
    const [, first, last] = PART.exec(name)!
    return name.includes(`/${table}/`) && Number(first) <= firstLsn && firstLsn <= Number(last)
  })
}

function expectOrder(calls: readonly DiskCall[], gone: DiskCall): number {
  const firstLsn = Number(SEGMENT.exec(gone.path)![1])
  const parts = TABLES.flatMap((table) => partsOf(calls, firstLsn, table))
  for (const part of parts) {
    const steps = Object.entries({ ...stepsOf(calls, part), 'segment gone': gone })
    const inTurn = steps.filter(([, call]) => call !== undefined).toSorted(([, a], [, b]) => a!.at - b!.at)
    expect(inTurn.map(([name]) => name)).toEqual(steps.map(([name]) => name))
  }
  const unlinked = behind(calls, gone.at, ({ word, path }) => word === 'unlinked' && path === gone.path)!
  const synced = behind(
    calls,
    unlinked.at,
    ({ word, path, beganAt }) => word === 'sync' && path === 'log' && beganAt > unlinked.at,
  )
  const next = behind(calls, unlinked.at, ({ word, path }) => word === 'unlink' && SEGMENT.test(path))
  expect(synced?.at ?? Number.POSITIVE_INFINITY).toBeLessThan(next?.at ?? Number.POSITIVE_INFINITY)
  return parts.length
}

it('a power cut at any answer or any removal of a segment loses nothing that was acknowledged', async () => {
  await server.start()
  await work()
  // The next start flushes what this one left in the log.
  await server.submitAll(await server.tokens(BURST))
  await server.killAndStart()
  await server.untilFlushed()
  await work()
  // A clean stop ends DuckDB's own log, and the next flush begins another.
  await server.stop()
  await server.start()
  await work()
  await until('bars are in the lake', async () =>
    (await server.health()).lake.some(
      ({ table, rows }: { table: string; rows: number }) => table === 'bars' && rows > 0,
    ),
  )
  await server.stop()
  await server.expectLake()

  const calls = server.disk.calls()
  const answers = calls.filter(({ word }) => word === 'answer')
  expect(answers.length).toBe(server.acknowledged.length + 1)
  const gone = calls.filter(({ word, path }) => word === 'unlink' && SEGMENT.test(path))
  expect(gone.length).toBeGreaterThanOrEqual(3 * ROUNDS)
  let files = 0
  for (const segment of gone) files += expectOrder(calls, segment)
  expect(files).toBeGreaterThanOrEqual(3 * ROUNDS * TABLES.length)
  expect(lossesOf(calls)).toEqual([])
})
