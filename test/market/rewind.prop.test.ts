// Market time that a wrong clock moved ahead goes back, and the market goes on as one whose clock was right.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Market } from '../../src/market/market.ts'
import type { MarketEvent, RewoundSpan } from '../../src/schema/event.ts'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import { TIMEFRAMES } from '../../src/schema/timeframe.ts'
import { fewAndMany } from '../support/cases.ts'

const START_MS = 1_900_000_000_000
const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS
const MINTS = ['A', 'B', 'C'].map(mintOfSymbol)

interface Step {
  mint: number
  afterMs: number
  price: number
}
const steps = fc.array(
  fc.record({
    mint: fc.nat(MINTS.length - 1),
    afterMs: fc.oneof(fc.nat(3_000), fc.nat(20 * MINUTE_MS)),
    price: fc.integer({ min: 1, max: 9 }),
  }),
  { maxLength: 30, size: 'max' },
)

const newMarket = (): Market => new Market({ tokensMax: 10, changeLogEntriesMax: 1_024 })

/** Applies trades one after the other from a time on. @returns the time of the last */
function trade(markets: readonly Market[], trades: readonly Step[], fromMs: number): number {
  let ts = fromMs
  for (const { mint, afterMs, price } of trades) {
    ts += afterMs
    for (const market of markets) {
      const event = { type: 'trade', mint: MINTS[mint], ts, side: 'buy', tokenAmount: 1, priceUsd: price }
      expect(market.apply(event as MarketEvent, ts)).toBe(null)
    }
  }
  return ts
}

const barsOf = (market: Market) =>
  MINTS.map((mint) =>
    TIMEFRAMES.map((tf) => {
      const found = market.bars({ mint, tf, limit: 1_000, fromMs: null, toMs: null, fill: 'none' })
      return found?.bars.map(({ t, o, h, l, c, v, n }) => [t, o, h, l, c, v, n])
    }),
  )

function restored(market: Market): Market {
  const sections = new Map<string, Buffer>()
  for (const { name, bytes } of market.save()) sections.set(name, Buffer.from(bytes))
  return Market.restore({ tokensMax: 10, changeLogEntriesMax: 1_024 }, (name) => sections.get(name) ?? null)
}

for (const { runs, tags } of fewAndMany(10, 300))
  it(`takes every later trade, and has the bars of a market whose clock was right all the time, ${runs} cases`, {
    tags,
  }, () => {
    const ahead = fc.constantFrom(13_000, HOUR_MS, DAY_MS, 40 * DAY_MS)
    fc.assert(
      fc.property(steps, fc.nat(1_500), ahead, steps, steps, (before, silentMs, aheadMs, wrong, after) => {
        const [leapt, right] = [newMarket(), newMarket()]
        const atMs = trade([leapt, right], before, START_MS) + silentMs
        // Tokens that the wrong clock alone has seen are no part of the comparison.
        const known = wrong.filter(({ mint }) => right.has(MINTS[mint]))
        trade([leapt], known, atMs + aheadMs)
        leapt.advanceTo(atMs + aheadMs)
        expect(leapt.apply({ type: 'rewind', ts: atMs }, atMs)).toBe(null)
        expect(leapt.timeMs).toBe(atMs)
        const copy = restored(leapt)
        right.advanceTo(atMs)
        trade([leapt, right, copy], after, atMs)
        expect(barsOf(leapt)).toEqual(barsOf(right))
        expect(barsOf(copy)).toEqual(barsOf(right))
        for (const { mint } of after) {
          const [one, other] = [leapt, right].map((market) => market.datapoint(MINTS[mint] as string))
          for (const name of ['priceUsd', 'volume1h', 'volume24h', 'buys24h'] as const)
            expect(one?.[name]).toEqual(other?.[name])
        }
      }),
      { numRuns: runs },
    )
  })

it('tells what passed twice: from where it goes back to, or where somebody began to watch with a clock that was ahead', () => {
  const spans: RewoundSpan[] = []
  const market = new Market({ tokensMax: 8, onRewound: (span) => void spans.push(span) })
  const rewind = (ts: number) => market.apply({ type: 'rewind', ts }, ts)
  const later = (hours: number) => START_MS + hours * HOUR_MS
  market.advanceTo(later(1))
  market.advanceTo(later(2))
  rewind(START_MS)
  market.apply({ type: 'disconnect', feed: 'push', ts: START_MS }, START_MS)
  market.apply(
    { type: 'gap', ts: later(9), fromMs: START_MS + 1, toMs: later(9), reason: 'downtime' },
    later(9),
  )
  market.apply({ type: 'reconnect', feed: 'push', ts: later(9) }, later(9))
  market.advanceTo(later(10))
  // Time that is not ahead of the market's is none that passed twice.
  rewind(later(10))
  rewind(later(2))
  market.advanceTo(later(3))
  rewind(START_MS)
  expect(spans).toEqual([
    { fromMs: later(1), toMs: later(2) },
    { fromMs: later(9), toMs: later(10) },
    { fromMs: START_MS, toMs: later(3) },
  ])
})

it('keeps tokens, prices and tabs, and nothing of them is of a later time', () => {
  const market = newMarket()
  const [known, young] = MINTS as [string, string]
  const token = { type: 'token', mint: known, ts: START_MS, name: 'Known', symbol: 'K' } as const
  market.apply(token, START_MS)
  trade([market], [{ mint: 0, afterMs: 0, price: 3 }], START_MS)
  const laterMs = START_MS + 2 * DAY_MS
  market.apply({ type: 'gap', ts: laterMs, fromMs: START_MS, toMs: laterMs, reason: 'downtime' }, laterMs)
  market.apply({ ...token, mint: young, ts: laterMs, name: 'Young' }, laterMs)
  trade([market], [{ mint: 1, afterMs: 0, price: 5 }], laterMs)
  const nowMs = START_MS + MINUTE_MS
  market.apply({ type: 'rewind', ts: nowMs }, nowMs)
  expect(market.item(known)).toMatchObject({ name: 'Known', priceUsd: 3, created_timestamp: START_MS })
  expect(market.item(young)).toMatchObject({
    ...{ name: 'Young', priceUsd: 5, created_timestamp: nowMs, last_trade_timestamp: nowMs },
  })
  expect(market.gaps(10).ended).toEqual([{ fromMs: START_MS, toMs: nowMs, reason: 'downtime', feed: null }])
  const page = market.page({ tab: 'new', sort: 'created_timestamp', order: 'desc', offset: 0, limit: 9 })
  expect(page.total).toBe(2)
  expect(market.snapshot(known)?.volume24h).toBe(3)
  trade([market], [{ mint: 0, afterMs: 0, price: 4 }], nowMs)
  expect(market.datapoint(known)).toMatchObject({ priceUsd: 4, volume24h: 7 })
})

describe('versions, after a rewind', () => {
  it('are dropped by their age as ever', () => {
    const market = newMarket()
    const trades = (ts: number, count: number) => {
      for (let at = 0; at < count; at++) trade([market], [{ mint: 0, afterMs: 0, price: 1 }], ts)
    }
    trades(START_MS + DAY_MS, 20_000)
    market.apply({ type: 'rewind', ts: START_MS }, START_MS)
    for (let at = 1; at <= 5; at++) trades(START_MS + at * 10 * MINUTE_MS, 16_384)
    expect(market.stats().versionsHeld).toBeLessThan(3 * 16_384)
    expect(market.stats().versionsDroppedEarly).toBe(0)
  })

  it('of before are known until then, and those of the wrong time never, also where their token was evicted', () => {
    const market = new Market({ tokensMax: 1 })
    trade([market], [{ mint: 0, afterMs: 0, price: 2 }], START_MS)
    const wrongMs = START_MS + 10 * HOUR_MS
    for (const [at, price] of [7, 9].entries()) trade([market], [{ mint: 0, afterMs: at, price }], wrongMs)
    const pricesAt = (timeMs: number) =>
      market.versionsAt(MINTS[0] as string, timeMs).map(({ priceUsd }) => priceUsd)
    const nowMs = START_MS + MINUTE_MS
    market.apply({ type: 'rewind', ts: nowMs }, nowMs)
    expect([pricesAt(nowMs - 1), pricesAt(nowMs)]).toEqual([[2], [9]])
    trade([market], [{ mint: 1, afterMs: 0, price: 1 }], wrongMs)
    market.apply({ type: 'rewind', ts: nowMs }, nowMs)
    trade([market], [{ mint: 0, afterMs: 2 * MINUTE_MS, price: 3 }], wrongMs)
    expect(pricesAt(wrongMs + 1)).toEqual([])
  })
})

it('what was said and traded in the wrong time is of now, and grows old', () => {
  const market = newMarket()
  const wrongMs = START_MS + 2 * DAY_MS
  trade([market], [{ mint: 0, afterMs: 0, price: 1 }], wrongMs)
  const said = { unique_wallet_1h: 777, enriched_source: 'birdeye', enriched_at: wrongMs }
  market.apply({ type: 'patch', mint: MINTS[0] as string, ts: wrongMs, fields: said }, wrongMs)
  market.apply({ type: 'rewind', ts: START_MS }, START_MS)
  const shown = () => market.datapoint(MINTS[0] as string)
  expect(shown()).toMatchObject({ unique_wallet_1h: 777, enriched_at: START_MS })
  expect(shown()?.recentTrades.map(({ timestamp }) => timestamp)).toEqual([START_MS])
  for (let ts = START_MS; ts <= START_MS + 3 * HOUR_MS; ts += HOUR_MS) {
    const event = {
      type: 'trade',
      mint: MINTS[0] as string,
      ts,
      side: 'buy',
      tokenAmount: 1,
      priceUsd: 1,
    } as const
    expect(market.apply({ ...event, wallet: 'a' }, ts)).toBe(null)
  }
  expect(shown()).toMatchObject({ unique_wallet_1h: 1, enriched_source: 'trades' })
})
