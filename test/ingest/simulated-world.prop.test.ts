// The simulated world does not contradict itself: what is said of a token's holders adds up to what was sold of it, and its windows
// lie within each other and agree with its trades.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { SIMULATOR_DEFAULTS } from '../../src/ingest/limits.ts'
import { Simulation } from '../../src/ingest/simulator/simulation.ts'
import { Market } from '../../src/market/market.ts'
import type { DataPoint } from '../../src/schema/datapoint.ts'
import type { MarketEvent, PatchEvent } from '../../src/schema/event.ts'
import { fewAndMany } from '../support/cases.ts'

const START = 1_772_000_000_000
const HOUR = 3_600_000
const TOKENS_MAX = 2_000
/** Shares have four decimals. */
const ROUNDING = 0.002

const options = fc.record({
  seed: fc.integer({ min: 0 }),
  tokens: fc.integer({ min: 1, max: 400 }),
  tradesPerSecond: fc.constantFrom(0.02, 1, 10, 200),
})

/** Says what is wrong with the shares of a patch. @param heldPct what was sold of a token on its curve, percent; of others at most 100 */
function expectSharesToAgree({ fields }: PatchEvent, heldPct: number, isOnCurve: boolean): void {
  const { holderCount: count, topHolders: top, top10HolderPct: top10, creatorHolding } = fields
  if (count == null || top == null || top10 == null) throw new Error('a patch tells of holders')
  const shares = top.map(({ pct }) => pct as number)
  expect(top.length).toBe(Math.min(20, count))
  expect(new Set(top.map(({ address }) => address)).size).toBe(top.length)
  expect(shares).toEqual(shares.toSorted((a, b) => b - a))
  expect(Math.abs(shares.slice(0, 10).reduce((sum, pct) => sum + pct, 0) - top10)).toBeLessThan(ROUNDING)
  // All others have no more than the tenth.
  const othersMost = Math.max(0, count - 10) * ((shares[9] ?? 0) + 1e-4)
  expect(top10).toBeLessThan(heldPct + ROUNDING)
  if (isOnCurve) expect(top10 + othersMost).toBeGreaterThan(heldPct - ROUNDING)
  const { snipersHolding, insidersHolding, bundleHolding, freshWalletsHolding } = fields
  const groups = [snipersHolding, insidersHolding, bundleHolding, freshWalletsHolding, creatorHolding]
  const inGroups = groups.reduce<number>((sum, pct) => sum + (pct as number), 0)
  expect(inGroups).toBeLessThan((count <= 10 ? top10 : heldPct) + ROUNDING)
  expect(creatorHolding).toBeLessThanOrEqual(shares[0] ?? 0)
}

/** Compares what a patch says of windows with what the market has counted in the trades. */
function expectWindowsToAgree({ fields, ts }: PatchEvent, point: DataPoint): void {
  const { unique_wallet_1h: hour, unique_wallet_24h: day } = fields
  // Of a token that the market has seen all trades of, these figures are the market's own.
  expect([hour != null, day != null]).toEqual(Array(2).fill(point.createdAt! < START))
  if (hour == null || day == null) return
  expect(hour).toBeLessThanOrEqual(day)
  if (point.volume1h! > 0) expect(hour).toBeGreaterThan(0)
  // Of a token that is older the market does not know all.
  if (point.createdAt! < ts - 23 * HOUR || point.createdAt! < START - 24 * HOUR) return
  expect(day).toBeLessThanOrEqual(point.buys24h! + point.sells24h!)
  const traded = fields.buy_volume_24h_usd! + fields.sell_volume_24h_usd!
  expect(Math.abs(traded - point.volume24h!)).toBeLessThan(0.02 + point.volume24h! / 1e6)
}

for (const { runs, tags } of fewAndMany(3, 15))
  test(`shares of holders agree with each other and with what was sold, ${runs} markets`, { tags }, () => {
    fc.assert(
      fc.property(options, (simulated) => {
        const heldPct = new Map<string, number>()
        const graduated = new Set<string>()
        const sink = {
          apply(event: MarketEvent) {
            if (event.type === 'graduated') graduated.add(event.mint)
            if (event.type === 'trade' && event.vTokens != null)
              heldPct.set(event.mint, (1_073_000_000 - event.vTokens) / 1e7)
            if (event.type === 'patch') {
              const isOnCurve = !graduated.has(event.mint)
              expectSharesToAgree(event, isOnCurve ? heldPct.get(event.mint)! : 100, isOnCurve)
            }
            return null
          },
        }
        new Simulation({ ...simulated, startMs: START }).advance(START + 60_000, sink)
      }),
      { numRuns: runs },
    )
  })

for (const { runs, tags } of fewAndMany(1, 8))
  test(`windows agree with each other and with the trades in them, ${runs} markets`, { tags }, () => {
    fc.assert(
      fc.property(options, (simulated) => {
        const market = new Market({ tokensMax: TOKENS_MAX })
        const simulation = new Simulation({ ...simulated, startMs: START })
        const sink = {
          apply(event: MarketEvent, atMs: number) {
            const rejection = market.apply(event, atMs)
            expect(rejection).toBeNull()
            if (event.type === 'patch') expectWindowsToAgree(event, market.datapoint(event.mint)!)
            return rejection
          },
        }
        for (const atMs of [START - 10 * HOUR, START - HOUR / 3, START, START + 30_000]) {
          simulation.advance(atMs, sink)
          for (const { mint } of simulation.snapshotTokens()) {
            const point = market.datapoint(mint)!
            const volumes = [point.volume1m, point.volume1h, point.volume6h, point.volume24h]
            for (const [index, volume] of volumes.entries())
              if (index > 0) expect(volume! * (1 + 1e-9)).toBeGreaterThanOrEqual(volumes[index - 1]!)
          }
        }
      }),
      { numRuns: runs },
    )
  })

test('at the start the windows of tokens that are traded differ, and those of a new token do not', {
  tags: 'drill',
}, () => {
  const market = new Market({ tokensMax: TOKENS_MAX * 2 })
  const simulation = new Simulation({ ...SIMULATOR_DEFAULTS, startMs: START })
  simulation.advance(START, market)
  const points = simulation.snapshotTokens().map(({ mint }) => market.datapoint(mint)!)
  const olderThan = (ms: number) => points.filter(({ createdAt }) => createdAt! < START - ms)
  const differing = (values: (point: (typeof points)[number]) => unknown[], ms: number) => {
    const older = olderThan(ms)
    const count = older.filter((point) => new Set(values(point)).size === values(point).length).length
    return count / older.length
  }
  // A quiet token has the same in all windows, but those that are traded do not.
  expect(differing((point) => [point.volume6h, point.volume24h], 6 * HOUR)).toBeGreaterThan(0.5)
  expect(differing((point) => [point.volume1h, point.volume6h], HOUR)).toBeGreaterThan(0.2)
  expect(differing((point) => [point.priceChange6h, point.priceChange24h], 24 * HOUR)).toBeGreaterThan(0.4)
  // Who was launched within six hours, by far, has traded as much in six as in a day.
  for (const { createdAt, volume6h, volume24h } of points)
    if (createdAt! > START - 5.5 * HOUR) expect(volume6h).toBeCloseTo(volume24h!, 4)
})
