// The price of SOL that trades are priced with, and the age from which they are refused instead, against a list of its reports.
import fc from 'fast-check'
import { describe, expect, it, test } from 'vitest'
import { SOL_PRICE_MAX_AGE_MS_DEFAULT } from '../../src/market/limits.ts'
import { Market } from '../../src/market/market.ts'
import type { EventRejection, MarketEvent, SolPriceEvent, TradeEvent } from '../../src/schema/event.ts'
import { mintOfSymbol } from '../../src/schema/mint.ts'

const START_MS = 1_772_000_040_000
const MAX_AGE_MS = 10_000
/** With little to allocate, since there are many such markets. */
const SMALL = { tokensMax: 100, barsPerTokenMax: 8, changeLogEntriesMax: 1_024 }
const mint = mintOfSymbol('sol price')
const trade = (ts: number, more: Partial<TradeEvent> = {}): TradeEvent => ({
  type: 'trade',
  mint,
  ts,
  side: 'buy',
  tokenAmount: 10,
  solAmount: 1,
  ...more,
})
const solPrice = (ts: number, usd: number, source?: SolPriceEvent['source']): SolPriceEvent => ({
  type: 'solPrice',
  ts,
  usd,
  ...(source && { source }),
})

interface Report {
  usd: number | null
  atMs: number
  isConstant: boolean
}

/** Whether a report is taken: not one that is older than the price in force. */
const isTaken = (latest: Report | undefined, { atMs, isConstant }: Report): boolean =>
  latest === undefined || latest.usd === null || latest.isConstant || isConstant || atMs >= latest.atMs

/** What becomes of a trade without a price in USD: its price in USD, or why it is refused. */
function expected(reports: readonly Report[], tsMs: number, maxAgeMs: number): number | EventRejection {
  const latest = reports.at(-1)
  if (latest === undefined || latest.usd === null) return 'sol_price_unknown'
  const isOld = maxAgeMs > 0 && tsMs > latest.atMs + maxAgeMs
  return isOld && !latest.isConstant ? 'sol_price_stale' : latest.usd * 0.1
}

/** Times within a few maximum ages: often at their very ends. */
const offsetMs = fc.oneof(
  fc.constantFrom(-MAX_AGE_MS - 1, -MAX_AGE_MS, -1, 0, 1, 60_000),
  fc.integer({ min: -3 * MAX_AGE_MS, max: MAX_AGE_MS }),
)
const usd = fc.constantFrom(100, 150)
const step = fc.record({
  passMs: fc.constantFrom(0, 1, 4_000, MAX_AGE_MS, MAX_AGE_MS + 1),
  offsetMs,
  what: fc.oneof(
    fc.record({
      type: fc.constant('solPrice' as const),
      usd,
      source: fc.constantFrom('setting' as const, 'birdeye' as const, undefined),
    }),
    fc.record({ type: fc.constant('patch' as const), usd: fc.option(usd) }),
    fc.constant({ type: 'trade' as const }),
    fc.constant({ type: 'priced' as const }),
  ),
})

test.each([0, MAX_AGE_MS])(
  'with a maximum age of %i ms each trade gets its price or its refusal',
  (maxAgeMs) => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const market = new Market({ ...SMALL, solPriceMaxAgeMs: maxAgeMs })
        const reports: Report[] = []
        let nowMs = START_MS
        for (const [index, { passMs, offsetMs, what }] of steps.entries()) {
          nowMs += passMs
          const ts = nowMs + offsetMs
          // A mint of its own, so that no trade is late.
          const mint = mintOfSymbol(`${index}`)
          const outcome = expected(reports, ts, maxAgeMs)
          if (what.type === 'solPrice' || what.type === 'patch') {
            const isConstant = what.type === 'solPrice' && what.source === 'setting'
            const report = { usd: what.usd, atMs: Math.min(ts, nowMs), isConstant }
            const event: MarketEvent =
              what.type === 'solPrice'
                ? solPrice(ts, what.usd, what.source)
                : { type: 'patch', mint, ts, fields: { solPriceUsd: what.usd } }
            const taken = what.type === 'patch' || isTaken(reports.at(-1), report)
            expect(market.apply(event, nowMs)).toBe(null)
            if (taken) reports.push(report)
          } else if (what.type === 'priced') {
            expect(market.apply(trade(ts, { mint, priceUsd: 3, solAmount: undefined }), nowMs)).toBe(null)
            const { priceUsd, priceSol } = market.datapoint(mint) ?? {}
            expect(priceUsd).toBe(3)
            // Its price in SOL is unknown where it would follow from an old price of SOL.
            if (typeof outcome === 'string') expect(priceSol).toBe(null)
            else expect(priceSol).toBeCloseTo(0.3 / outcome, 12)
          } else {
            expect(market.apply(trade(ts, { mint }), nowMs)).toBe(
              typeof outcome === 'string' ? outcome : null,
            )
            if (typeof outcome === 'string') expect(market.has(mint)).toBe(false)
            else expect(market.datapoint(mint)?.priceUsd).toBeCloseTo(outcome, 9)
          }
          const isStale = expected(reports, nowMs, maxAgeMs) === 'sol_price_stale'
          expect(market.solPrice?.isStale ?? false).toBe(isStale)
        }
      }),
      { numRuns: 40 },
    )
  },
)

describe('a price of SOL', () => {
  it('that is too old leaves the liquidity of a curve unknown rather than wrong', () => {
    const vTokens = 1_073_000_000 - 396_550_000
    const vSol = (30 * 1_073_000_000) / vTokens
    const market = new Market({ tokensMax: 1 })
    market.apply(solPrice(START_MS, 100), START_MS)
    const ts = START_MS + SOL_PRICE_MAX_AGE_MS_DEFAULT
    market.apply(trade(ts, { priceUsd: 1, vSol, vTokens }), ts)
    expect(market.datapoint(mint)?.liquidity).toBeCloseTo(2 * (vSol - 30) * 100, 6)
    market.apply(trade(ts + 1, { priceUsd: 1, vSol, vTokens }), ts + 1)
    expect(market.datapoint(mint)).toMatchObject({ liquidity: null, priceSol: vSol / vTokens, tradeCount: 2 })
  })

  it('that is older than the one in force changes nothing, also of another source and after a restart', () => {
    const empty = { tokensMax: 1, changeLogEntriesMax: 1_024 }
    let market = new Market(empty)
    const apply = (event: MarketEvent) => market.apply(event, START_MS)
    apply(solPrice(START_MS - 1_000, 300))
    expect(apply(solPrice(START_MS - 60_000, 100, 'birdeye'))).toBe(null)
    const sections = new Map<string, Buffer>()
    for (const { name, bytes } of market.save()) sections.set(name, Buffer.from(bytes))
    market = Market.restore(empty, (name) => sections.get(name) ?? null)
    expect(apply(solPrice(START_MS - 1_001, 100))).toBe(null)
    expect(market.solPrice).toMatchObject({ usd: 300, atMs: START_MS - 1_000 })
    expect(apply(trade(START_MS - 500))).toBe(null)
    expect(market.datapoint(mint)).toMatchObject({ priceUsd: 30, solPriceUsd: 300 })
    expect(apply(solPrice(START_MS - 1_000, 310))).toBe(null)
    expect(market.solPrice).toMatchObject({ usd: 310, atMs: START_MS - 1_000 })
    // A clock that is ahead counts as now: what comes later is taken.
    expect(apply(solPrice(START_MS + 50_000, 320))).toBe(null)
    expect(market.apply(solPrice(START_MS + 1, 330), START_MS + 1)).toBe(null)
  })

  it('of its time prices the trades of a backlog that comes late', () => {
    const market = new Market({ tokensMax: 1, solPriceMaxAgeMs: 900_000 })
    const hourAgoMs = START_MS - 3_600_000
    market.advanceTo(START_MS)
    const apply = (event: MarketEvent) => market.apply(event, START_MS)
    expect(apply(solPrice(hourAgoMs, 100))).toBe(null)
    expect(apply(trade(hourAgoMs + 1_000))).toBe(null)
    expect(market.solPrice).toMatchObject({ usd: 100, atMs: hourAgoMs, isStale: true })
    expect(market.solPriceUsdAt(hourAgoMs)).toBe(100)
    expect(market.solPriceUsdAt(START_MS)).toBe(Number.NaN)
    expect(apply(trade(START_MS))).toBe('sol_price_stale')
    apply(solPrice(START_MS, 120))
    expect(apply(trade(START_MS))).toBe(null)
  })
})
