// @module-tag drill
// A market through outages, deaths of its process, duplicates, disorder and truncated logs is that of a market that had none of them.
// MINTLAKE_TEST_CHAIN_MINUTES=60 runs the hour of 10 000 tokens and 500 transactions a second.
import { beforeAll, describe, expect, it } from 'vitest'
import { TIMEFRAME_MS, TIMEFRAMES } from '../../../src/schema/bar.ts'
import { Teller } from '../../support/chain/market-tape.ts'
import type { Outage } from '../../support/chain/simulated-chain.ts'
import { randomOf } from '../../support/chain/world.ts'
import {
  hotOrder,
  type RunOptions,
  runMarket,
  type SimulatedMarket,
  shownOf,
  tradesOf,
} from './simulated-market.ts'

const MINUTES = process.env.MINTLAKE_TEST_CHAIN_MINUTES
const START_MS = Date.UTC(2026, 10, 1, 12, 59, 7)
const TAPE = {
  ...{ seed: 35, startMs: START_MS, isSolConstant: true },
  ...(MINUTES === undefined
    ? { minutes: 10, perSecond: 12, launches: 0.02, truncated: 0.02 }
    : { minutes: Number(MINUTES), perSecond: 500, launches: 10_000 / 1_800_000, truncated: 0.005 }),
}
const END_MS = START_MS + TAPE.minutes * 60_000 - 15_000
const OUTAGES = 20
const DIFFERENCES_SHOWN_MAX = 5
const REFUSED = { ok: false, fault: 'refused', message: 'no such method', code: -32_601 } as const

/** Outages of 1 to 60 s, spread over the run; every third ends a connection without a word. */
function outages(seed: number): Outage[] {
  const random = randomOf(seed)
  const spacingMs = (END_MS - START_MS - 90_000) / OUTAGES
  return Array.from({ length: OUTAGES }, (_, index) => {
    const fromMs = Math.round(START_MS + 30_000 + index * spacingMs + (random() * spacingMs) / 4)
    const lengthMs = 1_000 + Math.round(random() ** 2 * Math.min(59_000, spacingMs / 2))
    return {
      fromMs,
      toMs: fromMs + lengthMs,
      ...(index % 3 === 2 && { silentMs: Math.min(1_500, lengthMs) }),
    }
  })
}

const run = (more: Partial<RunOptions> = {}): Promise<SimulatedMarket> =>
  runMarket({ teller: new Teller(TAPE), requestsPerSecond: 100, endMs: END_MS, healMs: 600_000, ...more })

/** What differs between two markets. */
function differences(market: SimulatedMarket, whole: SimulatedMarket): string[] {
  const wrong: string[] = []
  for (const { mint } of whole.chain.tokens) {
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

function expectEqual(market: SimulatedMarket, whole: SimulatedMarket): void {
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

describe('a market of the chain', () => {
  let whole: SimulatedMarket
  beforeAll(async () => {
    whole = await run()
  }, 7_200_000)

  it('with twenty outages and two deaths of its process is the same as without', async () => {
    const cut = outages(1)
    const turns: RunOptions['turns'] = [
      // Beside an outage, and while one is made up for.
      { atMs: cut[6].toMs + 8_000, do: (run) => run.kill(4_000, 40) },
      { atMs: cut[12].toMs + 900, do: (run) => run.kill(7_000, 15) },
      ...cut
        .slice(0, 5)
        .flatMap(({ fromMs, toMs }) => [fromMs + 500, toMs + 700])
        .map((atMs) => ({ atMs, do: (run: SimulatedMarket) => run.checkpoint() })),
    ]
    const market = await run({ outages: cut, turns })
    expectEqual(market, whole)
    const { repeated, truncated, disordered, failed } = market.chain.counts
    expect(Math.min(repeated, truncated, disordered, failed)).toBeGreaterThan(20)
    expect(market.chain.requests).toMatchObject({ getBlock: expect.any(Number) })
  })

  it('whose endpoints give no blocks is made up for transaction by transaction', async () => {
    const market = await run({ outages: outages(2), refusals: { getBlock: REFUSED } })
    expectEqual(market, whole)
    expect(market.chain.requests.getSignaturesForAddress).toBeGreaterThan(0)
  })

  it('whose endpoints list no blocks is told soon what is missing, and has all that came meanwhile', async () => {
    const market = await run({ outages: outages(4), refusals: { getBlocks: { ok: true, result: [] } } })
    expect(market.rejections).toEqual(whole.rejections)
    const missing = market.market.gaps(1_000).ended.filter(({ fromMs }) => fromMs > START_MS + 10_000)
    expect(new Set(missing.map(({ reason }) => reason))).toEqual(new Set(['refused']))
    const had = new Set(tradesOf(market).map(({ tx, eventIndex }) => `${tx}:${eventIndex}`))
    const lost = tradesOf(whole).filter(({ tx, eventIndex }) => !had.has(`${tx}:${eventIndex}`))
    expect(lost.length).toBeGreaterThan(50)
    const isMissing = ({ ts }: { ts: number }) =>
      missing.some(({ fromMs, toMs }) => ts >= fromMs && ts <= (toMs ?? END_MS))
    expect(lost.filter((trade) => !isMissing(trade)).map(({ ts }) => ts - START_MS)).toEqual([])
  })

  // Of 5 the first of two trades of one second comes later, and behind what is missing.
  it.each([3, 4, 5])(
    'with too small a budget differs in the intervals that are told alone (%i)',
    async (seed) => {
      const { market, isMissing } = await runShort(seed)
      expectTold(market, whole, isMissing)
      expect(wrongBars(market, whole, isMissing)).toEqual([])
    },
  )

  it.each([
    ['refused', REFUSED],
    ['pruned', { ...REFUSED, message: 'cleaned up', code: -32_001 }],
    ['pruned', { ...REFUSED, message: 'skipped, or missing', code: -32_007 }],
  ] as const)('whose endpoints answer %s tells so for each outage', async (reason, answer) => {
    const refusals = { getBlock: answer, getSignaturesForAddress: answer }
    const market = await run({ outages: outages(4), refusals })
    const missing = market.market.gaps(1_000).ended.filter(({ fromMs }) => fromMs > START_MS + 10_000)
    expect(new Set(missing.map((part) => part.reason))).toEqual(new Set([reason]))
    expectTold(market, whole, (fromMs, beforeMs) =>
      missing.some((part) => (part.toMs ?? END_MS) >= fromMs && part.fromMs < beforeMs),
    )
  })

  it('whose process dies while gaps are made up for tells what was missing by then', async () => {
    const cut = outages(4)
    const refusals = { getBlock: REFUSED, getSignaturesForAddress: REFUSED }
    // While it fetches, while the end of a gap is awaited, and with the end of its record lost.
    const turns: RunOptions['turns'] = [
      { atMs: cut[5].toMs + 700, do: (run) => run.kill(2_000, 0) },
      { atMs: cut[10].toMs + 2_500, do: (run) => run.kill(4_000, 0) },
      { atMs: cut[14].toMs + 2_500, do: (run) => run.kill(1_000, 12) },
      { atMs: cut[14].toMs + 8_000, do: (run) => run.checkpoint() },
    ]
    const market = await run({ outages: cut, refusals, turns })
    const missing = market.market.gaps(1_000).ended
    const isMissing: IsMissing = (fromMs, beforeMs) =>
      missing.some((part) => (part.toMs ?? END_MS) >= fromMs && part.fromMs < beforeMs)
    expectTold(market, whole, isMissing)
    expect(wrongBars(market, whole, isMissing)).toEqual([])
    // What was known to be missing is told, not the whole of the gap with its downtime.
    expect(missing.map(({ reason }) => reason)).not.toContain('downtime')
  })
})

type IsMissing = (fromMs: number, beforeMs: number) => boolean

/** A market with too small a budget, and which times are told as missing. */
async function runShort(seed: number): Promise<{ market: SimulatedMarket; isMissing: IsMissing }> {
  const market = await run({ outages: outages(seed), requestsPerSecond: 5, healMs: 8_000 })
  // Of the start all runs have the same.
  const missing = market.market.gaps(1_000).ended.filter(({ fromMs }) => fromMs > START_MS + 10_000)
  expect(missing.length).toBeGreaterThan(2)
  const reasons = new Set(missing.map(({ reason }) => reason))
  expect(reasons.has('budget') && reasons.has('too_long')).toBe(true)
  const isMissing: IsMissing = (fromMs, beforeMs) =>
    missing.some((part) => (part.toMs ?? END_MS) >= fromMs && part.fromMs < beforeMs)
  return { market, isMissing }
}

/** Every trade is there as it was told, or its time is told as missing. */
function expectTold(market: SimulatedMarket, whole: SimulatedMarket, isMissing: IsMissing): void {
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
function wrongBars(
  { market }: SimulatedMarket,
  whole: SimulatedMarket,
  isMissing: (fromMs: number, beforeMs: number) => boolean,
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
