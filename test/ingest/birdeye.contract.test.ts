// Runs the feeds of Birdeye against a local server behind a failing network. Never reaches the real Birdeye.
import { afterEach, beforeEach, expect, test } from 'vitest'
import { BirdeyeClient, type BirdeyeClientOptions } from '../../src/ingest/birdeye/birdeye-client.ts'
import { startSecurityFeed } from '../../src/ingest/birdeye/security-feed.ts'
import { startSolPriceFeed } from '../../src/ingest/birdeye/sol-price-feed.ts'
import type { Feed } from '../../src/ingest/types.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import { openTestServer } from '../support/test-server.ts'
import {
  type Answer,
  BirdeyeServer,
  json,
  PRICE_PATH,
  SECURITY_PATH,
} from '../support/upstreams/birdeye-server.ts'
import { FaultyNetwork } from '../support/upstreams/faulty-network.ts'
import { createFrame, PumpPortalServer, tradeFrame } from '../support/upstreams/pumpportal-server.ts'
import { MemorySink, silentLog } from './memory-sink.ts'

const soon = { interval: 5, timeout: 10_000 }
let upstream: BirdeyeServer
let network: FaultyNetwork
let sink: MemorySink
let feeds: Feed[]

beforeEach(async () => {
  upstream = await BirdeyeServer.start()
  network = await FaultyNetwork.before(Number(new URL(upstream.url).port))
  sink = new MemorySink()
  feeds = []
})
afterEach(async () => {
  for (const feed of feeds) await feed.stop()
  await network.close()
  await upstream.close()
})

const client = (more: Partial<BirdeyeClientOptions> = {}) =>
  new BirdeyeClient({
    apiKey: 'k',
    baseUrl: `http://127.0.0.1:${network.port}`,
    requestsPerSecond: 100,
    timeoutMs: 300,
    ...more,
  })
function start(birdeye = client()) {
  const feed = startSecurityFeed({ birdeye }, sink, systemClock, silentLog)
  feeds.push(feed)
  return feed
}
const mintOf = (index: number) => mintOfSymbol(`birdeye ${index}`)

test('a truncated answer counts as missing, and the next token gets its own answer', async () => {
  network.faultOf = (connection) => (connection < 40 ? { cutAfterBytes: connection * 10 } : {})
  const feed = start()
  for (let index = 0; index < 12; index++) await feed.resolve(mintOf(index))
  await expect
    .poll(async () => {
      await feed.resolve(mintOf(100 + network.connections.total))
      return sink.events.length
    }, soon)
    .toBeGreaterThan(0)
  expect(Object.keys(feed.describe().faults as object)).toEqual(['unreachable'])
})

test.each([
  ['hangs before its first byte', { stallAfterBytes: 0 }],
  ['hangs in the middle', { stallAfterBytes: 150 }],
  ['drips in byte by byte', { dripMs: 20 }],
])('an answer that %s is given up in time and its connection is closed', async (_, fault) => {
  network.faultOf = (connection) => (connection < 2 ? fault : {})
  const feed = start()
  await feed.resolve(mintOf(0))
  expect(feed.describe()).toMatchObject({
    faults: { timeout: 2 },
    latestError: { message: 'timeout', atMs: expect.any(Number) },
  })
  await feed.resolve(mintOf(1))
  // The two connections that hung are closed. Those of the second token are kept open for the next one.
  await expect.poll(() => network.connections.open, soon).toBeLessThanOrEqual(2)
  expect(network.connections.total).toBeGreaterThan(2)
  expect(sink.events).toHaveLength(1)
})

const raw =
  (body: string | Buffer, status = 200): Answer =>
  (_request, response) =>
    void response.writeHead(status).end(body)
const deep = `{"success":true,"data":${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}}`
test.each([
  ['no JSON', raw('<html>'), 'malformed'],
  ['nothing', raw(''), 'malformed'],
  ['bytes that are no text', raw(Buffer.alloc(64, 0xff)), 'malformed'],
  ['10 MB', raw(Buffer.alloc(10_000_000, 0x20)), 'malformed'],
  ['a list', json([1]), 'malformed'],
  ['data that fools a validator', json({ success: true, data: { length: { toString: 1 } } }), null],
  ['members nested without end', raw(deep), null],
  ['a redirect', raw('', 302), 'refused'],
  ['a failure of its own', raw('no', 500), 'refused'],
  ['a key that is not good', json({ success: false }, 401), 'refused'],
])('an answer of %s has the right effect, and the next answer is applied', async (_, answer, fault) => {
  const good = upstream.answers[SECURITY_PATH]
  upstream.answers[SECURITY_PATH] = answer
  const feed = start()
  await feed.resolve(mintOf(0))
  expect(feed.describe().faults).toEqual(fault === null ? {} : { [fault]: 1 })
  upstream.answers[SECURITY_PATH] = good
  await feed.resolve(mintOf(1))
  expect(sink.events).toHaveLength(2)
  expect(sink.events[1]).toMatchObject({ fields: { has_mint_authority: true } })
})

test('all callers together use the full rate of the plan and keep to it, and the price of SOL gets its turn', async () => {
  const birdeye = client({ requestsPerSecond: 50 })
  const feed = start(birdeye)
  for (let index = 0; index < 200; index++) feed.request(mintOf(index))
  const price = startSolPriceFeed({ birdeye }, sink, systemClock, silentLog)
  feeds.push(price)
  await price.ready
  expect(sink.events.filter(({ type }) => type === 'solPrice')).toHaveLength(1)
  await expect.poll(() => upstream.requests.length, soon).toBeGreaterThan(60)
  const { arrivedAtMs } = upstream
  const perSecond = (60 * 1_000) / (arrivedAtMs[60] - arrivedAtMs[0])
  expect(perSecond).toBeLessThan(52)
  expect(perSecond).toBeGreaterThan(30)
})

test('a server with a key asks for the price of SOL and the tokens of its feeds, and shows the source of the price', async () => {
  const portal = await PumpPortalServer.start()
  const server = await openTestServer(
    {
      feed: 'pumpportal',
      'pumpportal-url': portal.url,
      'birdeye-url': upstream.url,
      'birdeye-rate': '100',
      'sol-price': '99',
    },
    {},
    undefined,
    { MINTLAKE_BIRDEYE_KEY: 'secret-key', MINTLAKE_PUMPPORTAL_KEY: 'other-key' },
  )
  const health = async () => (await server.client.get('/health')).body
  await expect
    .poll(async () => (await health()).solPrice, soon)
    .toMatchObject({ usd: 151.25, source: 'birdeye' })
  const { solPrice } = await health()
  expect(solPrice.ageMs).toBeLessThan(60_000)
  expect(Math.abs(solPrice.atMs - Date.now())).toBeLessThan(60_000)
  await expect.poll(() => portal.peers.size, soon).toBe(1)
  const [launched, pushed] = [mintOf(1), mintOf(2)]
  portal.send(createFrame(launched, { initialBuy: 0 }))
  portal.send(tradeFrame(launched, 'a', { tokenAmount: 1_000, solAmount: 2 }))
  await server.client.push({ type: 'token', mint: pushed, ts: Date.now(), name: 'Pushed', symbol: 'P' })
  for (const mint of [launched, pushed]) {
    const datapoint = async () => (await server.client.get(`/api/v1/datapoint?mint=${mint}`)).body?.data
    await expect.poll(async () => (await datapoint())?.enriched_source, soon).toBe('birdeye')
  }
  const { data } = (await server.client.get(`/api/v1/datapoint?mint=${launched}`)).body
  expect(data.priceUsd).toBeCloseTo((151.25 * 31.78) / 1_013_000_000, 12)
  expect(JSON.stringify(await health())).not.toMatch(/secret-key|other-key/)
  expect(upstream.mintsAt(PRICE_PATH)).toContain('So11111111111111111111111111111111111111112')
  await server.client.push({ type: 'solPrice', ts: Date.now(), usd: 160 })
  expect((await health()).solPrice).toMatchObject({ usd: 160, source: 'push' })
  await server.remove()
  await portal.close()
})
