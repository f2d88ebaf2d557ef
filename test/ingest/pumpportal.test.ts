// Tests of PumpPortal's frames, and of the feed against a local WebSocket server.

import { afterEach, beforeEach, expect, test } from 'vitest'
import { PumpPortal } from '../../src/ingest/pumpportal/pumpportal.ts'
import { parseFrame } from '../../src/ingest/pumpportal/pumpportal-frame.ts'
import { TradeSubscriptions } from '../../src/ingest/pumpportal/trade-subscriptions.ts'
import { reconnectMs } from '../../src/ingest/upstream-socket.ts'
import { Market } from '../../src/market/market.ts'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import { MARKET_QUOTES } from '../../src/schema/quote.ts'
import { clockOf } from '../support/clock.ts'
import { PumpPortalServer } from '../support/upstreams/pumpportal-server.ts'
import { MemorySink, silentLog } from './memory-sink.ts'

const NOW = 1_772_000_000_000
const mint = mintOfSymbol('pumpportal test')
const wallet = mintOfSymbol('pumpportal wallet')
const clock = clockOf(() => NOW)

const create = {
  signature: 'sig-create',
  mint,
  traderPublicKey: wallet,
  txType: 'create',
  initialBuy: 60_000_000,
  solAmount: 1.78,
  bondingCurveKey: wallet,
  vTokensInBondingCurve: 1_013_000_000,
  vSolInBondingCurve: 31.78,
  marketCapSol: 31.4,
  name: 'A Token',
  symbol: 'TOK',
  uri: 'https://example.com/meta.json',
  pool: 'pump',
}
const buy = {
  signature: 'sig-buy',
  mint,
  traderPublicKey: wallet,
  txType: 'buy',
  tokenAmount: 1_000,
  solAmount: 0.5,
  newTokenBalance: 1_000,
  bondingCurveKey: wallet,
  vTokensInBondingCurve: 1_000_000_000,
  vSolInBondingCurve: 32.19,
  marketCapSol: 32,
  pool: 'pump',
}
const eventsOf = (frame: unknown) => {
  const reading = parseFrame(frame, NOW)
  return reading.kind === 'events' ? reading.events : reading
}

test('a create frame becomes a token and the creator’s first purchase, with the time of receipt', () => {
  expect(eventsOf(create)).toEqual([
    {
      type: 'token',
      mint,
      ts: NOW,
      name: 'A Token',
      symbol: 'TOK',
      uri: create.uri,
      creator: wallet,
      totalSupply: 1_000_000_000,
    },
    {
      type: 'trade',
      mint,
      ts: NOW,
      side: 'buy',
      tokenAmount: 60_000_000,
      solAmount: 1.78,
      vSol: 31.78,
      vTokens: 1_013_000_000,
      wallet,
      tx: 'sig-create',
    },
  ])
})

test('a missing name is replaced by the symbol, or else by the mint; without a purchase there is no trade', () => {
  expect(eventsOf({ ...create, name: undefined, initialBuy: 0 })).toMatchObject([
    { name: 'TOK', symbol: 'TOK' },
  ])
  expect(eventsOf({ ...create, name: null, symbol: '', initialBuy: 0 })).toMatchObject([
    { name: mint, symbol: mint },
  ])
})

test('only trades on pump.fun’s own curve and pools have reserves', () => {
  const bonk = { ...create, pool: 'bonk', tokensInPool: 9e8, solInPool: 3, vSolInBondingCurve: undefined }
  expect(eventsOf(bonk)).toMatchObject([{ type: 'token', totalSupply: undefined }, { vSol: undefined }])
  const amm = {
    ...buy,
    txType: 'sell',
    pool: 'pump-amm',
    tokensInPool: 2e8,
    solInPool: 85,
    marketCapSol: 425,
  }
  const afterIt = { vSol: 85, vTokens: 2e8, quoteMint: MARKET_QUOTES.sol, quoteAmount: 0.5, vQuote: 85 }
  expect(eventsOf(amm)).toMatchObject([{ type: 'trade', side: 'sell', ...afterIt }])
  const untold = { ...amm, solInPool: undefined }
  expect(eventsOf(untold)).toMatchObject([{ type: 'trade', vSol: undefined, vTokens: undefined }])
})

test('the price of a swap is that of the pool, however few tokens were traded', () => {
  const market = new Market({ tokensMax: 10 })
  market.apply({ type: 'solPrice', ts: NOW, usd: 150, source: 'pyth' }, NOW)
  const dust = { pool: 'pump-amm', tokensInPool: 2e8, solInPool: 85, tokenAmount: 1e-6, solAmount: 1e-9 }
  const reading = parseFrame({ ...buy, ...dust, marketCapSol: 425 }, NOW)
  if (reading.kind === 'events') for (const event of reading.events) market.apply(event, NOW)
  expect(market.datapoint(mint)).toMatchObject({ priceUsd: (85 / 2e8) * 150, volume24h: 1e-9 * 150 })
})

test('a frame whose market cap contradicts its price, or whose reserves lie on no known curve, gives no price', () => {
  const faultOf = (frame: object) => {
    const parsed = parseFrame(frame, NOW)
    return parsed.kind === 'events' ? [parsed.fault, parsed.events.map(({ type }) => type)] : parsed.kind
  }
  expect(faultOf({ ...buy, marketCapSol: 32.6 })).toEqual([null, ['trade']])
  expect(faultOf({ ...buy, marketCapSol: 32.9 })).toEqual(['price_contradicted', []])
  // A mayhem token of two billion; a curve that is paid in USDC.
  expect(faultOf({ ...buy, marketCapSol: 64 })).toEqual(['price_contradicted', []])
  expect(faultOf({ ...buy, vSolInBondingCurve: 4_500 })).toEqual(['curve_unknown', []])
  // More tokens than a curve begins with.
  const swollen = { vTokensInBondingCurve: 1_074_000_000, vSolInBondingCurve: 30, marketCapSol: 27.93 }
  expect(faultOf({ ...buy, ...swollen })).toEqual(['curve_unknown', []])
  expect(faultOf({ ...create, marketCapSol: 64 })).toEqual(['price_contradicted', ['token']])
  expect(parseFrame({ ...create, marketCapSol: 64 }, NOW)).toMatchObject({
    events: [{ totalSupply: undefined }],
  })
  const amm = { ...buy, pool: 'pump-amm', tokensInPool: 2e8, solInPool: 85 }
  expect(faultOf({ ...amm, marketCapSol: 425 })).toEqual([null, ['trade']])
  expect(faultOf({ ...amm, marketCapSol: 850 })).toEqual(['price_contradicted', []])
  expect(faultOf({ ...buy, marketCapSol: undefined })).toEqual([null, ['trade']])
})

test('a migrate frame becomes a graduation', () => {
  const frame = { signature: 's', mint, txType: 'migrate', pool: 'pump-amm' }
  expect(eventsOf(frame)).toEqual([{ type: 'graduated', mint, ts: NOW, pool: 'pump-amm' }])
})

test('acknowledgements and errors are recognised, and anything else is unknown', () => {
  expect(parseFrame({ message: 'Successfully subscribed' }, NOW).kind).toBe('notice')
  expect(parseFrame({ errors: 'Invalid API key' }, NOW)).toEqual({
    kind: 'error',
    message: 'Invalid API key',
  })
  for (const frame of [undefined, null, 7, [], {}, { ...buy, mint: 'no mint' }, { ...buy, solAmount: '1' }]) {
    expect(parseFrame(frame, NOW).kind).toBe('unknown')
  }
})

test('waits between attempts grow, are random and stay within their bounds', () => {
  const waitMs = (attempt: number, random: number, retryAfterMs: number | null = null) =>
    reconnectMs(attempt, { reason: 'closed', retryAfterMs }, { random: () => random })
  expect(waitMs(0, 0)).toBe(250)
  expect(waitMs(0, 0.999)).toBeLessThan(500)
  expect(waitMs(4, 0.5)).toBe(4_000)
  expect(waitMs(1_000, 0.999)).toBeLessThan(30_000)
  expect(waitMs(0, 0, 10_000)).toBe(10_000)
  expect(waitMs(0, 0, 1e9)).toBe(60_000)
})

test('trade subscriptions are bounded: the oldest is dropped', () => {
  const keys = new TradeSubscriptions(2)
  expect(keys.add('a')).toEqual([{ method: 'subscribeTokenTrade', keys: ['a'] }])
  expect(keys.add('a')).toEqual([])
  keys.add('b')
  expect(keys.add('c')).toEqual([
    { method: 'subscribeTokenTrade', keys: ['c'] },
    { method: 'unsubscribeTokenTrade', keys: ['a'] },
  ])
  expect(keys.subscribeAll()).toEqual([{ method: 'subscribeTokenTrade', keys: ['b', 'c'] }])
})

let upstream: PumpPortalServer
beforeEach(async () => {
  upstream = await PumpPortalServer.start()
})
afterEach(() => upstream.close())

const soon = { interval: 5, timeout: 5_000 }
const start = (sink: MemorySink, more: object = {}) =>
  new PumpPortal({ url: upstream.url, random: () => 0, reconnectMsMin: 5, ...more }, sink, clock, silentLog)

test('when connected it subscribes, delivers each frame once and counts unknown frames', async () => {
  const sink = new MemorySink()
  const feed = start(sink)
  await feed.ready
  await expect.poll(() => upstream.messages.length, soon).toBe(2)
  expect(upstream.messages).toEqual([{ method: 'subscribeNewToken' }, { method: 'subscribeMigration' }])
  for (const frame of [
    { message: 'ok' },
    create,
    create,
    buy,
    'not json',
    { odd: 1 },
    { errors: 'no' },
    buy,
  ]) {
    upstream.send(frame)
  }
  await expect.poll(() => feed.describe().duplicates, soon).toBe(2)
  expect(sink.data.map(({ type }) => type)).toEqual(['token', 'trade', 'trade'])
  expect(feed.describe()).toMatchObject({
    state: 'running',
    withTrades: false,
    rejected: { unknown_frame: 2, upstream_error: 1 },
  })
  await feed.stop()
  expect(feed.describe().state).toBe('stopped')
  // Until PumpPortal had answered, its data were missing. The end of the feed itself is no loss.
  expect(sink.links.map(({ type }) => type)).toEqual(['disconnect', 'reconnect'])
})

test('with a key it subscribes to trades of new tokens, and again after a lost connection, which it reports', async () => {
  const sink = new MemorySink()
  const feed = start(sink, { apiKey: 'secret-key' })
  await feed.ready
  expect(upstream.queries).toEqual(['api-key=secret-key'])
  upstream.send(create)
  await expect.poll(() => upstream.messages.length, soon).toBe(3)
  expect(upstream.messages[2]).toEqual({ method: 'subscribeTokenTrade', keys: [mint] })
  upstream.drop()
  await expect.poll(() => upstream.messages.length, soon).toBe(6)
  await expect.poll(() => sink.links.length, soon).toBe(4)
  expect(upstream.messages.slice(3).map(({ method }) => method)).toEqual([
    'subscribeNewToken',
    'subscribeMigration',
    'subscribeTokenTrade',
  ])
  expect(sink.links).toEqual([
    { type: 'disconnect', ts: NOW, feed: 'pumpportal', sinceMs: NOW },
    { type: 'reconnect', ts: NOW, feed: 'pumpportal' },
    { type: 'disconnect', ts: NOW, feed: 'pumpportal', sinceMs: NOW },
    { type: 'reconnect', ts: NOW, feed: 'pumpportal' },
  ])
  // Tokens seen before the loss are still known after it.
  upstream.send(create)
  await expect.poll(() => feed.describe().duplicates, soon).toBe(1)
  expect(feed.describe()).toMatchObject({ state: 'running', connects: 2, disconnects: 1 })
  expect(JSON.stringify(feed.describe())).not.toContain('secret-key')
  await feed.stop()
})

test('every trade of a transaction that has several is applied, and each of them once', async () => {
  const sink = new MemorySink()
  const feed = start(sink)
  await feed.ready
  const others = [
    { mint: mintOfSymbol('another token of the bundle') },
    { traderPublicKey: mintOfSymbol('another wallet of the bundle') },
    { tokenAmount: 1_001 },
    { solAmount: 0.6 },
    // The same purchase once more, from the reserves that the first has left.
    { vTokensInBondingCurve: 999_999_000 },
    { pool: 'pump-amm', vTokensInBondingCurve: undefined, tokensInPool: 2e8 },
    { pool: 'pump-amm', vTokensInBondingCurve: undefined, tokensInPool: 1e8 },
  ]
  const frames = [buy, ...others.map((other) => ({ ...buy, ...other }))]
  for (const frame of [...frames, ...frames]) upstream.send(frame)
  await expect.poll(() => feed.describe().duplicates, soon).toBe(frames.length)
  expect(sink.data).toMatchObject(
    frames.map(({ mint, traderPublicKey: wallet, tokenAmount, solAmount }) => ({
      ...{ type: 'trade', mint, wallet, tokenAmount, solAmount },
    })),
  )
  await feed.stop()
})

test('a silent connection is replaced', async () => {
  const sink = new MemorySink()
  const feed = start(sink, { silenceMsMax: 30 })
  await expect.poll(() => upstream.queries.length, soon).toBeGreaterThan(1)
  await expect.poll(() => sink.links.length, soon).toBeGreaterThan(2)
  await feed.stop()
  expect(sink.links[2]).toEqual({ type: 'disconnect', ts: NOW, feed: 'pumpportal', sinceMs: NOW })
})

test('a frame that is larger than its option allows ends the connection', async () => {
  const feed = start(new MemorySink(), { frameBytesMax: 100 })
  await feed.ready
  upstream.send(create)
  await expect.poll(() => feed.describe().latestError, soon).toMatchObject({ message: /payload/ })
  await feed.stop()
})

test('a feed whose upstream is unreachable is ready at once and tries again until it is stopped', async () => {
  const sink = new MemorySink()
  await upstream.close()
  const feed = start(sink)
  await feed.ready
  expect(feed.describe().state).toBe('reconnecting')
  await feed.stop()
  expect(sink.events).toEqual([{ type: 'disconnect', ts: NOW, feed: 'pumpportal', sinceMs: NOW }])
})
