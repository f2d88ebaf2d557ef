// The figures of a report: what they are of calls that are known, and that nothing is said of too few.
import { expect, test } from 'vitest'
import type { Competitor } from '../../src/backtest/backtest.ts'
import { BASELINES } from '../../src/backtest/baselines.ts'
import {
  CHART_COLUMNS,
  CHART_POINTS_MAX,
  PORTFOLIO_USD,
  STAKE_USD,
  TRADE_COST,
} from '../../src/backtest/limits.ts'
import { nameProgram } from '../../src/backtest/programs.ts'
import type { Call, Said } from '../../src/backtest/report/calls.ts'
import { figuresOf, holdingHorizon, playPortfolio } from '../../src/backtest/report/figures.ts'
import { endOf, exactXp, refusedOf } from '../../src/backtest/report/format.ts'
import { pageReport } from '../../src/backtest/report/page.ts'
import { estimateMean } from '../../src/backtest/report/statistics.ts'
import { textReport } from '../../src/backtest/report/text.ts'
import { HOUR_MS, MINUTE_MS } from '../../src/lib/time.ts'

const AT_MS = 1_772_000_000_000
const HOUR = { fromMs: AT_MS, toMs: AT_MS + HOUR_MS }
const NONE = { '5m': null, '15m': null, '1h': null, '6h': null, '24h': null }
const agent: Competitor = {
  name: 'agent',
  agentId: 'a',
  end: null,
  isBaseline: false,
  words: ['node', 'x.mjs'],
  refused: {},
}

const call = (index: number, over: Partial<Call> = {}): Call => ({
  ...{
    analysisId: `an_${index}`,
    agentId: 'a',
    atMs: AT_MS + index * MINUTE_MS,
    mint: `mint ${index}`,
    name: 'Name',
  },
  ...{ symbol: 'SYM', sentiment: 'bullish', score: 70, summary: 'words', isValidated: true, deviationPct: 1 },
  ...{ priceUsd: 1, xp: 10, returns: { ...NONE, '5m': 0.1 } },
  ...over,
})
const said = (calls: Call[]): Said => ({ calls, rejected: [{ agentId: 'a', atMs: AT_MS, deviationPct: 90 }] })
const figures = (calls: Call[]) => figuresOf(agent, said(calls), HOUR, 1)

test('means, shares that came true and base rates are those of the calls', () => {
  // Twenty rise and are called so; of twenty that fall, half are called so.
  const rising = Array.from({ length: 20 }, (_, index) => call(index))
  const falling = Array.from({ length: 20 }, (_, index) =>
    call(100 + index, {
      ...{ sentiment: index < 10 ? 'bearish' : 'bullish', score: 30, returns: { ...NONE, '5m': -0.2 } },
    }),
  )
  const { groups, tooFew, ...rest } = figures([...rising, ...falling])
  expect(tooFew).toBeNull()
  const group = (label: string) => groups.find((each) => each.label === label && each.horizon === '5m')
  expect(group('bullish')).toMatchObject({
    ret: { count: 30, tokens: 30, mean: expect.closeTo(0, 12) },
    hits: { mean: 20 / 30 },
    baseRate: 0.5,
  })
  expect(group('bearish')).toMatchObject({ ret: { count: 10, mean: null }, hits: { mean: null } })
  expect(group('20–39')).toMatchObject({
    ret: { mean: expect.closeTo(-0.2, 12) },
    hits: { count: 20, mean: 0.5 },
    baseRate: 0.5,
  })
  expect(group('60–79')).toMatchObject({
    ret: { mean: expect.closeTo(0.1, 12), low: expect.closeTo(0.1, 12), high: expect.closeTo(0.1, 12) },
    hits: { mean: 1, low: 1 },
  })
  expect(rest).toMatchObject({
    submissions: 41,
    validated: 40,
    rejected: 1,
    xp: 400,
    tokens: 40,
    perHour: 41,
  })
  expect(rest.bySentiment).toEqual({ bullish: 30, bearish: 10, neutral: 0 })
  expect(rest.best[0].gain).toBe(0.2)
  expect(rest.worst[0].gain).toBe(-0.2)
  expect(rest.deviationPct).toMatchObject({ median: 1, max: 90 })
})

test('an interval draws whole tokens: many calls on few tokens are not taken for many observations', () => {
  const values = Array.from({ length: 200 }, (_, index) => ({
    token: index % 10,
    value: index % 10 < 5 ? 1 : -1,
  }))
  const few = estimateMean(
    values.map(({ token, value }) => ({ mint: `${token}`, value })),
    1,
  )
  const many = estimateMean(
    values.map(({ value }, index) => ({ mint: `${index}`, value })),
    1,
  )
  const width = ({ low, high }: typeof few) => (high ?? 0) - (low ?? 0)
  expect(width(few)).toBeGreaterThan(3 * width(many))
  expect(
    estimateMean(
      values.map(({ value }) => ({ mint: 'one', value })),
      1,
    ).mean,
  ).toBeNull()
})

test('a paper portfolio pays its costs on both sides, buys what is bullish, and knows its largest fall', () => {
  const calls = [
    call(0, { returns: { ...NONE, '5m': 0.5 } }),
    call(1, { returns: { ...NONE, '5m': -1 } }),
    call(2, { sentiment: 'bearish', returns: { ...NONE, '5m': -1 } }),
    call(3, { returns: NONE }),
  ]
  const { curve, drawdown, endUsd, purchases, turnoverPerDay } = playPortfolio(calls, '5m', 24 * HOUR_MS)
  const first = STAKE_USD * (1 - TRADE_COST) ** 2 * 1.5 - STAKE_USD
  expect(purchases).toBe(2)
  expect(endUsd).toBeCloseTo(PORTFOLIO_USD + first - STAKE_USD, 9)
  expect(drawdown).toBeCloseTo(STAKE_USD / (PORTFOLIO_USD + first), 9)
  expect(turnoverPerDay).toBeCloseTo((2 * STAKE_USD + first + STAKE_USD) / PORTFOLIO_USD, 9)
  expect(curve.map(({ atMs }) => atMs)).toEqual([AT_MS + 5 * MINUTE_MS, AT_MS + 6 * MINUTE_MS])
})

test('a paper portfolio that has lost everything has fallen by no more than that, and ends', () => {
  const calls = Array.from({ length: 200 }, (_, index) => call(index, { returns: { ...NONE, '5m': -1 } }))
  const { curve, ...rest } = playPortfolio(calls, '5m', 24 * HOUR_MS)
  const purchases = PORTFOLIO_USD / STAKE_USD
  expect(rest).toMatchObject({ drawdown: 1, endUsd: 0, purchases })
  expect(curve).toHaveLength(purchases)
})

test('of too few submissions, or too few outcomes, the report says so instead of a number', () => {
  expect(figures([call(0)])).toMatchObject({ groups: [], portfolio: null, best: [] })
  expect(figures([call(0)]).tooFew).toContain('Too few submissions')
  const unknown = Array.from({ length: 40 }, (_, index) => call(index, { returns: NONE }))
  expect(figures(unknown).tooFew).toContain('--tail-ms')
  expect(holdingHorizon(unknown)).toBeNull()
})

test('texts of strangers are text on the page, and both forms of the report have every agent', () => {
  const hostile = '<img src=x onerror=alert(1)>"&'
  const calls = Array.from({ length: 30 }, (_, index) =>
    call(index, { name: hostile, symbol: hostile, summary: hostile }),
  )
  const report = {
    market: {
      ...{ fromMs: AT_MS, toMs: AT_MS + HOUR_MS, playedToMs: AT_MS + HOUR_MS },
      simulated: false,
      notes: [],
    },
    agents: [figures(calls), figuresOf({ ...agent, agentId: 'b', name: hostile }, said([]), HOUR, 1)],
    run: {
      ...{ steps: 1, stepsCut: 0, stepsMet: 0, stepsInTurn: 0, playedMs: 1, speed: 1, events: 1 },
      sentence: 'none.',
    },
  }
  const page = pageReport(report)
  expect(page).not.toContain('<img')
  expect(page).toContain('&#60;img src=x')
  expect(page).toContain('https://solscan.io/token/mint%200')
  expect(page).toContain("default-src 'none'")
  expect(page.match(/<svg/g)).toHaveLength(6)
  const codes = '\u001b[31mred\u009b0m'
  const text = textReport({
    ...report,
    agents: report.agents.map((each) => ({
      ...each,
      name: codes,
      best: each.best.map((of) => ({ ...of, symbol: codes })),
    })),
  })
  expect(text).toContain(' [31mred 0m')
  expect(text.replaceAll('\n', '')).not.toMatch(/\p{C}/u)
  expect(text).toContain('+10.0 % [+10.0 %, +10.0 %]')
  expect(text).toContain('Too few submissions')
})

test('a report of very many calls and agents is one that can be opened, and counts each of them', () => {
  const count = 150_000
  const many = Array.from({ length: count }, (_, index) =>
    call(index, { atMs: AT_MS + index * 20, mint: `mint ${index % 20}`, returns: { ...NONE, '5m': 0.1 } }),
  )
  const busy = figures(many)
  expect(busy.xpCurve.length).toBeLessThanOrEqual(CHART_POINTS_MAX)
  expect(busy.xpCurve.at(-1)).toMatchObject({ xp: 10 * count })
  expect(busy.portfolio?.curve.at(-1)?.usd).toBe(busy.portfolio?.endUsd)
  expect(busy.outcomeCounts.reduce((sum, { validated }) => sum + validated, 0)).toBe(count)
  expect(busy.outcomeCounts).toHaveLength(CHART_COLUMNS)
  const others = Array.from({ length: 50 }, (_, index) => ({ ...busy, name: `agent ${index}` }))
  const report = {
    market: { ...HOUR, playedToMs: HOUR.toMs, simulated: false, notes: [] },
    agents: others,
    run: {
      ...{ steps: 1, stepsCut: 0, stepsMet: 0, stepsInTurn: 0, playedMs: 1, speed: 1, events: 1 },
      sentence: 'none.',
    },
  }
  const page = pageReport(report)
  expect(page.length).toBeLessThan(3_000_000)
  for (const form of [page, textReport(report)]) {
    expect(form).toContain('agent 49')
    expect(form).toContain('Figures of the other 30 agents are in report.json.')
  }
})

test('an agent that a program has registered is no baseline, and where the market did not go on nothing came in an hour', () => {
  const own = figuresOf(
    { ...agent, end: null, words: [] },
    said([call(0)]),
    { fromMs: AT_MS, toMs: AT_MS },
    1,
  )
  expect(own.perHour).toBeNull()
  expect(endOf(own)).toBe('was registered by a program')
  expect([refusedOf(own), exactXp(1047.5)]).toEqual([null, '1 047.5'])
  const refused = { agent_banned: 2, validation_failed: 1_125 }
  expect(refusedOf({ ...own, refused })).toBe(
    'refused without being compared: 2 agent_banned, 1 125 validation_failed',
  )
  expect(endOf({ ...own, isBaseline: true })).toBeNull()
})

test('programs are named after their scripts, each by a name of its own', () => {
  expect(nameProgram(['node', '--x', 'dir/agent.mjs'], [])).toBe('agent.mjs')
  expect(nameProgram(['python3', 'agent.py'], ['agent.py'])).toBe('agent.py 2')
  expect(nameProgram(['./run'], [])).toBe('run')
  expect(BASELINES).toHaveLength(2)
})
