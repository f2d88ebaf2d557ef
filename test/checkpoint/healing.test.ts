// A program that pushes loses its source, brings what it has missed, and the server ends in the midst of it: the market and its lake are
// those of a server that had everything in time.
import { rmSync } from 'node:fs'
import { afterEach, expect, test, vi } from 'vitest'
import { verifyLake } from '../../src/store/verify/verify.ts'
import { readSql } from '../store/support.ts'
import { FollowReader } from '../support/follow-reader.ts'
import { openTestServer, spawnServer, type TestServer, temporaryFolder } from '../support/test-server.ts'
import { answersOf, crashImage, MINTS, NOON_MS, noonClock, whenRecorded } from './support.ts'

const servers: TestServer[] = []
afterEach(async () => {
  for (const server of servers.splice(0)) await server.remove()
})

async function open(...args: Parameters<typeof openTestServer>): Promise<TestServer> {
  const server = await openTestServer(...args)
  servers.push(server)
  return server
}

/** What the source has of a second. Most tokens are silent for longer than it takes their bars to close. */
function tradesOf(ts: number): object[] {
  const second = Math.round((ts - NOON_MS) / 1_000)
  return MINTS.flatMap((mint, index) =>
    second % (1 + 3 * index) === 0
      ? {
          ...{ type: 'trade', mint, ts: ts + index, side: (second + index) % 3 ? 'buy' : 'sell' },
          ...{ tokenAmount: 1_000 / (index + 1), solAmount: 0.01 * (1 + ((second * 7 + index) % 5)) },
          ...{ wallet: `w${index}`, tx: `tx-${ts}-${index}` },
        }
      : [],
  )
}
const solPrice = { type: 'solPrice', ts: NOON_MS, usd: 131 }

/** All but what the servers really said when: positions, versions and times of receipt. */
function shownOf(server: TestServer) {
  const { pages, tokens } = answersOf(server.market)
  return { pages, tokens: tokens.map(({ versions: _, ...token }) => token) }
}

/** Rows of the lake without what says when they came. */
async function lakeOf(server: TestServer) {
  const catalog = `ATTACH '${server.dataDir}/lake/catalog.duckdb' AS lake (READ_ONLY)`
  const rows = (table: string, without: string, order: string) =>
    readSql(
      `SELECT * EXCLUDE (known_at, schema_version, ${without}) FROM lake.${table} ORDER BY ${order}`,
      catalog,
    )
  return {
    bars: await rows('bars', 'closed_at, watched_since', 'mint, tf, t'),
    trades: await rows('trades', 'event_no, "at", received_at', 'mint, ts, tx'),
  }
}

for (const ends of ['with a checkpoint in its midst', 'without one'] as const)
  test(`what is brought across a crash, ${ends}, leaves no mark`, {
    tags: 'drill',
    timeout: 60_000,
  }, async () => {
    const clock = noonClock()
    const whole = await open({}, { clock })
    let healed = await open({}, { clock })
    const push = (server: TestServer, ...records: object[]) => server.client.push(...records)
    const passSecond = () => {
      clock.pass(1_000)
      for (const { market } of [whole, healed]) {
        market.advanceTo(clock.wallMs)
        market.emitClosedBars(100)
      }
    }
    for (const server of [whole, healed]) await push(server, solPrice)
    const missed: object[] = []
    const sinceMs = NOON_MS + 40_000
    const stream = new FollowReader(`${healed.client.url}/api/v1/market?format=ndjson&follow=1`)
    await stream.until(({ event }) => event === 'heartbeat')
    for (let second = 1; second <= 150; second++) {
      passSecond()
      const trades = tradesOf(clock.wallMs - 50)
      if (trades.length > 0) await push(whole, ...trades)
      if (second < 40 && trades.length > 0) await push(healed, ...trades)
      if (second === 43)
        await push(healed, {
          type: 'disconnect',
          ts: clock.wallMs,
          sinceMs,
          healUntilMs: clock.wallMs + 600_000,
        })
      // It needs more time, and says again what it has said.
      if (second === 112)
        await push(healed, { type: 'disconnect', ts: clock.wallMs, sinceMs, healUntilMs: sinceMs + 900_000 })
      if (second >= 40) missed.push(...trades)
      if (second === 110) {
        await push(healed, ...missed.splice(0, missed.length / 3))
        if (ends === 'with a checkpoint in its midst') await healed.checkpoint()
        await push(healed, ...missed.splice(0, missed.length / 3))
        const told = await stream.until(({ event }) => event === 'gap')
        expect(told).toMatchObject({ from: sinceMs, to: null, feed: 'push', healUntil: sinceMs + 603_000 })
        stream.close()
      }
      if (second === 120) healed = await open({}, { clock }, await crashImage(healed))
    }
    const { gaps } = (await healed.client.get('/health')).body
    expect(gaps).toMatchObject({ open: [{ from: sinceMs, healUntil: sinceMs + 900_000 }], recent: [] })
    const follower = new FollowReader(`${healed.client.url}/api/v1/market?format=ndjson&follow=1`)
    await follower.until(({ event }) => event === 'heartbeat')
    await push(healed, ...missed, { type: 'reconnect', ts: clock.wallMs, healed: true })
    expect(await follower.until(({ event }) => event === 'gap')).toMatchObject({
      ...{ from: sinceMs, to: clock.wallMs, feed: 'push', healed: true },
    })
    follower.close()
    expect((await healed.client.get('/health')).body.gaps).toEqual({ open: [], recent: [] })
    for (let second = 0; second < 130; second++) passSecond()
    expect(shownOf(healed)).toEqual(shownOf(whole))
    for (const server of [whole, healed]) await server.stop()
    expect(await lakeOf(healed)).toEqual(await lakeOf(whole))
    expect((await verifyLake({ dataDir: healed.dataDir, nowMs: clock.wallMs })).findings).toEqual([])
    const replayed = await open({ feed: 'replay', replay: `lake=${healed.dataDir},speed=max` })
    await vi.waitFor(
      async () => expect((await replayed.client.get('/health')).body.feeds[0].state).toBe('finished'),
      { timeout: 20_000, interval: 20 },
    )
    replayed.market.advanceTo(clock.wallMs)
    expect(shownOf(replayed)).toEqual(shownOf(whole))
    expect((await replayed.client.get('/health')).body.gaps).toEqual({ open: [], recent: [] })
  })

test('what closed before a loss was known opens again here, and stays in the lake as it was, marked as incomplete', {
  tags: 'drill',
  timeout: 60_000,
}, async () => {
  const clock = noonClock()
  const server = await open({}, { clock })
  const [mint, other] = MINTS as [string, string]
  const trade = (of: string, ts: number, priceUsd: number) => ({
    ...{ type: 'trade', mint: of, ts, side: 'buy', tokenAmount: 1, priceUsd },
  })
  const pass = (seconds: number) => {
    for (let second = 0; second < seconds; second++) {
      clock.pass(1_000)
      server.market.advanceTo(clock.wallMs)
      server.market.emitClosedBars(100)
    }
  }
  pass(60)
  await server.client.push(trade(mint, clock.wallMs, 1), trade(other, clock.wallMs, 1))
  pass(130)
  const sinceMs = NOON_MS + 62_000
  const ts = clock.wallMs
  await server.client.push({ type: 'disconnect', ts, sinceMs, healUntilMs: ts + 60_000 })
  await server.client.push(trade(mint, NOON_MS + 70_000, 2), trade(mint, NOON_MS + 185_000, 3))
  await server.client.push({ type: 'reconnect', ts, healed: true })
  pass(100)
  const { body } = await server.client.get(`/api/v1/ohlc?mint=${mint}&tf=1m&limit=9`)
  expect(body.meta.incomplete ?? []).toEqual([])
  expect(body.data.map(({ n }: { n: number }) => n)).toEqual([2, 1])
  await server.stop()
  const catalog = `ATTACH '${server.dataDir}/lake/catalog.duckdb' AS lake (READ_ONLY)`
  const minutes = await readSql(
    `SELECT (epoch_ms(t) - ${NOON_MS})::DOUBLE AS t, n::DOUBLE AS n, complete FROM lake.bars WHERE mint = '${mint}' AND tf = '1m' ORDER BY t`,
    catalog,
  )
  expect(minutes).toEqual([
    { t: 60_000, n: 1, complete: false },
    { t: 180_000, n: 1, complete: true },
  ])
  expect((await verifyLake({ dataDir: server.dataDir, nowMs: clock.wallMs })).findings).toEqual([])
})

test('a program that pushes brings the rest after a kill -9 in the midst of it, and nothing is missing', {
  tags: 'drill',
  timeout: 60_000,
}, async () => {
  const dataDir = temporaryFolder()
  const startMs = Date.now()
  const [mint] = MINTS as [string]
  const trade = (ageMs: number, priceUsd: number) => ({
    ...{ type: 'trade', mint, ts: startMs - ageMs, side: 'buy', tokenAmount: 1, priceUsd },
  })
  const first = await spawnServer({}, dataDir)
  await first.client.push(trade(150_000, 1))
  const lost = {
    type: 'disconnect',
    ts: startMs,
    sinceMs: startMs - 140_000,
    healUntilMs: startMs + 600_000,
  }
  await first.client.push(lost, trade(130_000, 2), trade(90_000, 3))
  await whenRecorded(first)
  await first.kill()
  const second = await spawnServer({}, dataDir)
  try {
    const { client } = second
    await vi.waitFor(async () => expect((await client.get('/readyz')).status).toBe(200), {
      timeout: 30_000,
    })
    const during = (await client.get(`/api/v1/ohlc?mint=${mint}&tf=1s&limit=9`)).body
    expect(during.meta.incomplete).toMatchObject([{ from: startMs - 140_000, healUntil: startMs + 600_000 }])
    expect(during.data.filter(({ closed }: { closed: boolean }) => closed)).toHaveLength(1)
    await client.push(trade(60_000, 4), trade(30_000, 5), {
      ...{ type: 'reconnect', ts: startMs, healed: true },
      missing: [{ fromMs: startMs - 20_000, toMs: startMs - 15_000, reason: 'pruned' }],
    })
    const { body } = await client.get(`/api/v1/ohlc?mint=${mint}&tf=1s&limit=9&to=${startMs - 30_000}`)
    expect(body.data.map(({ c }: { c: number }) => c)).toEqual([1, 2, 3, 4, 5])
    expect(body.meta.incomplete ?? []).toEqual([])
    expect((await client.get(`/api/v1/datapoint?mint=${mint}`)).body.data).toMatchObject({
      priceUsd: 5,
      volume24h: 15,
    })
    const part = { from: startMs - 20_000, to: startMs - 15_000, reason: 'pruned', feed: 'push' }
    expect((await client.get('/health')).body.gaps).toEqual({ open: [], recent: [part] })
  } finally {
    await second.kill()
    rmSync(dataDir, { recursive: true, force: true })
  }
})
