// A server goes on with the market of the one before: after a stop in order, and after a crash, from a checkpoint and from the
// journal behind it.
import { existsSync, readdirSync, rmSync } from 'node:fs'
import { readlink } from 'node:fs/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { makeBackup, restoreBackup } from '../../src/store/backup/backup.ts'
import { lakeGlob, quietLog, readSql } from '../store/support.ts'
import { SteppedClock } from '../support/clock.ts'
import { submission, submit } from '../support/submission.ts'
import { openTestServer, type TestServer, TOKENS_MAX, temporaryFolder } from '../support/test-server.ts'
import { answersOf, checkpointsOf, crashImage, MINTS, noonClock, pushSome } from './support.ts'

let clock: SteppedClock
let server: TestServer
const others: TestServer[] = []

beforeEach(async () => {
  clock = noonClock()
  server = await openTestServer({}, { clock })
})
afterEach(async () => {
  for (const other of others.splice(0)) await other.remove()
  await server.remove()
})

const recordingOf = async (of: TestServer) => (await of.client.get('/health')).body.recording

/** A server on what a crash would have left. */
async function afterCrash(settings = {}): Promise<TestServer> {
  const other = await openTestServer(settings, { clock }, await crashImage(server))
  others.push(other)
  return other
}

test('a stop in order loses nothing', async () => {
  await pushSome(server, clock)
  const before = answersOf(server.market)
  server = await server.restart()
  expect(answersOf(server.market)).toEqual(before)
  expect((await recordingOf(server)).restored).toMatchObject({ events: 0, lost: 0 })
  // And once more, with new events.
  await pushSome(server, clock)
  const later = answersOf(server.market)
  server = await server.restart()
  expect(answersOf(server.market)).toEqual(later)
  expect(readdirSync(checkpointsOf(server.dataDir))).toHaveLength(2)
})

describe('a crash loses nothing that was recorded', () => {
  test('of the profiles of tokens either, which come to the lake once more, and once only after a stop in order', {
    tags: 'drill',
  }, async () => {
    const profilesOf = async (of: TestServer) => {
      await of.recorded()
      await of.store.flushLake()
      const [latest, rows] = await Promise.all(
        [
          'mint, name, symbol FROM lake.tokens ORDER BY mint',
          `count(*) AS rows FROM ${lakeGlob(of.dataDir, 'tokens')}`,
        ].map((what) =>
          readSql(`SELECT ${what}`, `ATTACH '${of.dataDir}/lake/catalog.duckdb' AS lake (READ_ONLY)`),
        ),
      )
      return { latest, rows }
    }
    await pushSome(server, clock)
    await server.recorded()
    await server.checkpoint()
    let other = await afterCrash()
    const known = MINTS.toSorted().flatMap((mint) => {
      const profile = server.market.profile(mint)
      return profile === null || profile.name === mint
        ? []
        : [{ mint, name: profile.name, symbol: profile.symbol }]
    })
    expect(known.length).toBeGreaterThan(3)
    const { latest, rows } = await profilesOf(other)
    expect(latest).toEqual(known)
    others.pop()
    other = await other.restart()
    others.push(other)
    expect(await profilesOf(other)).toEqual({ latest, rows })
  })

  test('under other settings', { tags: 'drill' }, async () => {
    await pushSome(server, clock)
    const before = answersOf(server.market)
    const other = await afterCrash({ 'tokens-max': '6000', 'sol-price': 'max-age-ms=0' })
    expect(answersOf(other.market).tokens).toEqual(before.tokens)
    expect((await recordingOf(other)).restored).toMatchObject({ lost: 0 })
    // What it records goes on under its settings, also for the process that makes checkpoints.
    await pushSome(other, clock)
    await other.checkpoint()
    const again = await openTestServer(
      { 'tokens-max': '6000', 'sol-price': 'max-age-ms=0' },
      { clock },
      await crashImage(other),
    )
    others.push(again)
    expect(answersOf(again.market)).toEqual(answersOf(other.market))
    expect((await recordingOf(again)).restored).toMatchObject({ events: 0 })
  })
})

test('the time in between is a gap, and touches the bar in progress only', async () => {
  await pushSome(server, clock)
  clock.pass(40_000)
  const other = await afterCrash()
  const [mint] = MINTS
  const health = (await other.client.get('/health')).body
  expect(health.gaps.recent[0]).toMatchObject({ reason: 'downtime', to: clock.wallMs })
  const { meta, data } = (await other.client.get(`/api/v1/ohlc?mint=${mint}&tf=1m&limit=10`)).body
  expect(meta.incomplete).toHaveLength(1)
  expect(data.length).toBeGreaterThan(1)
  const earlier = await other.client.get(`/api/v1/ohlc?mint=${mint}&tf=1m&limit=1&to=${data[0].t}`)
  expect(earlier.body.meta.incomplete ?? []).toEqual([])
  // And so it is in the lake.
  const [{ from, to }] = meta.incomplete
  await pushSome(other, clock, 20)
  clock.pass(60_000)
  other.market.advanceTo(clock.wallMs)
  await other.stop()
  const bars = await readSql(
    `SELECT epoch_ms(t)::DOUBLE AS t, complete FROM ${lakeGlob(other.dataDir, 'bars')} WHERE mint = '${mint}' AND tf = '1m' ORDER BY t`,
  )
  const isTouched = (t: unknown): boolean => Number(t) < to && Number(t) + 60_000 > from
  expect(bars.filter(({ t }) => isTouched(t)).length).toBeGreaterThan(0)
  expect(bars.map(({ t, complete }) => [t, complete])).toEqual(bars.map(({ t }) => [t, !isTouched(t)]))
})

test('submissions of before a crash count, and snapshots of before it are compared', {
  tags: 'drill',
}, async () => {
  await pushSome(server, clock)
  const key = await server.client.register('agent')
  const { snapshotAt, ...read } = (await server.client.get(`/api/v1/datapoint?mint=${MINTS[2]}`)).body.data
  clock.pass(1)
  await pushSome(server, clock, 6)
  expect((await submit(server.client, key, submission(MINTS[0]))).status).toBe(201)
  await server.checkpoint()
  expect((await submit(server.client, key, submission(MINTS[1]))).status).toBe(201)
  const other = await afterCrash()
  const rows: { mint: string; analysis_count: number }[] = (
    await other.client.get('/api/v1/market?limit=100')
  ).body.data
  const analysed = rows.filter((row) => row.analysis_count === 1).map(({ mint }) => mint)
  expect(analysed.toSorted()).toEqual([MINTS[0], MINTS[1]].toSorted())
  // What an agent had read before the crash is compared with what was true then.
  const { priceUsd, volume24h, buys24h } = read
  const snapshot = { snapshotAt, priceUsd, volume24h, buys24h }
  const evaluated = await submit(other.client, key, submission(MINTS[2], { snapshot }))
  expect(evaluated.body).toMatchObject({ ok: true, outcome: 'validated', deviationPct: 0 })
})

test('a stop while the market is being applied again leaves it to the next start', {
  tags: 'drill',
}, async () => {
  await pushSome(server, clock, 40)
  const before = answersOf(server.market)
  const image = await crashImage(server)
  const { startApp } = await import('../../src/app.ts')
  const { readConfig } = await import('../../src/config/config.ts')
  const config = readConfig(
    ['--port', '0', '--feed', 'none', '--log-level', 'warn', '--tokens-max', TOKENS_MAX, '--data-dir', image],
    { MINTLAKE_FEED_KEY: 'key' },
  )
  const app = await startApp(config, { clock })
  await app.stop()
  const other = await openTestServer({}, { clock }, image)
  others.push(other)
  expect(answersOf(other.market)).toEqual(before)
})

test('a checkpoint that was restored is not kept open: its place on the disk would not be free once it is deleted', {
  tags: 'drill',
}, async (context) => {
  context.skip(!existsSync('/proc/self/fd'), 'only Linux lists the open files of a process')
  await pushSome(server, clock)
  server = await server.restart()
  expect((await recordingOf(server)).restored.fromEventNo).toBeGreaterThan(0)
  const open = readdirSync('/proc/self/fd').map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => ''))
  expect((await Promise.all(open)).filter((path) => path.startsWith(checkpointsOf(server.dataDir)))).toEqual(
    [],
  )
})

test('a backup has the market too', { tags: 'drill' }, async () => {
  await pushSome(server, clock)
  await server.checkpoint()
  await pushSome(server, clock)
  const before = answersOf(server.market)
  const [copy, restored] = [temporaryFolder(), temporaryFolder()]
  const options = { nowMs: clock.wallMs, check: () => {}, log: quietLog }
  const clockOfThen = new SteppedClock(clock.wallMs)
  await makeBackup(await server.store.stageBackup(), copy, options)
  // What comes later is not in it.
  await pushSome(server, clock)
  await restoreBackup(copy, restored, options)
  const other = await openTestServer({}, { clock: clockOfThen }, restored)
  others.push(other)
  expect(answersOf(other.market)).toEqual(before)
  rmSync(copy, { recursive: true })
})
