// @module-tag drill
// What a server recorded is replayed exactly: at every boundary between events the replay answers as the live market did, over
// several feeds, gaps, evictions, submissions, a crash and reads in between.
import { cpSync, readFileSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { CheckpointFile } from '../../src/checkpoint/checkpoint-file.ts'
import { listCheckpoints } from '../../src/checkpoint/checkpoint-folder.ts'
import { Market } from '../../src/market/market.ts'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import { readRecordedEvents } from '../../src/store/query/recorded-events.ts'
import { openReplayPlan } from '../../src/store/query/replay-plan.ts'
import { MemoryJournal, MINT, openWorld, trade } from '../store/events/world.ts'
import type { SteppedClock } from '../support/clock.ts'
import { allEvents } from '../support/lake/all-events.ts'
import { submission, submit } from '../support/submission.ts'
import { openTestServer, type Settings, type TestServer, temporaryFolder } from '../support/test-server.ts'
import { BirdeyeServer } from '../support/upstreams/birdeye-server.ts'
import { createFrame, PumpPortalServer, tradeFrame } from '../support/upstreams/pumpportal-server.ts'
import {
  checkpointsOf,
  crashImage,
  Digests,
  digestOf,
  MINTS,
  NOON_MS,
  noonClock,
  pushSome,
  whenRecorded,
} from './support.ts'

const ROUNDS = 10
const EVERY = 7
/** Fewer than there are tokens: some are evicted. */
const TOKENS_MAX = 16
const LAUNCHED = Array.from({ length: 3 * ROUNDS }, (_, index) => mintOfSymbol(`launched ${index}`))

let clock: SteppedClock
let pumpPortal: PumpPortalServer
let birdeye: BirdeyeServer
let dataDir: string
/** Of each server of the live run. */
const live: Digests[] = []
/** Their digests by event number. */
const expected = new Map<number, string>()
const LIVE_SETTINGS: Settings = { feed: 'pumpportal', 'tokens-max': `${TOKENS_MAX}` }
let lastNo = 0
let checkpointNo = 0

async function open(from: string): Promise<TestServer> {
  const settings = {
    ...LIVE_SETTINGS,
    providers: `birdeye-rate=100,pumpportal-url=${pumpPortal.url},birdeye-url=${birdeye.url}`,
  }
  const env = { MINTLAKE_PUMPPORTAL_KEY: 'key', MINTLAKE_BIRDEYE_KEY: 'key' }
  const server = await openTestServer(settings, { clock }, from, env)
  await vi.waitFor(() => expect(pumpPortal.peers.size).toBe(1), { timeout: 10_000 })
  const digests = new Digests(EVERY)
  digests.follow(server.market, await whenRecorded(server))
  live.push(digests)
  return server
}

/** Launches and trades of PumpPortal, one loss of its connection, reads, and submissions. */
async function liveRound(server: TestServer, key: string, round: number): Promise<void> {
  for (const mint of LAUNCHED.slice(3 * round, 3 * round + 3)) {
    pumpPortal.send(createFrame(mint, { signature: `create ${mint} ${round}` }))
    for (let trade = 0; trade < 5; trade++)
      pumpPortal.send(tradeFrame(mint, `${mint} ${round} ${trade}`, { txType: trade % 3 ? 'buy' : 'sell' }))
  }
  await vi.waitFor(() => expect(server.market.has(LAUNCHED[3 * round + 2])).toBe(true), { timeout: 10_000 })
  await pushSome(server, clock, 3)
  for (const path of ['market?tab=new', 'market?search=to', `datapoint?mint=${MINTS[round % 12]}`])
    await server.client.get(`/api/v1/${path}`)
  if (round % 4 === 2) {
    const { total } = pumpPortal.connections
    pumpPortal.drop()
    clock.pass(20_000)
    await vi.waitFor(() => expect(pumpPortal.connections.total).toBe(total + 1), { timeout: 10_000 })
    await vi.waitFor(() => expect(pumpPortal.peers.size).toBe(1), { timeout: 10_000 })
  }
  const mint = MINTS[(5 * round) % 12]
  const { data } = (await server.client.get(`/api/v1/datapoint?mint=${mint}`)).body
  const snapshot = { priceUsd: data.priceUsd, marketCap: data.marketCap, snapshotAt: data.snapshotAt }
  expect((await submit(server.client, key, submission(mint, { snapshot }))).status).toBe(201)
}

beforeAll(async () => {
  clock = noonClock()
  pumpPortal = await PumpPortalServer.start()
  birdeye = await BirdeyeServer.start()
  const first = await open(temporaryFolder())
  const key = await first.client.register()
  for (let round = 0; round < ROUNDS / 2; round++) await liveRound(first, key, round)
  await first.checkpoint()
  // A crash, and five minutes later another server.
  dataDir = await crashImage(first)
  live[0].end()
  await first.remove()
  clock.pass(300_000)
  const second = await open(dataDir)
  await second.checkpoint()
  checkpointNo = (await whenRecorded(second)) - 1
  for (let round = ROUNDS / 2; round < ROUNDS; round++) await liveRound(second, key, round)
  lastNo = await whenRecorded(second)
  live[1].end()
  for (const { byEventNo } of live) for (const [eventNo, digest] of byEventNo) expected.set(eventNo, digest)
  expected.set(lastNo, digestOf(second.market, MINTS))
  await second.stop()
})
afterAll(async () => {
  await pumpPortal.close()
  await birdeye.close()
  rmSync(dataDir, { recursive: true, force: true })
})

/** Applies recorded events to a market, and compares it with the live one at every boundary. @returns boundaries compared */
async function compare(market: Market, fromEventNo: number): Promise<number> {
  const again = new Digests(EVERY)
  for await (const batch of readRecordedEvents(dataDir, { from: fromEventNo, to: lastNo }))
    for (const { event, atMs, eventNo } of batch) {
      const placed = event.type === 'run' ? { ...event, firstSeq: market.seq } : event
      expect(market.apply(placed, atMs)).toBeNull()
      again.note(market, eventNo, event)
    }
  again.byEventNo.set(lastNo, digestOf(market, MINTS))
  // Before that, other tokens were touched than this market was told of.
  const firstNo = fromEventNo + EVERY
  const wanted = [...expected].filter(([eventNo]) => eventNo >= firstNo)
  expect(wanted.map(([eventNo]) => [eventNo, again.byEventNo.get(eventNo)])).toEqual(wanted)
  return wanted.length
}

test('the live run had all that a replay has to get right', async () => {
  const kinds = new Map<string, number>()
  const feeds = new Set<string>()
  for await (const batch of allEvents(dataDir))
    for (const { event, feed } of batch) {
      kinds.set(event.type, (kinds.get(event.type) ?? 0) + 1)
      feeds.add(feed)
    }
  for (const kind of [
    'run',
    'token',
    'trade',
    'patch',
    'live',
    'solPrice',
    'analysisCount',
    'gap',
    'disconnect',
    'reconnect',
  ])
    expect(kinds.get(kind) ?? 0, kind).toBeGreaterThan(0)
  expect(kinds.get('run')).toBe(2)
  expect([...feeds]).toEqual(expect.arrayContaining(['server', 'push', 'pumpportal', 'security', 'solPrice']))
})

describe('at every boundary the market is that of then', () => {
  test('from the beginning of the run', async () => {
    const plan = await openReplayPlan(dataDir, { fromMs: null, toMs: null, checkpoints: [] })
    expect(plan).toMatchObject({ range: { from: 1, to: lastNo }, approximate: null, endsEarly: null })
    const market = new Market(plan.settings ?? {})
    expect(await compare(market, 1)).toBeGreaterThan(100)
    expect(market.stats().evicted).toBeGreaterThan(10)
  })

  test('from each kept checkpoint', async () => {
    const checkpoints = await listCheckpoints(checkpointsOf(dataDir))
    expect(checkpoints.length).toBeGreaterThan(1)
    for (const { path, eventNo } of checkpoints) {
      const file = new CheckpointFile(path)
      const market = Market.restore(file.head.settings, file.read)
      file.close()
      await compare(market, eventNo + 1)
    }
  })
})

describe('a server that replays', () => {
  const servers: TestServer[] = []
  afterAll(async () => {
    for (const server of servers) await server.remove()
  })
  async function replay(span = '..', lake = dataDir, settings: Settings = {}): Promise<TestServer> {
    const played = `lake=${lake},span=${span},speed=max`
    const server = await openTestServer({ feed: 'replay', replay: played, ...settings })
    servers.push(server)
    await vi.waitFor(
      async () => expect((await server.client.get('/health')).body.feeds[0].state).toBe('finished'),
      { timeout: 20_000, interval: 20 },
    )
    return server
  }

  test('ends with the pages of the live one, is exact, and records nothing', async () => {
    const server = await replay()
    expect(digestOf(server.market, MINTS)).toBe(expected.get(lastNo))
    const { feeds, recording } = (await server.client.get('/health')).body
    expect(feeds[0]).toMatchObject({ feed: 'replay', events: lastNo, rejected: {}, approximate: null })
    expect(recording).toMatchObject({ isOn: false, journal: null })
    expect((await server.client.get('/api/v1/market')).headers.has('x-approximate')).toBe(false)
  })

  test('from a moment begins with the checkpoint before it', async () => {
    const server = await replay(`${new Date(clock.wallMs - 30_000).toISOString()}..`)
    expect(digestOf(server.market, MINTS)).toBe(expected.get(lastNo))
    const { feeds } = (await server.client.get('/health')).body
    expect(feeds[0]).toMatchObject({ approximate: null, rejected: {} })
    expect(feeds[0].events).toBeLessThanOrEqual(lastNo - checkpointNo)
    expect(server.market.seq).toBeGreaterThanOrEqual(server.market.firstSeq)
  })

  test('passes over a damaged checkpoint, and is as exact from the one before', async () => {
    const copy = temporaryFolder()
    cpSync(dataDir, copy, { recursive: true, verbatimSymlinks: true })
    const [newest, ...older] = await listCheckpoints(checkpointsOf(copy))
    truncateSync(newest.path, 100_000)
    for (const { path } of older.slice(0, -1)) writeFileSync(path, 'nothing')
    const server = await replay(`${clock.wallMs - 30_000}..`, copy)
    expect(digestOf(server.market, MINTS)).toBe(expected.get(lastNo))
    rmSync(copy, { recursive: true })
  })

  test('does not use checkpoints of another folder', async () => {
    const copy = temporaryFolder()
    cpSync(dataDir, copy, { recursive: true, verbatimSymlinks: true })
    const path = join(copy, 'store.json')
    writeFileSync(path, readFileSync(path, 'utf8').replace(/"logId":\s*"[^"]+"/, '"logId":"another"'))
    const server = await replay(`${clock.wallMs - 30_000}..`, copy)
    expect((await server.client.get('/health')).body.feeds[0].events).toBe(lastNo)
    expect(digestOf(server.market, MINTS)).toBe(expected.get(lastNo))
    rmSync(copy, { recursive: true })
  })

  test('without the beginning of the run feeds a day before, and every answer about the market says so', async () => {
    const lake = temporaryFolder()
    const journal = new MemoryJournal()
    journal.skip(1_000)
    const hours = Array.from({ length: 40 }, (_, hour) => NOON_MS + hour * 3_600_000)
    journal.append(
      hours.map((ts) => trade({ ts, priceUsd: 1 + ts / NOON_MS })),
      (index) => hours[index],
    )
    const world = await openWorld(lake, { journal })
    await world.flush()
    await world.close()
    const server = await replay(`${hours[30]}..`, lake)
    const { client } = server
    const { feeds } = (await client.get('/health')).body
    expect(feeds[0]).toMatchObject({ events: 34, eventsTotal: 34, approximate: expect.any(String) })
    const { approximate } = feeds[0]
    for (const path of ['market', `datapoint?mint=${MINT}`, `ohlc?mint=${MINT}`]) {
      const { body, headers } = await client.get(`/api/v1/${path}`)
      expect(body.meta.approximate).toBe(approximate)
      expect(headers.get('x-approximate')).toBe(approximate)
    }
    const batch = await client.post('/api/v1/datapoint/batch', { mints: [MINT] })
    expect(batch.body.meta).toMatchObject({ approximate, notFound: [] })
    expect((await client.get('/api/v1/market?format=ndjson')).headers.get('x-approximate')).toBe(approximate)
    expect((await client.get('/api/v1/xp')).body.meta).toBeUndefined()
    rmSync(lake, { recursive: true })
  })

  test('of a folder without recorded events does not start, and says why', async () => {
    const empty = temporaryFolder()
    await expect(replay('..', empty)).rejects.toThrow(/no lake|no recorded events|not found/)
    await expect(replay('..', `${empty}/not-there`)).rejects.toThrow('there is no folder')
    await expect(replay('2031-01-01..')).rejects.toThrow('no recorded events of that time')
    const link = join(empty, 'link')
    symlinkSync(dataDir, link)
    await expect(replay('..', dataDir, { 'data-dir': link })).rejects.toThrow(
      'another folder than --data-dir',
    )
    await expect(
      openTestServer({ feed: 'replay', replay: `lake=${dataDir}` }, {}, empty, { MINTLAKE_FEED_KEY: 'key' }),
    ).rejects.toThrow('nobody may push into')
    rmSync(empty, { recursive: true })
  })
})
