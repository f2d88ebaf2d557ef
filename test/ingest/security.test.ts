// Tests of Birdeye's field mapping, and of the security feed against a local HTTP server.
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { BirdeyeClient, type BirdeyeClientOptions } from '../../src/ingest/birdeye/birdeye-client.ts'
import { toEnrichedFields, toTop10Percent } from '../../src/ingest/birdeye/enriched-fields.ts'
import { SecurityFeed, type SecurityOptions } from '../../src/ingest/birdeye/security-feed.ts'
import { SolPriceFeed } from '../../src/ingest/birdeye/sol-price-feed.ts'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import {
  askFor,
  BirdeyeServer,
  json,
  OVERVIEW,
  SECURITY,
  SECURITY_PATH,
} from '../support/upstreams/birdeye-server.ts'
import { MemorySink, silentLog } from './memory-sink.ts'

const NOW = 1_772_000_000_000
const mint = mintOfSymbol('security test')

describe('the mapping of fields', () => {
  test('fills each of the nine fields', () => {
    expect(toEnrichedFields(SECURITY, OVERVIEW)).toEqual({
      has_freeze_authority: false,
      has_mint_authority: true,
      transfer_fee_enabled: false,
      is_mutable_metadata: true,
      top10_holder_pct_onchain: 25.4,
      unique_wallet_24h: 1_234,
      unique_wallet_1h: 0,
      buy_volume_24h_usd: 10.5,
      sell_volume_24h_usd: 0,
    })
  })

  test('gives null for missing values, never false or zero', () => {
    const unknown = Object.values(toEnrichedFields(null, null))
    expect(unknown).toHaveLength(9)
    expect(unknown.every((value) => value === null)).toBe(true)
    expect(Object.values(toEnrichedFields({}, {})).every((value) => value === null)).toBe(true)
    const odd = toEnrichedFields(
      { mutableMetadata: 'yes', top10HolderPercent: '0.5' },
      { uniqueWallet24h: 1.5, vBuy24hUSD: -1 },
    )
    expect(Object.values(odd).every((value) => value === null)).toBe(true)
  })

  test('gives null for the transfer fee of an unknown program', () => {
    const fee = (data: object) => toEnrichedFields({ ...data }, null).transfer_fee_enabled
    expect(fee({ transferFeeEnable: true, isToken2022: true })).toBe(true)
    expect(fee({ transferFeeEnable: null, isToken2022: true })).toBe(null)
    expect(fee({ transferFeeEnable: null })).toBe(null)
    expect(fee({ isToken2022: false })).toBe(false)
  })

  test('drops a share outside 0-100 percent', () => {
    expect(toTop10Percent(0)).toEqual({ percent: 0, isOutside: false })
    expect(toTop10Percent(1)).toEqual({ percent: 100, isOutside: false })
    expect(toTop10Percent(1.01)).toEqual({ percent: null, isOutside: true })
    expect(toTop10Percent(-0.01)).toEqual({ percent: null, isOutside: true })
    expect(toTop10Percent(undefined)).toEqual({ percent: null, isOutside: false })
  })
})

let upstream: BirdeyeServer
let requests: BirdeyeServer['requests']
let answers: BirdeyeServer['answers']
const clock = { timeMs: NOW, now: () => clock.timeMs, monotonicMs: () => clock.timeMs }

beforeEach(async () => {
  clock.timeMs = NOW
  upstream = await BirdeyeServer.start()
  requests = upstream.requests
  answers = upstream.answers
})
afterEach(() => upstream.close())

const client = (more: Partial<BirdeyeClientOptions> = {}) =>
  new BirdeyeClient({ apiKey: 'secret-key', baseUrl: upstream.url, requestsPerSecond: 100, ...more })
const start = (sink: MemorySink, more: Partial<BirdeyeClientOptions & SecurityOptions> = {}) => {
  const { ttlMs, waitingMax, holds = () => true, ...birdeye } = more
  const options = {
    birdeye: client(birdeye),
    holds,
    ...(ttlMs !== undefined && { ttlMs }),
    ...(waitingMax !== undefined && { waitingMax }),
  }
  return new SecurityFeed(options, sink, clock, silentLog)
}

test('an answer becomes a patch of all nine fields with its date and source', async () => {
  const sink = new MemorySink()
  const feed = start(sink)
  await askFor(feed, mint)
  expect(sink.received).toEqual([
    {
      event: {
        type: 'patch',
        mint,
        ts: NOW,
        fields: { ...toEnrichedFields(SECURITY, OVERVIEW), enriched_at: NOW, enriched_source: 'birdeye' },
      },
      receivedAtMs: NOW,
    },
  ])
  expect(requests.map(({ url }) => url).sort()).toEqual([
    `/defi/token_overview?address=${mint}`,
    `/defi/token_security?address=${mint}`,
  ])
  expect(requests[0].headers).toMatchObject({ 'x-api-key': 'secret-key', 'x-chain': 'solana' })
  expect(JSON.stringify(feed.describe())).not.toContain('secret-key')
  await feed.stop()
})

test('a mint is asked for once at a time, and again only when its answer is no longer fresh', async () => {
  const feed = start(new MemorySink(), { ttlMs: 60_000 })
  await askFor(feed, mint, mint, mint)
  expect(requests).toHaveLength(2)
  clock.timeMs += 59_999
  await askFor(feed, mint)
  expect(requests).toHaveLength(2)
  clock.timeMs += 1
  await askFor(feed, mint)
  expect(requests).toHaveLength(4)
  await feed.stop()
})

test('an answer about a token that the market holds no longer makes it no token again', async () => {
  const sink = new MemorySink()
  let isHeld = true
  const feed = start(sink, { holds: () => isHeld })
  const answered = askFor(feed, mint)
  isHeld = false
  await answered
  expect(sink.data).toEqual([])
  await feed.stop()
})

test('one missing answer leaves its fields null; two send no patch and are not asked for again at once', async () => {
  const sink = new MemorySink()
  const feed = start(sink)
  answers['/defi/token_overview'] = json({ success: false, message: 'no' })
  await askFor(feed, mint)
  expect(sink.events).toMatchObject([{ fields: { has_mint_authority: true, unique_wallet_24h: null } }])
  answers['/defi/token_security'] = json({}, 500)
  const other = mintOfSymbol('another')
  await askFor(feed, other)
  await askFor(feed, other)
  expect(sink.events).toHaveLength(1)
  expect(requests).toHaveLength(4)
  expect(feed.describe().faults).toEqual({ malformed: 2, refused: 1 })
  await feed.stop()
})

test('an impossible share is null and counted', async () => {
  const sink = new MemorySink()
  answers['/defi/token_security'] = json({ success: true, data: { ...SECURITY, top10HolderPercent: 25.4 } })
  const feed = start(sink)
  await askFor(feed, mint)
  expect(sink.events).toMatchObject([{ fields: { top10_holder_pct_onchain: null } }])
  expect(feed.describe().top10Outside).toBe(1)
  await feed.stop()
})

test('an answer that is late or endless is given up', async () => {
  const sink = new MemorySink()
  answers['/defi/token_security'] = () => {}
  answers['/defi/token_overview'] = (_request, response) => {
    response.writeHead(200)
    response.end(Buffer.alloc(2 * 1024 * 1024, 0x20))
  }
  const feed = start(sink, { timeoutMs: 1_000 })
  await askFor(feed, mint)
  expect(sink.events).toEqual([])
  expect(feed.describe().faults).toEqual({ timeout: 1, malformed: 1 })
  await feed.stop()
})

test('tokens beyond the rate wait, each once, and the most recently traded is asked for first', async () => {
  const sink = new MemorySink()
  const feed = start(sink, { requestsPerSecond: 40 })
  const mints = Array.from({ length: 16 }, (_, index) => mintOfSymbol(`waiting ${index}`))
  for (const one of mints) feed.request(one)
  feed.request(mints[12])
  feed.request(mints[11])
  expect(feed.describe()).toMatchObject({ asking: 10, waiting: 6, displaced: 0 })
  await expect.poll(() => sink.events.length, { interval: 5, timeout: 10_000 }).toBe(16)
  const asked = upstream.mintsAt(SECURITY_PATH)
  expect([...asked].sort()).toEqual([...mints].sort())
  expect(asked.indexOf(mints[11])).toBeLessThan(asked.indexOf(mints[10]))
  expect(asked.indexOf(mints[12])).toBeLessThan(asked.indexOf(mints[13]))
  await feed.stop()
})

test('a full queue drops the least recently traded token and logs it, and its next trade requests it again', async () => {
  const feed = start(new MemorySink(), { waitingMax: 1, requestsPerSecond: 4 })
  const [first, second, third] = ['first', 'second', 'third'].map(mintOfSymbol)
  const asked = askFor(feed, first, second, third)
  expect(feed.describe()).toMatchObject({ asking: 1, waiting: 1, displaced: 1 })
  await asked
  expect(upstream.mintsAt(SECURITY_PATH)).toEqual([first, third])
  await askFor(feed, second)
  expect(upstream.mintsAt(SECURITY_PATH)).toEqual([first, third, second])
  await feed.stop()
})

test('answers are delayed but not lost when the plan is smaller than configured', async () => {
  upstream.planPerSecond = 10
  const sink = new MemorySink()
  const feed = start(sink, { requestsPerSecond: 40 })
  const mints = Array.from({ length: 8 }, (_, index) => mintOfSymbol(`limited ${index}`))
  await askFor(feed, ...mints)
  expect(sink.events).toHaveLength(8)
  expect((feed.describe().faults as Record<string, number>).rate_limited).toBeGreaterThan(0)
  expect(new Set(sink.events.map((event) => (event as { mint: string }).mint)).size).toBe(8)
  await feed.stop()
})

test('an exception in the market is logged, and the next answer is applied', async () => {
  const sink = new MemorySink()
  sink.reject = () => {
    throw new Error('broken')
  }
  const feed = start(sink)
  await askFor(feed, mint)
  sink.reject = () => null
  await askFor(feed, mintOfSymbol('another'))
  expect(sink.events).toHaveLength(1)
  await feed.stop()
})

test('requests keep to the rate of the plan', async () => {
  const feed = start(new MemorySink(), { requestsPerSecond: 50 })
  const startedAt = performance.now()
  await askFor(feed, mint, mintOfSymbol('another'))
  expect(requests).toHaveLength(4)
  expect(performance.now() - startedAt).toBeGreaterThanOrEqual(3 * 20 - 2)
  await feed.stop()
})

test('a watched sink passes all events on and requests tokens that are launched or traded', async () => {
  const sink = new MemorySink()
  const feed = start(new MemorySink())
  const watched = feed.watch(sink)
  watched.apply({ type: 'solPrice', ts: NOW, usd: 150 }, NOW)
  watched.apply({ type: 'token', mint, ts: NOW, name: 'A', symbol: 'A' }, NOW)
  expect(sink.events).toHaveLength(2)
  await askFor(feed, mint)
  expect(requests).toHaveLength(2)
  await feed.stop()
})

test('a stopped feed aborts open requests and sends nothing more', async () => {
  const sink = new MemorySink()
  answers['/defi/token_security'] = () => {}
  const feed = start(sink)
  feed.request(mint)
  await expect.poll(() => requests.length, { interval: 5 }).toBe(2)
  await feed.stop()
  expect(sink.events).toEqual([])
  expect(feed.describe().state).toBe('stopped')
})

test('the price of SOL becomes an event; a bad answer is counted and changes nothing', async () => {
  const sink = new MemorySink()
  answers['/defi/price'] = json({ success: true, data: { value: 151.25 } })
  const feed = new SolPriceFeed({ birdeye: client(), everyMs: 5 }, sink, clock, silentLog)
  await feed.ready
  expect(sink.events[0]).toEqual({ type: 'solPrice', ts: NOW, usd: 151.25, source: 'birdeye' })
  answers['/defi/price'] = json({ success: true, data: { value: null } })
  await expect.poll(() => feed.describe().rejected.malformed ?? 0, { interval: 5 }).toBeGreaterThan(0)
  await feed.stop()
  expect(sink.events.every((event) => event.type === 'solPrice' && event.usd === 151.25)).toBe(true)
})
