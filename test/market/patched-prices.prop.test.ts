// The prices and market caps of a token whose prices come from trades and patches alike never contradict each other.
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { Market } from '../../src/market/market.ts'
import type { PatchFields } from '../../src/schema/datapoint.ts'
import type { MarketEvent } from '../../src/schema/event.ts'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import { fewAndMany } from '../support/cases.ts'

const START_MS = 1_772_000_040_000
/** With little to allocate, since there are many such markets. */
const SMALL = { tokensMax: 1, barsPerTokenMax: 8, changeLogEntriesMax: 1_024 }
const mint = mintOfSymbol('patched prices')
const TRADE = { type: 'trade', mint, side: 'buy', tokenAmount: 10 } as const
/** Of SOL, tokens and supplies: powers of two, so that no quotient is rounded. */
const powerOf2 = fc.constantFrom(0.25, 1, 8, 64)
const maybe = fc.option(powerOf2)
const what = fc.oneof(
  fc.record({ type: fc.constant('solPrice' as const), usd: powerOf2 }),
  powerOf2.map((priceUsd) => ({ ...TRADE, priceUsd })),
  powerOf2.map((priceSol) => ({ ...TRADE, solAmount: 10 * priceSol })),
  fc
    .record(
      { priceUsd: maybe, priceSol: maybe, marketCap: maybe, totalSupply: maybe, solPriceUsd: maybe },
      { requiredKeys: [] },
    )
    .map((fields) => ({ type: 'patch' as const, mint, fields })),
)

interface Prices {
  priceUsd: number | null
  priceSol: number | null
}
const times = (a: number | null | undefined, b: number | null): number | null =>
  a == null || b === null ? null : a * b

/** Unknown is null; a price that is not said follows from the other one. */
function patched(before: Prices, { priceUsd, priceSol }: PatchFields, solUsd: number | null): Prices {
  if (priceUsd === undefined && priceSol === undefined) return before
  if (priceUsd === undefined && priceSol === null) return { ...before, priceSol }
  const usd = priceUsd === undefined ? times(priceSol, solUsd) : priceUsd
  return { priceUsd: usd, priceSol: priceSol === undefined ? times(usd, solUsd && 1 / solUsd) : priceSol }
}

for (const { runs, tags } of fewAndMany(60, 300))
  it(`a price that is not told follows from the one that is, and market caps from prices: ${runs} cases`, {
    tags,
  }, () => {
    fc.assert(
      fc.property(fc.array(what, { maxLength: 30 }), (steps) => {
        const market = new Market(SMALL)
        let solUsd: number | null = null
        let prices: Prices = { priceUsd: null, priceSol: null }
        for (const [second, step] of steps.entries()) {
          const ts = START_MS + second * 1_000
          const isTaken = market.apply({ ...step, ts } as MarketEvent, ts) === null
          if (step.type === 'solPrice') solUsd = step.usd
          else if (step.type === 'patch') {
            if (step.fields.solPriceUsd !== undefined) solUsd = step.fields.solPriceUsd
            prices = patched(prices, step.fields, solUsd)
          } else if (isTaken)
            prices = patched(
              prices,
              'priceUsd' in step ? { priceUsd: step.priceUsd } : { priceSol: step.solAmount / 10 },
              solUsd,
            )
          const point = market.datapoint(mint)
          if (point === null) continue
          expect(point).toMatchObject({ ...prices, solPriceUsd: solUsd })
          const row = JSON.parse(
            market.page({ tab: 'all', sort: 'hot', order: 'desc', limit: 1, offset: 0 }).ndjson.toString(),
          )
          expect(row).toMatchObject({ priceUsd: prices.priceUsd, usd_market_cap: point.marketCap })
          const { priceUsd, priceSol } = prices
          if (priceUsd !== null)
            expect(row.market_cap).toBe(times(point.marketCap, priceSol && priceSol / priceUsd))
          else if (priceSol === null) expect(row.market_cap).toBe(null)
          if (step.type === 'patch')
            for (const field of ['priceUsd', 'priceSol', 'marketCap', 'totalSupply', 'solPriceUsd'] as const)
              if (step.fields[field] !== undefined) expect(point[field]).toBe(step.fields[field])
        }
      }),
      { numRuns: runs },
    )
  })
