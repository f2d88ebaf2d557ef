// @module-tag drill
// A market through outages, deaths of its process, duplicates, disorder and truncated logs is that of a market that had none of them.
// MINTLAKE_TEST_CHAIN_MINUTES=60 runs the hour of 10 000 tokens and 500 transactions a second.
import { beforeAll, describe, expect, it } from 'vitest'
import { random as seeded } from '../../../bench/datasets/random.ts'
import { Teller } from '../../support/chain/market-tape.ts'
import type { Outage } from '../../support/chain/simulated-chain.ts'
import { expectEqual, expectTold, type IsMissing, missingSince, wrongBars } from './same-market.ts'
import { type RunOptions, runMarket, type SimulatedMarket, tradesOf } from './simulated-market.ts'

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
const TIMEOUT_MS = MINUTES === undefined ? 60_000 : 7_200_000
const REFUSED = { ok: false, fault: 'refused', message: 'no such method', code: -32_601 } as const

/** Outages of 1 to 60 s, spread over the run; every third ends a connection without a word. */
function outages(seed: number): Outage[] {
  const random = seeded(seed)
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

describe('a market of the chain', { timeout: TIMEOUT_MS }, () => {
  let whole: SimulatedMarket
  beforeAll(async () => {
    whole = await run()
  }, TIMEOUT_MS)

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
    const { parts, isMissing } = missingSince(market, START_MS + 10_000)
    expect(new Set(parts.map(({ reason }) => reason))).toEqual(new Set(['refused']))
    const had = new Set(tradesOf(market).map(({ tx, eventIndex }) => `${tx}:${eventIndex}`))
    const lost = tradesOf(whole).filter(({ tx, eventIndex }) => !had.has(`${tx}:${eventIndex}`))
    expect(lost.length).toBeGreaterThan(50)
    expect(lost.filter(({ ts }) => !isMissing(ts, ts + 1)).map(({ ts }) => ts - START_MS)).toEqual([])
  })

  // Of 5 the first of two trades of one second comes later, and behind what is missing.
  it.each([3, 4, 5, 6])(
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
    const { parts, isMissing } = missingSince(market, START_MS + 10_000)
    expect(new Set(parts.map((part) => part.reason))).toEqual(new Set([reason]))
    expectTold(market, whole, isMissing)
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
    const { parts, isMissing } = missingSince(market, START_MS + 10_000)
    expectTold(market, whole, isMissing)
    expect(wrongBars(market, whole, isMissing)).toEqual([])
    // What was known to be missing is told, not the whole of the gap with its downtime.
    expect(new Set(parts.map(({ reason }) => reason))).toEqual(new Set(['refused']))
  })
})

/** A market with too small a budget, and which times are told as missing. */
async function runShort(seed: number): Promise<{ market: SimulatedMarket; isMissing: IsMissing }> {
  const market = await run({ outages: outages(seed), requestsPerSecond: 5, healMs: 8_000 })
  // Of the start all runs have the same.
  const { parts, isMissing } = missingSince(market, START_MS + 10_000)
  expect(parts.length).toBeGreaterThan(2)
  const reasons = new Set(parts.map(({ reason }) => reason))
  expect(reasons.has('budget') && reasons.has('too_long')).toBe(true)
  return { market, isMissing }
}
