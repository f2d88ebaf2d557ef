// The figures of one agent: how its calls came true, beside what had come true anyway.
import { recordFrom } from '../../lib/record.ts'
import { DAY_MS, HOUR_MS } from '../../lib/time.ts'
import {
  HORIZON_NAMES,
  HORIZONS,
  type Horizon,
  OUTCOMES,
  type Outcome,
  SENTIMENTS,
  type Sentiment,
} from '../../schema/vocabulary.ts'
import type { Competitor, Played } from '../backtest.ts'
import type { DriverStats } from '../driver.ts'
import {
  CALLS_LISTED,
  CALLS_MIN,
  CHART_COLUMNS,
  CHART_POINTS_MAX,
  PORTFOLIO_USD,
  STAKE_USD,
  TRADE_COST,
} from '../limits.ts'
import type { Call, RejectedCall, Said } from './calls.ts'
import { type Estimate, estimateMean, quantile, type Sample } from './statistics.ts'

/** Of a series, as much as a chart can show: at most CHART_POINTS_MAX points, the last one among them. */
function thinned<Point>(points: readonly Point[]): readonly Point[] {
  const every = Math.ceil(points.length / CHART_POINTS_MAX)
  return points.filter((_, index) => (points.length - 1 - index) % every === 0)
}

/** What somebody would have who had bought each time that an agent was bullish. */
interface Portfolio {
  /** How long a purchase is held. */
  horizon: Horizon
  purchases: number
  endUsd: number
  /** The largest fall from an earlier high, a share of it, 0 to 1. */
  drawdown: number
  /** Bought and sold for each dollar of the beginning, a day. */
  turnoverPerDay: number
  /** Value after sales, thinned. */
  curve: readonly { atMs: number; usd: number }[]
}

/**
 * Puts STAKE_USD on each bullish call whose outcome is known, and sells after the horizon. A bearish or a neutral call buys nothing:
 * nobody lends these tokens to be sold. Each purchase and each sale costs TRADE_COST, fees and slippage together. It ends with the sale
 * after which nothing is left.
 */
export function playPortfolio(calls: readonly Call[], horizon: Horizon, spanMs: number): Portfolio {
  const sales = calls
    .flatMap(({ atMs, sentiment, returns }) => {
      const ret = returns[horizon]
      if (sentiment !== 'bullish' || ret === null) return []
      const soldUsd = STAKE_USD * (1 - TRADE_COST) * (1 + ret) * (1 - TRADE_COST)
      return [{ atMs: atMs + HORIZONS[horizon], gainUsd: soldUsd - STAKE_USD, soldUsd }]
    })
    .sort((a, b) => a.atMs - b.atMs)
  let [usd, peakUsd, drawdown, tradedUsd] = [PORTFOLIO_USD, PORTFOLIO_USD, 0, 0]
  const curve: { atMs: number; usd: number }[] = []
  for (const { atMs, gainUsd, soldUsd } of sales) {
    usd = Math.max(0, usd + gainUsd)
    tradedUsd += STAKE_USD + soldUsd
    peakUsd = Math.max(peakUsd, usd)
    drawdown = Math.max(drawdown, (peakUsd - usd) / peakUsd)
    curve.push({ atMs, usd })
    if (usd === 0) break
  }
  const days = Math.max(spanMs, 1) / DAY_MS
  return {
    horizon,
    purchases: curve.length,
    endUsd: usd,
    drawdown,
    turnoverPerDay: tradedUsd / PORTFOLIO_USD / days,
    curve: thinned(curve),
  }
}

/** Calls of one sentiment or of one range of scores, one horizon later. */
export interface Group {
  kind: 'sentiment' | 'score'
  label: string
  horizon: Horizon
  /** Mean forward return. */
  ret: Estimate
  /** Share of the calls that came true: bullish and the price rose, bearish and it fell. Neutral calls foretell no direction. */
  hits: Estimate
  /** The share that would have come true if the same sentiments had been said of this agent's tokens at random. */
  baseRate: number | null
}

export interface AgentFigures extends Competitor {
  submissions: number
  validated: number
  unvalidated: number
  rejected: number
  tokens: number
  /** Submissions in an hour of the market; null: it did not go on. */
  perHour: number | null
  xp: number
  bySentiment: Readonly<Record<Sentiment, number>>
  deviationPct: { median: number; p95: number; max: number } | null
  /** Why there are no further figures; null: there are. */
  tooFew: string | null
  groups: readonly Group[]
  portfolio: Portfolio | null
  best: readonly Valued[]
  worst: readonly Valued[]
  /** XP after accepted submissions, thinned. */
  xpCurve: readonly { atMs: number; xp: number }[]
  /** Of submissions, thinned. */
  outcomes: readonly { atMs: number; outcome: Outcome; deviationPct: number }[]
  /** How many submissions had which outcome, in each of CHART_COLUMNS equal parts of the time. */
  outcomeCounts: readonly Readonly<Record<Outcome, number>>[]
}

/** A call and what following it would have brought at the horizon of the portfolio, before costs. */
export interface Valued extends Omit<Call, 'returns'> {
  gain: number
}

const directionOf = (sentiment: Sentiment): 1 | -1 | 0 =>
  sentiment === 'bullish' ? 1 : sentiment === 'bearish' ? -1 : 0

const SCORE_RANGES = [0, 20, 40, 60, 80].map((low) => ({
  low,
  label: `${low}–${low === 80 ? 100 : low + 19}`,
}))
const scoreLabel = (score: number): string => SCORE_RANGES.findLast(({ low }) => score >= low)?.label ?? ''

/** The longest horizon of a call that most calls have an outcome of, an hour at most; null: there is none. */
export function holdingHorizon(calls: readonly Call[]): Horizon | null {
  const known = (horizon: Horizon) => calls.filter(({ returns }) => returns[horizon] !== null).length
  const horizons: Horizon[] = ['1h', '15m', '5m']
  return horizons.find((horizon) => known(horizon) > 0 && known(horizon) >= calls.length / 2) ?? null
}

function groupsOf(calls: readonly Call[], seed: number): Group[] {
  const groups: Group[] = []
  for (const horizon of HORIZON_NAMES) {
    const known = calls.flatMap((call) => {
      const ret = call.returns[horizon]
      return ret === null ? [] : [{ call, ret }]
    })
    if (known.length === 0) continue
    const rises = known.filter(({ ret }) => ret > 0).length / known.length
    const falls = known.filter(({ ret }) => ret < 0).length / known.length
    const add = (kind: Group['kind'], label: string, isOf: (call: Call) => boolean): void => {
      const own = known.filter(({ call }) => isOf(call))
      const directed = own.filter(({ call }) => call.sentiment !== 'neutral')
      const hits = directed.map(
        ({ call, ret }): Sample => ({
          mint: call.mint,
          value: ret * directionOf(call.sentiment) > 0 ? 1 : 0,
        }),
      )
      const expected = directed.map(({ call }) => (call.sentiment === 'bullish' ? rises : falls))
      groups.push({
        kind,
        label,
        horizon,
        ret: estimateMean(
          own.map(({ call, ret }) => ({ mint: call.mint, value: ret })),
          seed,
        ),
        hits: estimateMean(hits, seed),
        baseRate:
          expected.length === 0 ? null : expected.reduce((sum, each) => sum + each, 0) / expected.length,
      })
    }
    for (const sentiment of SENTIMENTS) add('sentiment', sentiment, (call) => call.sentiment === sentiment)
    for (const { label } of SCORE_RANGES) add('score', label, ({ score }) => scoreLabel(score) === label)
  }
  return groups
}

function valuedOf(calls: readonly Call[], horizon: Horizon): Valued[] {
  return calls
    .flatMap(({ returns, ...call }) => {
      const ret = returns[horizon]
      const direction = directionOf(call.sentiment)
      return ret === null || direction === 0 ? [] : [{ ...call, gain: direction * ret }]
    })
    .sort((a, b) => b.gain - a.gain || (a.analysisId < b.analysisId ? -1 : 1))
}

function deviationsOf(
  calls: readonly Call[],
  rejected: readonly RejectedCall[],
): AgentFigures['deviationPct'] {
  const sorted = [...calls, ...rejected].map(({ deviationPct }) => deviationPct).sort((a, b) => a - b)
  if (sorted.length === 0) return null
  return { median: quantile(sorted, 0.5), p95: quantile(sorted, 0.95), max: quantile(sorted, 1) }
}

const outcomesOf = (calls: readonly Call[], rejected: readonly RejectedCall[]): AgentFigures['outcomes'] =>
  [
    ...calls.map(({ atMs, isValidated, deviationPct }) => ({
      atMs,
      deviationPct,
      outcome: isValidated ? ('validated' as const) : ('unvalidated' as const),
    })),
    ...rejected.map(({ atMs, deviationPct }) => ({ atMs, deviationPct, outcome: 'rejected' as const })),
  ].sort((a, b) => a.atMs - b.atMs)

/** Market times, Unix ms. */
export type Span = Pick<Played, 'fromMs' | 'toMs'>

function countOutcomes(outcomes: AgentFigures['outcomes'], { fromMs, toMs }: Span) {
  const columns = Array.from({ length: CHART_COLUMNS }, () => recordFrom(OUTCOMES, () => 0))
  const widthMs = Math.max(1, (toMs - fromMs) / CHART_COLUMNS)
  for (const { atMs, outcome } of outcomes) {
    const column = columns[Math.floor((atMs - fromMs) / widthMs)] ?? columns.at(-1)
    if (column !== undefined) column[outcome]++
  }
  return columns
}

/** @param span in which it could speak */
export function figuresOf(competitor: Competitor, said: Said, span: Span, seed: number): AgentFigures {
  const { agentId } = competitor
  const spanMs = span.toMs - span.fromMs
  const calls = said.calls.filter((call) => call.agentId === agentId)
  const rejected = said.rejected.filter((call) => call.agentId === agentId)
  const horizon = holdingHorizon(calls)
  const isEnough = calls.length >= CALLS_MIN && horizon !== null
  const valued = isEnough ? valuedOf(calls, horizon) : []
  const validated = calls.filter(({ isValidated }) => isValidated).length
  const submissions = calls.length + rejected.length
  const outcomes = outcomesOf(calls, rejected)
  let xp = 0
  const xpCurve = calls.map((call) => {
    xp += call.xp
    return { atMs: call.atMs, xp }
  })
  return {
    ...competitor,
    submissions,
    validated,
    unvalidated: calls.length - validated,
    rejected: rejected.length,
    tokens: new Set(calls.map(({ mint }) => mint)).size,
    perHour: spanMs > 0 ? submissions / (spanMs / HOUR_MS) : null,
    bySentiment: recordFrom(SENTIMENTS, (said) => calls.filter(({ sentiment }) => sentiment === said).length),
    deviationPct: deviationsOf(calls, rejected),
    tooFew: isEnough ? null : whyTooFew(calls.length),
    groups: isEnough ? groupsOf(calls, seed) : [],
    portfolio: isEnough ? playPortfolio(calls, horizon, spanMs) : null,
    best: valued.slice(0, CALLS_LISTED),
    worst: valued.slice(-CALLS_LISTED).reverse(),
    xp,
    xpCurve: thinned(xpCurve),
    outcomes: thinned(outcomes),
    outcomeCounts: countOutcomes(outcomes, span),
  }
}

const whyTooFew = (calls: number): string =>
  calls < CALLS_MIN
    ? `Too few submissions to say anything: ${calls} were accepted, and ${CALLS_MIN} are needed.`
    : 'Of too few submissions an outcome is known: let the market go on for longer after them, with --tail-ms or a later end of the lake.'

/** What is reported. */
export interface Report {
  /** What was played, in market time, Unix ms. */
  market: Pick<Played, 'fromMs' | 'toMs' | 'playedToMs' | 'simulated'> & {
    /** What is to be known of it, as sentences. */
    notes: readonly string[]
  }
  agents: readonly AgentFigures[]
  /** How it went on this machine: all else in the report depends on the market and the programs alone, where no step was cut short or met. */
  run: Omit<DriverStats, 'marketMs'> & {
    /** Market time for each unit of real time. */
    speed: number
    events: number
    sentence: string
  }
}
