// A 304 is sent only when the full response would have the same bytes, and always when nothing has changed.
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { bodyBytes, type Context, type HttpAnswer } from '../../../src/http/context.ts'
import { singleNode } from '../../../src/http/node.ts'
import { Cursors } from '../../../src/http/response/cursors.ts'
import { barRoute } from '../../../src/http/routes/bars.ts'
import { marketRoutes } from '../../../src/http/routes/market.ts'
import { Broadcaster } from '../../../src/http/stream/broadcaster.ts'
import { Market } from '../../../src/market/market.ts'
import type { MarketEvent } from '../../../src/schema/event.ts'
import { mintOfSymbol } from '../../../src/schema/mint.ts'
import { clockOf } from '../../support/clock.ts'
import { openTestServer } from '../../support/test-server.ts'

const RUNS = Number(process.env.MINTLAKE_TEST_RUNS ?? 25)
const START_MS = 1_772_000_000_000
const HOUR_MS = 3_600_000
const MINTS = ['one', 'two', 'three', 'four', 'five', 'six'].map(mintOfSymbol)
/** One less than there are mints, so that the sixth evicts another. */
const TOKENS_MAX = 5
/** Of 8 million by default: each case makes a market. */
const CHANGE_LOG_ENTRIES = 65_536

/** Reads: path and query, and the Accept header if the query has no format. */
const READS: readonly (readonly [path: string, query: string, accept?: string])[] = [
  ['/api/v1/market', ''],
  ['/api/v1/market', '', 'application/x-ndjson'],
  ['/api/v1/market', 'limit=2'],
  ['/api/v1/market', 'limit=2&offset=1&order=asc&sort=market_cap&format=ndjson'],
  ['/api/v1/market', 'tab=new&format=msgpack'],
  ['/api/v1/market', 'tab=live&format=arrow'],
  ['/api/v1/market', 'search=n&limit=2'],
  ['/api/v1/market', 'max_analyses=1&format=ndjson'],
  ['/api/v1/market', 'search=s&max_analyses=0&tab=new&order=asc&format=msgpack'],
  ...MINTS.slice(0, 2).flatMap((mint) => [
    ['/api/v1/datapoint', `mint=${mint}`] as const,
    ['/api/v1/ohlc', `mint=${mint}&tf=1s&limit=5`] as const,
    ['/api/v1/ohlc', `mint=${mint}&tf=1m`, 'application/x-ndjson'] as const,
    ['/api/v1/ohlc', `mint=${mint}&tf=1m`] as const,
    ['/api/v1/ohlc', `mint=${mint}&tf=15m&fill=prev&shape=long&format=arrow`] as const,
    ['/api/v1/ohlc', `mint=${mint}&tf=5m&from=${START_MS}&to=${START_MS + HOUR_MS}&format=msgpack`] as const,
  ]),
]

const mint = fc.constantFrom(...MINTS)
const event = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      type: fc.constant('trade' as const),
      mint,
      lateMs: fc.constantFrom(0, 0, 1_500, 4_000, 8_000),
      side: fc.constantFrom('buy' as const, 'sell' as const),
      tokenAmount: fc.constantFrom(1, 10),
      priceUsd: fc.constantFrom(0.5, 1, 2),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      type: fc.constant('patch' as const),
      mint,
      fields: fc.constantFrom({ volume24h: 5 }, { holderCount: 7 }, { isLive: true }, { volume24h: null }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      type: fc.constant('token' as const),
      mint,
      name: fc.constant('N'),
      symbol: fc.constant('S'),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ type: fc.constant('analysisCount' as const), mint, count: fc.nat(3) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ type: fc.constant('solPrice' as const), usd: fc.constantFrom(100, 200) }),
  },
)
const passing = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(0, 1, 400) },
  { weight: 3, arbitrary: fc.integer({ min: 0, max: 40_000 }) },
  { weight: 2, arbitrary: fc.constantFrom(60_000, 900_000, HOUR_MS, 6 * HOUR_MS, 24 * HOUR_MS) },
)
const step = fc.record({ passMs: passing, event: fc.option(event) })

/** The routes over a new market, with a shared clock. */
function served() {
  const market = new Market({ tokensMax: TOKENS_MAX, changeLogEntriesMax: CHANGE_LOG_ENTRIES })
  let nowMs = START_MS
  market.advanceTo(nowMs)
  const node = singleNode()
  const cursors = new Cursors({ market, run: node.run, now: () => nowMs })
  const routes = [
    ...marketRoutes({ market, node, broadcaster: new Broadcaster(market), cursors }),
    barRoute({ market, node }),
  ]
  return {
    take(passMs: number, happened: (Omit<MarketEvent, 'ts'> & { lateMs?: number }) | null) {
      nowMs += passMs
      market.advanceTo(nowMs)
      if (happened === null) return
      const { lateMs = 0, ...fields } = happened
      market.apply({ ...fields, ts: nowMs - lateMs } as MarketEvent, nowMs)
    },
    /** Null if the token is not known. */
    ask([path, query, accept = '']: (typeof READS)[number], ifNoneMatch: string): HttpAnswer | null {
      const { handle } = routes.find((route) => route.path === path)!
      const headers = { accept, ifNoneMatch }
      try {
        return handle({
          query: new URLSearchParams(query),
          notes: {},
          headers,
        } as unknown as Context) as HttpAnswer
      } catch {
        return null
      }
    },
  }
}

it('a reader gets 304 only when the full answer would equal the bytes that it has', () => {
  const property = fc.property(fc.array(step, { minLength: 1, maxLength: 25 }), (steps) => {
    const { take, ask } = served()
    const known = new Map<number, { etag: string; bytes: Buffer }>()
    for (const { passMs, event: happened } of steps) {
      take(passMs, happened as never)
      for (const [index, read] of READS.entries()) {
        const before = known.get(index)
        const told = before && ask(read, before.etag)
        const made = ask(read, '')
        if (made === null) continue
        // A copy, as the engine can reuse the memory for the next answer.
        const bytes = Buffer.from(bodyBytes(made.body))
        const etag = made.headers!.ETag
        if (told?.status === 304)
          expect(bytes.toString('latin1'), `${read}`).toBe(before!.bytes.toString('latin1'))
        expect(ask(read, etag)?.status, `${read} again`).toBe(304)
        known.set(index, { etag, bytes })
      }
    }
  })
  fc.assert(property, { numRuns: RUNS })
})

it('a page has another version once its 24-hour windows have moved, even without a trade', async () => {
  let nowMs = START_MS
  const server = await openTestServer({}, { clock: clockOf(() => nowMs) })
  try {
    const trade = { type: 'trade', mint: MINTS[0], ts: nowMs, side: 'buy', tokenAmount: 10, priceUsd: 2 }
    await server.client.push(trade)
    const page = (headers = {}) => server.client.get('/api/v1/market', headers)
    const first = await page()
    expect(first.body.data[0].volume_24h_usd).toBe(20)
    nowMs += 25 * HOUR_MS
    server.market.advanceTo(nowMs)
    const later = await page({ 'If-None-Match': first.headers.get('etag')! })
    expect(later.status).toBe(200)
    expect(later.body.data[0].volume_24h_usd).toBe(0)
  } finally {
    await server.remove()
  }
})
