// Closed bars of a minute or longer are emitted once each and complete, whenever `emitClosedBars` is called and however late the
// token's next trade comes.
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { Market } from '../../src/market/market.ts'
import { LATE_GRACE_MS, SILENCE_MS } from '../../src/market/time/limits.ts'
import { type Bar, TIMEFRAME_MS, TIMEFRAMES } from '../../src/schema/bar.ts'
import { mintOfSymbol } from '../../src/schema/mint.ts'

const MINTS = ['one', 'two', 'three'].map(mintOfSymbol)
const START_MS = 1_772_000_000_000
const BARS_MAX = 1_000

const step = fc.oneof(
  { weight: 8, arbitrary: fc.integer({ min: 0, max: 2_000 }) },
  { weight: 4, arbitrary: fc.integer({ min: 0, max: 90_000 }) },
  { weight: 1, arbitrary: fc.constantFrom(300_000, 3_600_000, 21_600_000, 86_400_000) },
)
const action = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('trade' as const),
      step,
      mint: fc.constantFrom(...MINTS),
      lateMs: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 8_000 }), fc.constant(100_000)),
      // Sums of such numbers depend on their order.
      price: fc.constantFrom(0.1, 1 / 3, 2, 3.7),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('sweep' as const),
      step,
      tokens: fc.integer({ min: 1, max: 3 }),
    }),
  },
)

type EmittedBar = Bar & { key: string; buys: number; buyVolume: number }

function watched() {
  const emitted: EmittedBar[] = []
  const market = new Market({
    tokensMax: 8,
    barsPerTokenMax: BARS_MAX,
    // Small, since there are many such markets.
    changeLogEntriesMax: 1_024,
    onBarClosed({ mint, tf, t, o, h, l, c, v, n, buys, buyV }) {
      emitted.push({ key: `${mint} ${tf} ${t}`, t, o, h, l, c, v, n, closed: true, buys, buyVolume: buyV })
    },
  })
  return { market, emitted }
}

it('every closed bar of a minute or longer is emitted once, as readers see it', () => {
  fc.assert(
    fc.property(fc.array(action, { maxLength: 40 }), (actions) => {
      const { market, emitted } = watched()
      let nowMs = START_MS
      for (const each of actions) {
        nowMs += each.step
        market.advanceTo(nowMs)
        if (each.kind === 'sweep') market.emitClosedBars(each.tokens)
        else {
          const { mint, price: priceUsd, lateMs } = each
          const trade = {
            type: 'trade',
            mint,
            ts: nowMs - lateMs,
            side: 'buy',
            tokenAmount: 2,
            priceUsd,
          } as const
          market.apply(trade, nowMs)
        }
      }
      // The first call ends a round under way, the second is one of all tokens.
      for (let round = 0; round < 2; round++) market.emitClosedBars(MINTS.length)
      expect(market.barsEmittedToMs).toBe(market.timeMs - SILENCE_MS - LATE_GRACE_MS)
      const expected = MINTS.flatMap((mint) =>
        TIMEFRAMES.filter((tf) => TIMEFRAME_MS[tf] >= 60_000).flatMap((tf) => {
          const found = market.bars({ mint, tf, limit: BARS_MAX, fromMs: null, toMs: null, fill: 'none' })
          return (found?.bars ?? [])
            .filter(({ closed }) => closed)
            .map((bar) => ({ key: `${mint} ${tf} ${bar.t}`, ...bar, buys: bar.n, buyVolume: bar.v }))
        }),
      )
      const byKey = (a: { key: string }, b: { key: string }) => (a.key < b.key ? -1 : 1)
      expect(emitted.sort(byKey)).toEqual(expected.sort(byKey))
    }),
    { numRuns: 60 },
  )
})

it('the last bars of a silent token are emitted when the market’s time has passed their end', () => {
  const { market, emitted } = watched()
  const ts = START_MS - (START_MS % 60_000)
  market.apply({ type: 'trade', mint: MINTS[0], ts, side: 'sell', tokenAmount: 2, priceUsd: 3 }, ts)
  market.advanceTo(ts + 60_000 + LATE_GRACE_MS - 1)
  market.emitClosedBars(8)
  expect(emitted).toEqual([])
  market.advanceTo(ts + 60_000 + LATE_GRACE_MS)
  market.emitClosedBars(8)
  expect(emitted).toMatchObject([{ key: `${MINTS[0]} 1m ${ts}`, c: 3, v: 6, n: 1, buys: 0, buyVolume: 0 }])
  expect(market.barsEmittedToMs).toBe(ts + 60_000 - SILENCE_MS)
})

it('a closed bar does not change by the last digit when a later trade folds it', () => {
  const { market, emitted } = watched()
  const noonMs = START_MS - (START_MS % 86_400_000) + 43_200_000
  const trade = (ts: number, priceUsd: number) =>
    market.apply({ type: 'trade', mint: MINTS[0], ts, side: 'buy', tokenAmount: 1, priceUsd }, ts)
  // The sum of these depends on which two are added first.
  trade(noonMs, 0.1)
  trade(noonMs + 60_000, 0.2)
  trade(noonMs + 61_000, 0.3)
  market.advanceTo(noonMs + 600_000)
  const fiveMinutes = () =>
    market.bars({ mint: MINTS[0], tf: '5m', limit: BARS_MAX, fromMs: null, toMs: null, fill: 'none' })
      ?.bars[0]
  const before = fiveMinutes()
  expect(before).toMatchObject({ t: noonMs, n: 3, closed: true })
  market.emitClosedBars(8)
  trade(noonMs + 86_400_000, 1)
  trade(noonMs + 2 * 86_400_000, 1)
  expect(fiveMinutes()).toEqual(before)
  expect(emitted.find(({ key }) => key.includes(' 5m '))?.v).toBe(before?.v)
})

it('the closed bars of a token are emitted before it is evicted', () => {
  const { market, emitted } = watched()
  const ts = START_MS - (START_MS % 60_000)
  for (let i = 0; i < 9; i++) {
    const mint = mintOfSymbol(`t${i}`)
    market.apply(
      { type: 'trade', mint, ts: ts + i * 60_000, side: 'buy', tokenAmount: 1, priceUsd: 1 },
      ts + i * 60_000,
    )
  }
  expect(emitted.map(({ key }) => key)).toContain(`${mintOfSymbol('t0')} 1m ${ts}`)
})
