// What a restart means for the lake: the closed bars that a crash took with it are written after all, each once. And for folders with
// a simulated market: it is never restored as a real one.
import { rmSync } from 'node:fs'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { lakeGlob, readSql } from '../store/support.ts'
import type { SteppedClock } from '../support/clock.ts'
import { openTestServer, type TestServer, temporaryFolder } from '../support/test-server.ts'
import { answersOf, crashImage, MINTS, noonClock, pushSome } from './support.ts'

let clock: SteppedClock
const servers: TestServer[] = []
beforeEach(() => {
  clock = noonClock()
})
afterEach(async () => {
  for (const server of servers.splice(0)) await server.remove()
})

async function open(settings = {}, dataDir = temporaryFolder()): Promise<TestServer> {
  const server = await openTestServer(settings, { clock }, dataDir)
  servers.push(server)
  return server
}

type Row = Record<string, unknown>

const KEY = 'mint, tf, epoch_ms(t)::DOUBLE AS t'
const barsIn = (server: TestServer) =>
  readSql(`SELECT ${KEY}, o, h, l, c, v, n FROM ${lakeGlob(server.dataDir, 'bars')} ORDER BY ALL`)

/** The bars that the lake should have: those of a minute or longer that the market says are closed. */
function closedBars({ market }: TestServer): Row[] {
  return MINTS.flatMap((mint) =>
    (['1m', '5m', '15m', '1h', '4h', '1d'] as const).flatMap((tf) =>
      (market.bars({ mint, tf, limit: 1_000, fromMs: null, toMs: null, fill: 'none' })?.bars ?? [])
        .filter(({ closed }) => closed)
        .map(({ t, o, h, l, c, v, n }) => ({ mint, tf, t, o, h, l, c, v, n })),
    ),
  )
}

const keysOf = (rows: readonly Row[]): string[] =>
  rows.map(({ mint, tf, t }) => `${mint} ${tf} ${t}`).toSorted()

test('bars that a crash took with it are written, each once, from a checkpoint before the lake was last written', {
  tags: 'drill',
}, async () => {
  const server = await open()
  await pushSome(server, clock, 40)
  await server.checkpoint()
  await pushSome(server, clock, 30)
  await server.store.flushLake()
  await pushSome(server, clock, 30)
  const image = await crashImage(server)
  const before = closedBars(server)
  expect(before.length).toBeGreaterThan(60)
  const other = await open({}, image)
  // The time that tokens have to be silent before their last bars are closed, too.
  clock.pass(60_000)
  other.market.advanceTo(clock.wallMs)
  await other.stop()
  const found = await barsIn(other)
  expect(new Set(keysOf(found)).size).toBe(found.length)
  expect(keysOf(found)).toEqual(expect.arrayContaining(keysOf(before)))
  const byKey = new Map(found.map((row) => [keysOf([row])[0], row]))
  for (const bar of before)
    expect(byKey.get(keysOf([bar])[0])).toMatchObject({ ...bar, n: BigInt(Number(bar.n)) })
})

test('a simulated market is recorded if that is asked for, and is new at each start', {
  tags: 'drill',
}, async () => {
  const simulated = { feed: 'simulator', simulator: 'tokens=50', record: 'true' }
  const server = await open(simulated)
  await expect.poll(() => server.market.stats().trades).toBeGreaterThan(20)
  const image = await crashImage(server)
  const health = (await server.client.get('/health')).body.recording
  expect(health).toMatchObject({ isOn: true, restored: null })
  const other = await open(simulated, image)
  expect((await other.client.get('/health')).body.recording.restored).toBeNull()
  await other.stop()
  // A real feed is refused on the folder, and where both may be in it, the market begins empty.
  await expect(openTestServer({}, { clock }, image)).rejects.toThrow('holds simulated data')
  const real = await open({ mixed: 'true' }, image)
  expect(real.market.stats().tokens).toBe(0)
  await pushSome(real, clock, 2)
  const again = await open({ mixed: 'true' }, await crashImage(real))
  expect(answersOf(again.market)).toEqual(answersOf(real.market))
})

test('without recording each start begins with an empty market', { tags: 'drill' }, async () => {
  const server = await open({ record: 'false' })
  await pushSome(server, clock, 2)
  expect((await server.client.get('/health')).body.recording).toMatchObject({ isOn: false, journal: null })
  const { dataDir } = server
  await server.stop()
  const other = await open({ record: 'false' }, dataDir)
  expect(other.market.stats().tokens).toBe(0)
  await other.stop()
  // The simulator is not recorded unless that is asked for.
  const folder = temporaryFolder()
  const simulated = await open({ feed: 'simulator', simulator: 'tokens=5' }, folder)
  expect((await simulated.client.get('/health')).body.recording).toMatchObject({ isOn: false, reasons: [] })
  rmSync(folder, { recursive: true, force: true })
})
