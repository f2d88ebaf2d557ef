// Simple heuristics: what an agent says of a token, from its DataPoint and its last bars. The same input gives the same analysis.
import type { Bar, DataPoint, Quant, RiskFactor, Sentiment, Submission } from '../../src/client/index.ts'

const RISK_FACTORS_MAX = 8
/** A move of the price over the bars that is more than noise, as a fraction. */
const TREND_MIN = 0.05
const RISK_WEIGHTS: Readonly<Record<Quant['riskLevel'], number>> = {
  low: 10,
  medium: 0,
  high: -10,
  critical: -25,
}

/** Of 0 to 100, whole. */
export const clamp = (value: number): number => Math.round(Math.min(100, Math.max(0, value)))
const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0)
const mean = (values: readonly number[]): number => (values.length === 0 ? 0 : sum(values) / values.length)

/** The first word whose least value is reached; `otherwise` below all of them. */
function grade<const Word extends string>(
  value: number,
  steps: readonly (readonly [number, Word])[],
  otherwise: Word,
): Word {
  return steps.find(([least]) => value >= least)?.[1] ?? otherwise
}

/** How much the price moved over some bars, as a fraction. */
function moveOf(bars: readonly Bar[]): number {
  const [first, last] = [bars[0], bars.at(-1)]
  return first === undefined || last === undefined || first.o === 0 ? 0 : last.c / first.o - 1
}

function trendOf(bars: readonly Bar[]): Quant['trendDirection'] {
  const half = Math.floor(bars.length / 2)
  const [before, after] = [moveOf(bars.slice(0, half)), moveOf(bars.slice(half))]
  if (Math.abs(before) > TREND_MIN && Math.abs(after) > TREND_MIN && before * after < 0) return 'reversal'
  const move = moveOf(bars)
  if (Math.abs(move) <= TREND_MIN) return 'sideways'
  return move > 0 ? 'up' : 'down'
}

/** The volume of the last third of the bars against that of the others. */
function volumeProfileOf(bars: readonly Bar[]): Quant['volumeProfile'] {
  const volumes = bars.map(({ v }) => v)
  const start = Math.floor((volumes.length * 2) / 3)
  const [before, now] = [mean(volumes.slice(0, start)), mean(volumes.slice(start))]
  if (now === 0) return 'dead'
  if (before === 0) return 'surging'
  return grade(
    now / before,
    [
      [2, 'surging'],
      [1.2, 'rising'],
      [0.7, 'stable'],
    ],
    'declining',
  )
}

/** Share of buys, 0-100: of the last minute's volume where that is known, else of the day's trades. */
function buyPressureOf({ buySellImbalance1m, buys24h, sells24h }: DataPoint): number {
  if (buySellImbalance1m !== null) return clamp(50 + 50 * buySellImbalance1m)
  const trades = (buys24h ?? 0) + (sells24h ?? 0)
  return trades === 0 ? 50 : clamp((100 * (buys24h ?? 0)) / trades)
}

/** Dangers first, then what speaks for the token. */
function riskFactorsOf(point: DataPoint, quant: Omit<Quant, 'riskFactors' | 'riskLevel'>): RiskFactor[] {
  const found: [RiskFactor, boolean][] = [
    ['freeze_authority', point.has_freeze_authority === true],
    ['mint_authority', point.has_mint_authority === true],
    ['transfer_fee', point.transfer_fee_enabled === true],
    ['creator_holds_majority', (point.creatorHolding ?? 0) > 50],
    ['whale_dominance', quant.holderConcentration === 'whale_dominated'],
    ['high_concentration', quant.holderConcentration === 'concentrated'],
    ['low_liquidity', quant.liquidityDepth === 'dry' || quant.liquidityDepth === 'shallow'],
    ['rapid_sell_off', quant.trendDirection === 'down' && quant.buyPressure < 35],
    ['dead_volume', quant.volumeProfile === 'dead'],
    ['low_unique_wallets', point.unique_wallet_24h !== null && point.unique_wallet_24h < 20],
    ['bonding_curve_risk', !point.bondingComplete],
    ['no_social_presence', point.twitter === null && point.telegram === null],
    ['no_website', point.website === null],
    ['healthy_distribution', quant.holderConcentration === 'distributed'],
    ['organic_volume', quant.volumeProfile === 'stable' || quant.volumeProfile === 'rising'],
  ]
  const factors = found.flatMap(([factor, holds]) => (holds ? [factor] : []))
  return factors.length === 0 ? ['verified_socials'] : factors.slice(0, RISK_FACTORS_MAX)
}

const SEVERE: ReadonlySet<RiskFactor> = new Set([
  'freeze_authority',
  'mint_authority',
  'creator_holds_majority',
  'whale_dominance',
  'rapid_sell_off',
  'dead_volume',
])

function riskLevelOf(factors: readonly RiskFactor[]): Quant['riskLevel'] {
  const severe = factors.filter((factor) => SEVERE.has(factor)).length
  return grade(
    severe,
    [
      [3, 'critical'],
      [2, 'high'],
      [1, 'medium'],
    ],
    'low',
  )
}

/** What the numbers of a token say. */
export function quantOf(point: DataPoint, bars: readonly Bar[]): Quant {
  const holderConcentration = grade(
    point.top10HolderPct ?? 30,
    [
      [70, 'whale_dominated'],
      [40, 'concentrated'],
      [20, 'moderate'],
    ],
    'distributed',
  )
  const liquidityDepth = grade(
    point.liquidity ?? 0,
    [
      [100_000, 'deep'],
      [20_000, 'moderate'],
      [3_000, 'shallow'],
    ],
    'dry',
  )
  const ranges = bars.map(({ h, l, o }) => (o === 0 ? 0 : (h - l) / o))
  const measured = {
    buyPressure: buyPressureOf(point),
    // A mean range of 20 % of the price within a bar counts as the most.
    volatilityScore: clamp(500 * mean(ranges)),
    liquidityDepth,
    holderConcentration,
    trendDirection: trendOf(bars),
    volumeProfile: volumeProfileOf(bars),
  }
  const riskFactors = riskFactorsOf(point, measured)
  return { ...measured, riskFactors, riskLevel: riskLevelOf(riskFactors) }
}

/** How far above or below neutral the token is thought to go, -50 to 50. */
function leaningOf(quant: Quant, bars: readonly Bar[]): number {
  const momentum = 100 * Math.max(-0.2, Math.min(0.2, moveOf(bars)))
  const pressure = (quant.buyPressure - 50) / 2
  return Math.max(-50, Math.min(50, momentum + pressure + RISK_WEIGHTS[quant.riskLevel]))
}

const sentimentOf = (leaning: number): Sentiment =>
  leaning > 8 ? 'bullish' : leaning < -8 ? 'bearish' : 'neutral'

const shown = (value: number | null, unit: string): string =>
  value === null ? 'unknown' : `${Number(value.toPrecision(3))}${unit}`

/**
 * An analysis of a token. Without a snapshot: the server takes its own. The summary holds numbers and words of the vocabulary
 * only, never the texts of the token, which anybody may have written.
 */
export function analyse(point: DataPoint, bars: readonly Bar[]): Submission {
  const quant = quantOf(point, bars)
  const leaning = leaningOf(quant, bars)
  const summary = [
    `Over ${bars.length} bars the price moved ${shown(100 * moveOf(bars), ' %')} (${quant.trendDirection}),`,
    `volume is ${quant.volumeProfile} at ${shown(point.volume24h, ' USD')} a day, buy pressure ${quant.buyPressure}.`,
    `Liquidity is ${quant.liquidityDepth} (${shown(point.liquidity, ' USD')}); the ten largest of`,
    `${shown(point.holderCount, '')} holders have ${shown(point.top10HolderPct, ' %')}.`,
    `Risk is ${quant.riskLevel}: ${quant.riskFactors.join(', ')}.`,
  ].join(' ')
  return {
    mint: point.mint,
    sentiment: sentimentOf(leaning),
    score: clamp(50 + Math.abs(leaning)),
    summary,
    quant,
  }
}
