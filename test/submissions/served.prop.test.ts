// An honest agent: it submits what the server served, unchanged, at any moment of the five minutes in which it may.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Market } from '../../src/market/market.ts'
import { SNAPSHOT_FIELDS } from '../../src/schema/datapoint.ts'
import type { MarketEvent } from '../../src/schema/event.ts'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import { SubmissionError } from '../../src/submissions/errors.ts'
import { Evaluator } from '../../src/submissions/evaluator.ts'
import { Cooldowns } from '../../src/submissions/rate-limits/cooldowns.ts'
import { fewAndMany } from '../support/cases.ts'
import { quant, SUMMARY } from '../support/submission.ts'

const MINTS = ['one', 'two', 'three'].map(mintOfSymbol)
const QUARTER_MS = 900_000
const DAY_MS = 86_400_000
/** A moment at which the 24-hour window moves. */
const START_MS = Math.floor(1_772_000_000_000 / QUARTER_MS) * QUARTER_MS
const AGE_MS_MAX = 300_000

/** What the server has served: the values by which submissions are compared, and when they were true. */
type Served = Record<string, number | null> & { snapshotAt: number }

class HonestAgent {
  market: Market
  #served: { mint: string; snapshot: Served; isEvicted?: boolean }[] = []

  constructor(market: Market) {
    this.market = market
  }

  /** Reads the DataPoint of every token that is held, and forgets those that are too old. */
  read(): void {
    this.#served = this.#served.filter(({ snapshot }) => this.#isYoung(snapshot))
    for (const mint of MINTS) {
      const text = this.market.datapointJson(mint)
      if (text === null) {
        // It left in the millisecond in which it was served.
        for (const served of this.#served)
          if (served.mint === mint && served.snapshot.snapshotAt === this.market.timeMs)
            served.isEvicted = true
        continue
      }
      const datapoint = JSON.parse(text.json.toString())
      const values = SNAPSHOT_FIELDS.map((field) => [field, datapoint[field]])
      this.#served.push({
        mint,
        snapshot: { ...Object.fromEntries(values), snapshotAt: datapoint.snapshotAt },
      })
    }
  }

  /** The server starts again, a millisecond later. Only the process that served a version in the millisecond in which it ended knows of it. */
  restart(market: Market): void {
    this.market = market
    const whole = this.#served.filter(({ isEvicted }) => !isEvicted)
    const last = new Map(whole.map((served) => [`${served.mint} ${served.snapshot.snapshotAt}`, served]))
    this.#served = [...last.values()]
  }

  /** Submits all that may still be submitted. @returns those that deviate */
  refused(): object[] {
    const { market } = this
    const evaluator = new Evaluator({
      market,
      cooldowns: new Cooldowns(0),
      random: () => 0.5,
      marketMs: () => market.timeMs,
      machineMs: () => market.timeMs,
      recordedTime: true,
    })
    const now = { wallMs: market.timeMs, monotonicMs: 0 }
    return this.#served.flatMap(({ mint, snapshot }) => {
      if (!market.has(mint) || !this.#isYoung(snapshot)) return []
      const sent = Object.fromEntries(Object.entries(snapshot).filter(([, value]) => value !== null))
      const body = { mint, sentiment: 'bullish', score: 50, summary: SUMMARY, quant, snapshot: sent }
      try {
        const { deviation } = evaluator.evaluate('agent', Buffer.from(JSON.stringify(body)), now)
        return deviation.deviationPct < 1e-6 ? [] : [{ mint, snapshot, deviation, atMs: market.timeMs }]
      } catch (error) {
        // Of a token whose values were all set to unknown: neither a strike nor a verdict.
        if (error instanceof SubmissionError && error.code === 'datapoint_unavailable') return []
        throw error
      }
    })
  }

  #isYoung({ snapshotAt }: Served): boolean {
    return this.market.timeMs - snapshotAt <= AGE_MS_MAX
  }
}

const replaced = (market: Market, options: object): Market => {
  const sections = new Map(Array.from(market.save(), ({ name, bytes }) => [name, Buffer.from(bytes)]))
  return Market.restore(options, (name) => sections.get(name) ?? null)
}

const mint = fc.oneof({ weight: 3, arbitrary: fc.constant(MINTS[0]) }, fc.constantFrom(...MINTS))
/** Often just before and after a window moves, and after the length of one. */
const step = fc.oneof(
  { weight: 3, arbitrary: fc.constant({ byMs: 0 }) },
  { weight: 4, arbitrary: fc.record({ byMs: fc.integer({ min: 1, max: 200_000 }) }) },
  { weight: 4, arbitrary: fc.record({ toQuarterMs: fc.constantFrom(-60_000, -1, 0, 1, 7_000) }) },
  {
    weight: 2,
    arbitrary: fc.record({ byMs: fc.constantFrom(DAY_MS - QUARTER_MS, DAY_MS - 300_000, DAY_MS) }),
  },
)
const amount = fc.constantFrom(0.001, 1, 1_000, 1e9)
const maybe = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { freq: 4 })
const trade = fc.record({
  type: fc.constant('trade'),
  mint,
  side: fc.constantFrom('buy', 'sell'),
  tokenAmount: amount,
  priceUsd: fc.constantFrom(0.01, 1, 100),
})
const patch = fc.record({
  type: fc.constant('patch'),
  mint,
  fields: fc.record(
    {
      volume24h: maybe(amount),
      buys24h: maybe(fc.constantFrom(0, 5, 5_000)),
      sells24h: maybe(fc.constantFrom(0, 5, 5_000)),
      priceUsd: maybe(amount),
      marketCap: maybe(amount),
      liquidity: maybe(amount),
      holderCount: maybe(fc.constantFrom(0, 9, 9_000)),
      top10HolderPct: maybe(fc.nat(100)),
      bondingProgress: maybe(fc.nat(100)),
    },
    { requiredKeys: [] },
  ),
})
const act = fc.record({
  step,
  payload: fc.option(
    fc.oneof(
      { weight: 4, arbitrary: trade },
      { weight: 3, arbitrary: patch },
      fc.record({ type: fc.constant('graduated'), mint }),
    ),
    { freq: 4 },
  ),
  isSaved: fc.nat(9).map((chance) => chance === 0),
})

function nextMs(nowMs: number, by: { byMs?: number; toQuarterMs?: number }): number {
  const { byMs = 0, toQuarterMs } = by
  if (toQuarterMs === undefined) return nowMs + byMs
  const quarterMs = Math.ceil((nowMs + 1 - toQuarterMs) / QUARTER_MS) * QUARTER_MS
  return quarterMs + toQuarterMs
}

describe('what was served within five minutes, submitted unchanged, deviates by nothing', () => {
  // With fewer places than tokens, some are evicted and come back.
  const settings = [
    { tokensMax: 3, title: 'of tokens that are held' },
    { tokensMax: 2, title: 'of tokens that are evicted and come back' },
  ]
  for (const { tokensMax, title } of settings)
    for (const { runs, tags } of fewAndMany(20, 400))
      it(`${title}: ${runs} runs`, { tags }, () => {
        const options = { tokensMax, changeLogEntriesMax: 1_024, versionsMax: 65_536 }
        fc.assert(
          fc.property(fc.array(act, { minLength: 5, maxLength: 40 }), (acts) => {
            const agent = new HonestAgent(new Market(options))
            let nowMs = START_MS
            for (const { step, payload, isSaved } of acts) {
              nowMs = nextMs(nowMs, step)
              if (payload === null) agent.market.advanceTo(nowMs)
              else agent.market.apply({ ts: nowMs, ...payload } as unknown as MarketEvent, nowMs)
              agent.read()
              if (isSaved) {
                agent.restart(replaced(agent.market, options))
                nowMs++
              }
              expect(agent.refused()).toEqual([])
            }
          }),
          { numRuns: runs },
        )
      })

  it('of a token whose oldest bars are lost to others', () => {
    const agent = new HonestAgent(new Market({ tokensMax: 900, changeLogEntriesMax: 1_024 }))
    const [silent] = MINTS
    const others = Array.from({ length: 890 }, (_, index) => mintOfSymbol(`other ${index}`))
    const trade = (mint: string, ts: number) => {
      const event = { type: 'trade', mint, ts, side: 'buy', tokenAmount: 1_000, priceUsd: 1 } as const
      agent.market.apply(event, ts)
    }
    const sold = new Set<number | null | undefined>()
    for (let quarter = 0; quarter < 90; quarter++) {
      const startMs = START_MS + quarter * QUARTER_MS
      for (const mint of quarter < 10 ? [...others, silent ?? ''] : others) trade(mint, startMs + 1_000)
      agent.market.advanceTo(startMs + 60_000)
      expect(agent.refused()).toEqual([])
      agent.market.advanceTo(startMs + QUARTER_MS - 60_000)
      agent.read()
      sold.add(agent.market.snapshot(silent ?? '')?.volume24h)
    }
    expect(agent.market.stats().barsReclaimed).toBeGreaterThan(0)
    expect(sold).toContain(2_000)
  })
})
