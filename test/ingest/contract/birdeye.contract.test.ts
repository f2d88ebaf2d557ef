// Runs the feeds of Birdeye against a local server behind a failing network. Never reaches the real Birdeye.
import { setTimeout as sleep } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { BirdeyeClient, type BirdeyeClientOptions } from '../../../src/ingest/birdeye/birdeye-client.ts'
import { SecurityFeed } from '../../../src/ingest/birdeye/security-feed.ts'
import { SolPriceFeed } from '../../../src/ingest/birdeye/sol-price-feed.ts'
import type { Feed, FeedStatus } from '../../../src/ingest/types.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { mintOfSymbol } from '../../../src/schema/mint.ts'
import { openTestServer } from '../../support/test-server.ts'
import {
  type Answer,
  askFor,
  BirdeyeServer,
  json,
  OVERVIEW_PATH,
  PRICE_PATH,
  SECURITY_PATH,
  success,
} from '../../support/upstreams/birdeye-server.ts'
import { FaultyNetwork } from '../../support/upstreams/faulty-network.ts'
import { createFrame, PumpPortalServer, tradeFrame } from '../../support/upstreams/pumpportal-server.ts'
import { MemorySink, silentLog } from '../memory-sink.ts'

const soon = { interval: 5, timeout: 10_000 }
const PATHS = [SECURITY_PATH, OVERVIEW_PATH, PRICE_PATH]
let upstream: BirdeyeServer
let network: FaultyNetwork
let sink: MemorySink
let feeds: Feed[]

beforeEach(async () => {
  upstream = await BirdeyeServer.start()
  network = await FaultyNetwork.before(upstream.port)
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
    timeoutMs: 20_000,
    ...more,
  })
/** For answers that never come whole. */
const hasty = () => client({ timeoutMs: 300 })
function startSecurity(birdeye = client()) {
  const feed = new SecurityFeed({ birdeye, holds: () => true }, sink, systemClock, silentLog)
  feeds.push(feed)
  return feed
}
function startSolPrice(birdeye = client(), everyMs = 60_000) {
  const feed = new SolPriceFeed({ birdeye, everyMs }, sink, systemClock, silentLog)
  feeds.push(feed)
  return feed
}
let asked = 0
const newMint = () => mintOfSymbol(`birdeye ${asked++}`)

/** Both kinds of feed: one question to Birdeye, the requests that it takes, and what its faults are counted as. */
const KINDS: [name: string, ask: (birdeye?: BirdeyeClient) => Promise<FeedStatus>, requests: number][] = [
  [
    'security',
    async (birdeye = client()) => {
      const feed = startSecurity(birdeye)
      await askFor(feed, newMint())
      return feed.describe()
    },
    2,
  ],
  [
    'solPrice',
    async (birdeye = client()) => {
      const feed = startSolPrice(birdeye)
      await feed.ready
      await feed.stop()
      return feed.describe()
    },
    1,
  ],
]
const faultsOf = ({ faults, rejected }: FeedStatus) => (faults ?? rejected) as Record<string, number>

const raw =
  (body: string | Buffer, status = 200, headers: Record<string, string> = {}): Answer =>
  (_request, response) =>
    void response.writeHead(status, headers).end(body)
/** Bytes that are no HTTP, or not all of it. */
const bytes =
  (text: string): Answer =>
  (request) =>
    void request.socket.end(text)
/** A body that begins and never ends. */
const endless =
  (status: number, headers: Record<string, string> = {}): Answer =>
  (_request, response) =>
    void response.writeHead(status, headers).write('{"success"')
const deep = `{"success":true,"data":${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}}`
const good = JSON.stringify({ success: true, data: { value: 150, mutableMetadata: true } })
/** Made once; brotli by itself would take seconds to make this as small as it can. */
const gzipOfZeros = gzipSync(Buffer.alloc(1e8))
const brotliOfZeros = brotliCompressSync(Buffer.alloc(1e8), {
  params: { [constants.BROTLI_PARAM_QUALITY]: 4 },
})

describe.each(KINDS)('the feed %s', (name, ask, requests) => {
  test.each<[string, Answer, string | null]>([
    ['no JSON', raw('<html>'), 'malformed'],
    ['half of its JSON', raw(good.slice(0, -2)), 'malformed'],
    ['nothing', raw(''), 'malformed'],
    ['nothing, which it says', raw('', 204), 'malformed'],
    ['bytes that are no text', raw(Buffer.alloc(64, 0xff)), 'malformed'],
    ['10 MB', raw(Buffer.alloc(10_000_000, 0x20)), 'malformed'],
    ['a list', json([1]), 'malformed'],
    ['another envelope', json({ success: 'true', data: {} }), 'malformed'],
    ['its own failure as JSON', json({ success: false, message: 'no' }), 'malformed'],
    ['members nested without end', raw(deep), name === 'solPrice' ? 'malformed' : null],
    [
      'data of other types',
      success({ value: '150', mutableMetadata: 'yes' }),
      name === 'solPrice' ? 'malformed' : null,
    ],
    ['numbers without bound', raw(good.replace('150', '1e999')), name === 'solPrice' ? 'malformed' : null],
    ['a negative number', raw(good.replace('150', '-1')), name === 'solPrice' ? 'malformed' : null],
    [
      'data that fools a validator',
      success({ length: { toString: 1 } }),
      name === 'solPrice' ? 'malformed' : null,
    ],
    ['JSON that calls itself a page', raw(good, 200, { 'content-type': 'text/html' }), null],
    [
      'a page that calls itself JSON',
      raw('<html>', 200, { 'content-type': 'application/json' }),
      'malformed',
    ],
    ['a gzip of JSON', raw(gzipSync(good), 200, { 'content-encoding': 'gzip' }), null],
    ['a gzip of 100 MB', raw(gzipOfZeros, 200, { 'content-encoding': 'gzip' }), 'malformed'],
    ['a brotli of 100 MB', raw(brotliOfZeros, 200, { 'content-encoding': 'br' }), 'malformed'],
    [
      'a gzip of a gzip of 100 MB',
      raw(gzipSync(gzipOfZeros), 200, { 'content-encoding': 'gzip, gzip' }),
      'malformed',
    ],
    ['what is no gzip', raw(good, 200, { 'content-encoding': 'gzip' }), 'unreachable'],
    ['bytes that are no answer', bytes('\u0000\u0001ha\n'.repeat(50)), 'unreachable'],
    ['a header of 1 MB', bytes(`HTTP/1.1 200 OK\r\nX: ${'x'.repeat(1e6)}\r\n\r\n`), 'unreachable'],
    ['less than it announces', bytes(`HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n${good}`), 'unreachable'],
    [
      'chunks that are none',
      bytes('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nhello'),
      'unreachable',
    ],
    ['a body that never ends', endless(200), 'timeout'],
    ['a failure of its own', raw('no', 500), 'refused'],
    ['a failure that never ends', endless(500), 'refused'],
    ['a key that is not good', json({ success: false }, 401), 'refused'],
    ['that it does not know it', json({ success: false }, 404), 'not_found'],
  ])('an answer of %s has the right effect, and the next answer is applied', async (_, answer, fault) => {
    const before = { ...upstream.answers }
    const arrayBuffers = process.memoryUsage().arrayBuffers
    for (const path of PATHS) upstream.answers[path] = answer
    const status = await ask(fault === 'timeout' ? hasty() : client())
    expect(faultsOf(status)).toEqual(fault === null ? {} : { [fault]: requests })
    expect(process.memoryUsage().arrayBuffers - arrayBuffers).toBeLessThan(60e6)
    const applied = sink.events.length
    expect(applied).toBe(fault === null ? 1 : 0)
    upstream.answers = before
    expect((await ask()).state).toBe(name === 'security' ? 'running' : 'stopped')
    expect(sink.events).toHaveLength(applied + 1)
  })

  test('a redirect is not followed: the key goes to nobody else', async () => {
    const elsewhere = await BirdeyeServer.start()
    for (const path of PATHS) upstream.answers[path] = raw('', 302, { location: `${elsewhere.url}${path}` })
    expect(faultsOf(await ask())).toEqual({ refused: requests })
    expect(elsewhere.requests).toEqual([])
    await elsewhere.close()
  })

  // What the client does alone is the same whoever asks: one kind of feed shows it.
  const isOne = name === 'security'
  test.runIf(isOne).each([
    ['hangs before its first byte', { stallAfterBytes: 0 }],
    ['hangs in the middle', { stallAfterBytes: 150 }],
    ['drips in byte by byte', { dripMs: 20 }],
  ])(
    'an answer that %s is given up in time and its connection is closed',
    { tags: 'drill' },
    async (_, fault) => {
      network.faultOf = (connection) => (connection < requests ? fault : {})
      const status = await ask(hasty())
      expect(faultsOf(status)).toEqual({ timeout: requests })
      expect(status.latestError).toMatchObject({ message: 'timeout', atMs: expect.any(Number) })
      expect(faultsOf(await ask())).toEqual({})
      // Those that hung are closed. Those of the second question are kept open for the next one.
      await expect.poll(() => network.connections.open, soon).toBeLessThanOrEqual(requests)
      expect(network.connections.total).toBeGreaterThan(requests)
      expect(sink.events).toHaveLength(1)
    },
  )

  test.runIf(isOne)('a failure that never ends keeps no connection', async () => {
    const [birdeye, { signal }] = [client(), new AbortController()]
    upstream.answers[PRICE_PATH] = endless(500)
    for (let asked = 0; asked < 5; asked++)
      expect(await birdeye.get(PRICE_PATH, 'x', signal)).toMatchObject({ fault: 'refused' })
    await expect.poll(() => network.connections.open, soon).toBe(0)
  })

  test('an answer that is cut anywhere counts as missing, and then one comes through', async () => {
    // Each cut connection gives the next one, wherever it was cut.
    network.faultOf = (connection) => (connection < 30 ? { cutAfterBytes: connection * 10 } : {})
    const kinds = new Set<string>()
    while (sink.events.length === 0) for (const fault of Object.keys(faultsOf(await ask()))) kinds.add(fault)
    expect([...kinds]).toEqual(['unreachable'])
    expect(network.connections.total).toBeGreaterThan(20)
  })

  test.runIf(isOne).each<[string, Answer, number]>([
    ['429 with a time', json({}, 429, { 'retry-after': '0.4' }), 400],
    [
      '429 with a date',
      json({}, 429, {
        'retry-after': 'Sun, 22 Nov 2026 10:00:01 GMT',
        date: 'Sun, 22 Nov 2026 10:00:00 GMT',
      }),
      1_000,
    ],
    ['429 without a time', json({}, 429), 2_000],
    ['429 with what is no time', json({}, 429, { 'retry-after': 'soon' }), 2_000],
    ['429 whose body never ends', endless(429, { 'retry-after': '0.4' }), 400],
    ['503 with a time', json({}, 503, { 'retry-after': '0.4' }), 400],
  ])('%s makes all wait that long', { tags: 'drill' }, async (_, answer, pauseMs) => {
    const birdeye = client()
    const price = upstream.answers[PRICE_PATH]
    upstream.answers[PRICE_PATH] = answer
    const refused = startSolPrice(birdeye)
    await refused.ready
    await refused.stop()
    const refusedAtMs = upstream.arrivedAtMs.at(-1) as number
    upstream.answers[PRICE_PATH] = price
    await ask(birdeye)
    expect(sink.events).toHaveLength(1)
    // Timers may fire a millisecond early.
    expect(upstream.arrivedAtMs[1] - refusedAtMs).toBeGreaterThanOrEqual(pauseMs - 2)
    expect(upstream.arrivedAtMs[1] - refusedAtMs).toBeLessThan(pauseMs + 1_500)
  })
})

test.each<[what: string, updateUnixTime: unknown, ageMs: number]>([
  ['is as old as it says', Math.floor(Date.now() / 1_000) - 3 * 3_600, 3 * 3_600_000],
  ['is of now where it says no time', undefined, 0],
  ['is of now where it says what is no time', 'yesterday', 0],
  ['is of now where it says one that cannot be', 1e300, 0],
  ['is of now where it says one to come', Math.floor(Date.now() / 1_000) + 3_600, 0],
])('a price of SOL %s', async (_what, updateUnixTime, ageMs) => {
  upstream.answers[PRICE_PATH] = success({ value: 150, updateUnixTime })
  await startSolPrice().ready
  const [event] = sink.events
  expect(event).toMatchObject({ type: 'solPrice', usd: 150 })
  expect(Math.abs(Date.now() - event.ts - ageMs)).toBeLessThan(60_000)
})

test('a wait without end can be stopped', async () => {
  upstream.answers[PRICE_PATH] = json({}, 429, { 'retry-after': '1000000000' })
  const feed = startSolPrice(client(), 1)
  await expect.poll(() => feed.describe().rejected, soon).toEqual({ rate_limited: 1 })
  await sleep(30)
  expect(upstream.requests).toHaveLength(1)
  await feed.stop()
})

test('all callers together use the full rate of the plan and keep to it, and the price of SOL gets its turn', async () => {
  const birdeye = client({ requestsPerSecond: 50 })
  const feed = startSecurity(birdeye)
  for (let index = 0; index < 200; index++) feed.request(newMint())
  await startSolPrice(birdeye).ready
  expect(sink.events.filter(({ type }) => type === 'solPrice')).toHaveLength(1)
  await expect.poll(() => upstream.requests.length, soon).toBeGreaterThan(60)
  const { arrivedAtMs } = upstream
  const perSecond = (60 * 1_000) / (arrivedAtMs[60] - arrivedAtMs[0])
  expect(perSecond).toBeLessThan(52)
  expect(perSecond).toBeGreaterThan(30)
})

test('a thousand requests, of which every third is cut, leak no socket and no memory', {
  tags: 'drill',
}, async () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  let answered = 0
  upstream.answers[PRICE_PATH] = (request, response) =>
    ++answered % 3 === 0 ? void request.socket.destroy() : success({ value: 150 })(request, response)
  const feed = startSolPrice(client(), 1)
  const heapBytesAfter = async (requests: number) => {
    await expect.poll(() => upstream.requests.length, { ...soon, timeout: 30_000 }).toBeGreaterThan(requests)
    sink.received.length = 0
    upstream.requests.length = 0
    collect()
    return process.memoryUsage().heapUsed
  }
  const early = await heapBytesAfter(400)
  const late = await heapBytesAfter(1_000)
  // Code that the compiler adds meanwhile is a few hundred bytes each; a request that is kept would be tens of thousands.
  expect((late - early) / 1_000).toBeLessThan(4_096)
  expect(network.connections.most).toBeLessThanOrEqual(2)
  await feed.stop()
})

test('a server with a key asks for the price of SOL and the tokens of its feeds, and shows the source of the price', async () => {
  const portal = await PumpPortalServer.start()
  const server = await openTestServer(
    {
      feed: 'pumpportal',
      providers: `pumpportal-url=${portal.url},birdeye-url=${upstream.url},birdeye-rate=100`,
      'sol-price': '99',
    },
    {},
    undefined,
    { MINTLAKE_BIRDEYE_KEY: 'secret-key', MINTLAKE_PUMPPORTAL_KEY: 'other-key' },
  )
  const health = async () => (await server.client.get('/health')).body
  await expect
    .poll(async () => (await health()).solPrice, soon)
    .toMatchObject({ usd: 151.25, source: 'birdeye', maxAgeMs: 86_400_000, isStale: false })
  const { solPrice } = await health()
  expect(solPrice.ageMs).toBeLessThan(60_000)
  expect(Math.abs(solPrice.atMs - Date.now())).toBeLessThan(60_000)
  await expect.poll(() => portal.peers.size, soon).toBe(1)
  const [launched, pushed] = [newMint(), newMint()]
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

test('a price of SOL that is too old is shown, and trades that need it are refused and counted', async () => {
  const server = await openTestServer({ 'sol-price': 'max-age-ms=60000' })
  const health = async () => (await server.client.get('/health')).body
  expect((await health()).solPrice).toBe(null)
  const trade = { type: 'trade', mint: newMint(), ts: Date.now(), side: 'buy', tokenAmount: 5 }
  await server.client.push({ type: 'solPrice', ts: Date.now() - 70_000, usd: 160 })
  const refused = server.client.push({ ...trade, solAmount: 1 })
  await expect(refused).rejects.toThrow('sol_price_stale')
  await server.client.push({ ...trade, priceUsd: 1 })
  const { solPrice, feeds: states } = await health()
  expect(solPrice).toMatchObject({ usd: 160, source: 'push', maxAgeMs: 60_000, isStale: true })
  expect(solPrice.ageMs).toBeGreaterThanOrEqual(70_000)
  expect(states).toMatchObject([{ feed: 'push', accepted: 2, rejected: { sol_price_stale: 1 } }])
  const metrics = (await server.client.get('/metrics')).text
  expect(metrics).toContain('\nmintlake_sol_price_stale 1\n')
  expect(metrics).toContain('\nmintlake_feed_unpriced_trades_total{feed="push"} 1\n')
  await server.remove()
})

test('a price of SOL that is set has no age, and one that comes then has', async () => {
  const server = await openTestServer({ 'sol-price': 'usd=150' })
  const age = async () =>
    /^mintlake_sol_price_age_seconds (\S+)$/m.exec((await server.client.get('/metrics')).text)?.[1]
  expect((await server.client.get('/health')).body.solPrice).toMatchObject({ usd: 150, source: 'setting' })
  expect(Number(await age())).toBeNaN()
  await server.client.push({ type: 'solPrice', ts: Date.now() - 70_000, usd: 160 })
  // One text serves all who ask within a moment.
  await expect.poll(async () => Number(await age())).toBeGreaterThanOrEqual(70)
  await server.remove()
})
