import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { WINDOWS } from '../../src/market/bars/limits.ts'
import { Market } from '../../src/market/market.ts'
import { type Bar, TIMEFRAME_MS, TIMEFRAMES } from '../../src/schema/bar.ts'
import { SNAPSHOT_FIELDS, type SnapshotValues } from '../../src/schema/datapoint.ts'
import type { MarketEvent } from '../../src/schema/event.ts'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import { SORTS, TABS } from '../../src/schema/vocabulary.ts'
import { Oracle } from './oracle.ts'

const MINTS = ['one', 'two', 'three', 'four'].map(mintOfSymbol)
const START_MS = 1_772_000_000_000
const NEW_WINDOW_MS = 3_600_000
const RUNS = { numRuns: 40 }

const mint = fc.constantFrom(...MINTS)
/** Mostly small steps, sometimes across a silence, a window, a day. */
const step = fc.oneof(
  { weight: 4, arbitrary: fc.constant(0) },
  { weight: 8, arbitrary: fc.integer({ min: 0, max: 1_500 }) },
  { weight: 3, arbitrary: fc.integer({ min: 0, max: 90_000 }) },
  { weight: 1, arbitrary: fc.constantFrom(300_000, 900_000, 3_600_000, 21_600_000, 86_400_000) },
)
const lateness = fc.oneof(
  { weight: 4, arbitrary: fc.constant(0) },
  { weight: 2, arbitrary: fc.integer({ min: 0, max: 6_000 }) },
  { weight: 1, arbitrary: fc.integer({ min: -20_000, max: 60_000 }) },
)
const price = fc.constantFrom(4.5e-9, 1e-6, 0.25, 0.5, 1, 2, 3, 1000)
const payload = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      type: fc.constant('trade' as const),
      mint,
      side: fc.constantFrom('buy' as const, 'sell' as const),
      tokenAmount: fc.integer({ min: 0, max: 1000 }),
      priceUsd: price,
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      type: fc.constant('token' as const),
      mint,
      name: fc.string({ maxLength: 8 }),
      symbol: fc.constant('S'),
      totalSupply: fc.constant(1_000_000),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      type: fc.constant('patch' as const),
      mint,
      fields: fc.record(
        {
          holderCount: fc.option(fc.nat(1000)),
          liquidity: fc.option(fc.nat(1000)),
          top10HolderPct: fc.option(fc.nat(100)),
        },
        { requiredKeys: [] },
      ),
    }),
  },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('graduated' as const), mint }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('live' as const), mint, isLive: fc.boolean() }) },
)
const sequence = fc.array(fc.record({ step, lateness, payload }), { minLength: 1, maxLength: 60 })

function run(steps: { step: number; lateness: number; payload: object }[]): {
  market: Market
  oracle: Oracle
} {
  const market = new Market({ tokensMax: 8, newWindowMs: NEW_WINDOW_MS, changeLogEntriesMax: 4_096 })
  const oracle = new Oracle(NEW_WINDOW_MS)
  let atMs = START_MS
  for (const { step, lateness, payload } of steps) {
    atMs += step
    const event = { ...payload, ts: atMs - lateness } as MarketEvent
    market.apply(event, atMs)
    oracle.log.push({ event, atMs })
  }
  return { market, oracle }
}

const close = (actual: number | null, expected: number | null): boolean =>
  actual === expected ||
  (actual !== null &&
    expected !== null &&
    Math.abs(actual - expected) <= 1e-9 * Math.max(Math.abs(actual), Math.abs(expected)))

function expectSnapshot(actual: SnapshotValues | null, expected: SnapshotValues | null): void {
  if (actual === null || expected === null) {
    expect(actual).toEqual(expected)
    return
  }
  for (const field of SNAPSHOT_FIELDS) {
    if (!close(actual[field], expected[field])) expect(actual).toEqual(expected)
  }
}

function expectBars(actual: Bar[], expected: Bar[]): void {
  const same =
    actual.length === expected.length &&
    actual.every((bar, index) => {
      const other = expected[index]
      return (
        bar.t === other.t &&
        bar.o === other.o &&
        bar.h === other.h &&
        bar.l === other.l &&
        bar.c === other.c &&
        bar.n === other.n &&
        bar.closed === other.closed &&
        close(bar.v, other.v)
      )
    })
  if (!same) expect(actual).toEqual(expected)
}

describe('after any sequence of events', () => {
  it('every bar equals a grouping of the accepted trades', () => {
    fc.assert(
      fc.property(sequence, (steps) => {
        const { market, oracle } = run(steps)
        expect(market.stats().lateDropped).toBe(oracle.late())
        for (const mint of oracle.mints()) {
          for (const tf of TIMEFRAMES) {
            const answer = market.bars({ mint, tf, limit: 1_000, fromMs: null, toMs: null, fill: 'none' })!
            expectBars(answer.bars, oracle.bars(mint, tf, market.timeMs))
          }
        }
      }),
      RUNS,
    )
  })

  it('the windows and the compared values equal a recomputation from the events', () => {
    fc.assert(
      fc.property(sequence, fc.nat(200_000), (steps, pause) => {
        const { market, oracle } = run(steps)
        market.advanceTo(market.timeMs + pause)
        for (const mint of oracle.mints()) {
          expectSnapshot(market.snapshot(mint), oracle.snapshot(mint, market.timeMs))
          const datapoint = market.datapoint(mint)!
          for (const [name, { lengthMs, timeframe }] of Object.entries(WINDOWS)) {
            const expected = oracle.volume(mint, lengthMs, TIMEFRAME_MS[timeframe], market.timeMs)
            const actual = datapoint[`volume${name}` as 'volume1m']
            if (!close(actual, expected)) expect([mint, name, actual]).toEqual([mint, name, expected])
          }
          const served = JSON.parse(market.datapointJson(mint)!.json.toString())
          // It is as of the moment within this second when it became true.
          const { snapshotAt } = served
          expect(snapshotAt).toBeLessThanOrEqual(market.timeMs)
          expect(snapshotAt).toBeGreaterThanOrEqual(market.timeMs - (market.timeMs % 1_000))
          expectSnapshot(market.versionsAt(mint, snapshotAt)[0] ?? null, market.snapshot(mint))
          // Figures of the market's own trades, which have no other source here, are of the same moment.
          const enrichedAt = datapoint.enriched_at === null ? null : snapshotAt
          const enrichedFrom = datapoint.enrichedFrom?.map((part) => ({ ...part, at: snapshotAt })) ?? null
          const expected = { ...datapoint, snapshotAt, enriched_at: enrichedAt, enrichedFrom }
          expect(served).toEqual(JSON.parse(JSON.stringify(expected)))
        }
      }),
      RUNS,
    )
  })

  it('the version of a time equals a linear search for every moment of the last five minutes', () => {
    fc.assert(
      fc.property(sequence, fc.array(fc.nat(300_000), { minLength: 1, maxLength: 10 }), (steps, ages) => {
        const { market, oracle } = run(steps)
        const moments = [...ages.map((age) => market.timeMs - age), ...oracle.log.map(({ atMs }) => atMs)]
        for (const mint of oracle.mints()) {
          for (const moment of moments) {
            if (moment < market.timeMs - 300_000) continue
            expectSnapshot(market.versionsAt(mint, moment)[0] ?? null, oracle.snapshot(mint, moment))
          }
        }
      }),
      RUNS,
    )
  })

  it('every tab in every order equals a filter and a sort, and its rows are the items', () => {
    fc.assert(
      fc.property(sequence, fc.nat(5), fc.integer({ min: 1, max: 5 }), (steps, offset, limit) => {
        const { market, oracle } = run(steps)
        for (const tab of TABS) {
          for (const sort of SORTS) {
            const expected = oracle.tab(tab, market.timeMs).toSorted((a, b) => {
              const difference = oracle.key(b, sort, market.timeMs) - oracle.key(a, sort, market.timeMs)
              return Number.isNaN(difference) || difference === 0 ? (a < b ? -1 : 1) : difference
            })
            for (const order of ['desc', 'asc'] as const) {
              const page = market.page({ tab, sort, order, offset, limit })
              const rows = page.ndjson.toString().split('\n').slice(0, -1)
              const mints = rows.map((row) => JSON.parse(row).mint)
              const isKnown = (mint: string) =>
                oracle.key(mint, sort, market.timeMs) !== Number.NEGATIVE_INFINITY
              const up = [
                ...expected.filter(isKnown).toReversed(),
                ...expected.filter((mint) => !isKnown(mint)),
              ]
              const list = order === 'desc' ? expected : up
              const wanted = list.slice(offset, offset + limit)
              // Sums of volumes, and changes, that differ by rounding only may stand in either order.
              const keys = (of: string[]) => of.map((mint) => oracle.key(mint, sort, market.timeMs))
              const rounding = keys(mints).every(
                (key, index) => key === keys(wanted)[index] || close(key, keys(wanted)[index]),
              )
              if (!(/^(hot|volume|change)/.test(sort) && rounding)) expect(mints).toEqual(wanted)
              expect(page.total).toBe(expected.length)
              for (const row of rows) expect(row).toBe(JSON.stringify(market.item(JSON.parse(row).mint)))
            }
          }
        }
      }),
      RUNS,
    )
  })
})
