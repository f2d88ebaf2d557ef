// What a market of a simulated chain shows beside one that nothing has happened to.
import { expect } from 'vitest'
import { TIMEFRAME_MS, TIMEFRAMES } from '../../../src/schema/bar.ts'
import { hotOrder, type SimulatedMarket, shownOf, tradesOf } from './simulated-market.ts'

const DIFFERENCES_SHOWN_MAX = 5

/** Whether something from a time to before another one is told as missing. */
export type IsMissing = (fromMs: number, beforeMs: number) => boolean

/** What is told as missing since a time. */
export function missingSince({ market, chain }: SimulatedMarket, sinceMs: number) {
  const parts = market.gaps(1_000).ended.filter(({ fromMs }) => fromMs > sinceMs)
  const isMissing: IsMissing = (fromMs, beforeMs) =>
    parts.some((part) => (part.toMs ?? chain.nowMs) >= fromMs && part.fromMs < beforeMs)
  return { parts, isMissing }
}

/** What differs between two markets. */
export function differences(
  market: SimulatedMarket,
  whole: SimulatedMarket,
  mints: readonly string[] = [],
): string[] {
  const wrong: string[] = []
  for (const mint of [...whole.chain.tokens.map((token) => token.mint), ...mints]) {
    if (!whole.market.has(mint) || wrong.length >= DIFFERENCES_SHOWN_MAX) continue
    const [shown, told] = [shownOf(market.market, mint), shownOf(whole.market, mint)]
    if (JSON.stringify(shown) !== JSON.stringify(told)) wrong.push(firstDifference(shown, told, mint))
  }
  return wrong
}

function firstDifference(shown: unknown, told: unknown, path: string): string {
  if (typeof shown === 'object' && typeof told === 'object' && shown !== null && told !== null)
    for (const key of new Set([...Object.keys(told), ...Object.keys(shown)])) {
      const [a, b] = [Object(shown)[key], Object(told)[key]]
      if (JSON.stringify(a) !== JSON.stringify(b)) return firstDifference(a, b, `${path}.${key}`)
    }
  return `${path}: ${JSON.stringify(shown)} instead of ${JSON.stringify(told)}`
}

export function expectEqual(market: SimulatedMarket, whole: SimulatedMarket): void {
  expect(market.rejections).toEqual(whole.rejections)
  expect(market.healing).toMatchObject({ now: null, missing: [] })
  expect(market.feed?.describe().untold).toMatchObject({ sum: 0 })
  const [trades, told] = [tradesOf(market), tradesOf(whole)]
  expect(trades.length).toBe(told.length)
  for (const [at, trade] of told.entries()) if (trades[at].tx !== trade.tx) expect(trades[at]).toEqual(trade)
  expect(trades).toEqual(told)
  expect(differences(market, whole)).toEqual([])
  expect(hotOrder(market.market)).toEqual(hotOrder(whole.market))
}

/** Every trade is there as it was told, or its time is told as missing. */
export function expectTold(market: SimulatedMarket, whole: SimulatedMarket, isMissing: IsMissing): void {
  const key = ({ tx, eventIndex }: { tx?: unknown; eventIndex?: unknown }) => `${tx}:${eventIndex}`
  const had = new Map(tradesOf(market).map((trade) => [key(trade), trade]))
  const lost: number[] = []
  for (const trade of tradesOf(whole))
    if (had.has(key(trade))) expect(had.get(key(trade))).toEqual(trade)
    else lost.push(trade.ts)
  expect(lost.filter((ts) => !isMissing(ts, ts + 1)).slice(0, DIFFERENCES_SHOWN_MAX)).toEqual([])
  expect(market.feed?.describe().untold).toMatchObject({ sum: 0 })
  expect(lost.length).toBeGreaterThan(100)
  expect(had.size + lost.length).toBe(tradesOf(whole).length)
}

/** Bars that differ although nothing of them is missing. */
export function wrongBars(
  { market }: SimulatedMarket,
  whole: SimulatedMarket,
  isMissing: IsMissing,
): string[] {
  const wrong: string[] = []
  for (const { mint } of whole.chain.tokens) {
    if (!whole.market.has(mint)) continue
    for (const tf of TIMEFRAMES) {
      const query = { mint, tf, limit: 10_000, fromMs: null, toMs: null, fill: 'none' } as const
      const bars = market.bars(query)?.bars ?? []
      for (const told of whole.market.bars(query)?.bars ?? []) {
        const bar = bars.find(({ t }) => t === told.t)
        if (isMissing(told.t, told.t + TIMEFRAME_MS[tf])) continue
        if (JSON.stringify(bar) !== JSON.stringify(told))
          wrong.push(firstDifference(bar, told, `${mint} ${tf}`))
      }
    }
  }
  return wrong.slice(0, DIFFERENCES_SHOWN_MAX)
}
