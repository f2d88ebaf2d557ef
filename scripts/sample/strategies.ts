// Scripted agents of the sample: what each thinks of a token, given its DataPoint and random numbers. They differ in skill, so
// that questions about the dataset have answers.
import type { MoodName } from '../../src/ingest/simulator/mood.ts'
import type { Random } from '../../src/ingest/simulator/random.ts'
import type { Bar } from '../../src/schema/bar.ts'
import type { DataPoint } from '../../src/schema/datapoint.ts'
import type { Quant, SubmittedSnapshot } from '../../src/schema/submission.ts'
import type { RiskFactor, Sentiment } from '../../src/schema/vocabulary.ts'
import { clamp, quantOf } from '../agent/analyst.ts'

export interface Seen {
  datapoint: DataPoint
  /** Known to the simulator and in no DataPoint; only the reference agent uses it. */
  mood: MoodName
  random: Random
}

export interface Opinion {
  sentiment: Sentiment
  score: number
  reason: string
}

export interface Strategy {
  name: string
  description: string
  /** Mean time between two submissions, minutes. */
  everyMinutes: number
  /** How many accounts this agent has; 1 by default. */
  accounts?: number
  /** Share of tokens that it picks from the popular ones. */
  popularShare: number
  /** Longest time from reading to submitting, seconds. */
  dawdlesSeconds: number
  think(seen: Seen): Opinion
  /** Whether it names risks from the data or at random. */
  looksAtRisks: boolean
  /** Changes the snapshot before it is sent; unchanged by default. */
  tamper?(snapshot: SubmittedSnapshot, random: Random): SubmittedSnapshot
}

/** A weaker lean is neutral. */
const NEUTRAL_WITHIN = 0.08
const opinion = (lean: number, reason: string): Opinion => ({
  sentiment: Math.abs(lean) <= NEUTRAL_WITHIN ? 'neutral' : lean > 0 ? 'bullish' : 'bearish',
  score: clamp(50 + 50 * Math.min(1, Math.abs(lean)) * (Math.abs(lean) <= NEUTRAL_WITHIN ? -1 : 1)),
  reason,
})

/** Balance of buys and sells of the last day, -1 to 1, weaker with few trades. */
function flow({ buys24h, sells24h }: DataPoint): number {
  const trades = (buys24h ?? 0) + (sells24h ?? 0)
  return trades === 0 ? 0 : ((buys24h ?? 0) - (sells24h ?? 0)) / (trades + 8)
}

/** Price change of the last hour, mapped to -1 to 1. */
const momentum = ({ priceChange1h }: DataPoint): number => Math.tanh((priceChange1h ?? 0) / 40)

const MOOD_LEAN: Readonly<Record<MoodName, number>> = {
  pump: 0.8,
  fresh: 0.35,
  calm: 0.02,
  fade: -0.6,
  rug: -1,
  dead: -0.15,
}

export const STRATEGIES: readonly Strategy[] = [
  {
    name: 'insider',
    description: 'Knows the simulator’s hidden mood of each token: what skill looks like at its best',
    everyMinutes: 18,
    popularShare: 0.7,
    dawdlesSeconds: 5,
    looksAtRisks: true,
    think: ({ mood, random }) =>
      opinion(
        MOOD_LEAN[mood] + 0.15 * random.normal(),
        'What I know of this token outweighs what its chart says',
      ),
  },
  {
    name: 'flow',
    description: 'Follows buys against sells, and the last hour a little',
    everyMinutes: 14,
    popularShare: 0.7,
    dawdlesSeconds: 10,
    looksAtRisks: true,
    think: ({ datapoint }) =>
      opinion(
        1.6 * flow(datapoint) + 0.3 * momentum(datapoint),
        'Buyers against sellers over the day decide for me',
      ),
  },
  {
    name: 'momentum',
    description: 'Believes that what rose in the last hour goes on rising',
    everyMinutes: 16,
    popularShare: 0.8,
    dawdlesSeconds: 20,
    looksAtRisks: true,
    think: ({ datapoint }) =>
      opinion(1.2 * momentum(datapoint), 'The last hour sets the direction of the next ones'),
  },
  {
    name: 'contrarian',
    description: 'Believes that what rose in the last hour falls back',
    everyMinutes: 20,
    popularShare: 0.8,
    dawdlesSeconds: 20,
    looksAtRisks: true,
    think: ({ datapoint }) =>
      opinion(-1.2 * momentum(datapoint), 'What ran away in an hour comes back in the next ones'),
  },
  {
    name: 'cheerleader',
    description: 'Bullish whatever it sees, with high scores',
    everyMinutes: 15,
    popularShare: 0.9,
    dawdlesSeconds: 30,
    looksAtRisks: false,
    think: ({ random }) =>
      opinion(0.5 + 0.4 * random.next(), 'This one goes to the moon, the community is strong'),
  },
  {
    name: 'coin',
    description: 'Throws a coin, and dice for the score',
    everyMinutes: 15,
    popularShare: 0.5,
    dawdlesSeconds: 30,
    looksAtRisks: false,
    think: ({ random }) =>
      opinion(random.between(-1, 1), 'The signs point both ways and I had to decide all the same'),
  },
  {
    name: 'sloppy',
    description: 'As flow, but sends numbers that are old or rounded: often unvalidated, at times rejected',
    everyMinutes: 25,
    popularShare: 0.7,
    dawdlesSeconds: 240,
    looksAtRisks: true,
    think: ({ datapoint }) =>
      opinion(1.6 * flow(datapoint), 'Roughly speaking the buyers and sellers decide for me'),
    tamper: (snapshot, random) => ({
      ...snapshot,
      priceUsd: (snapshot.priceUsd ?? 0) * random.lognormal(1, 0.16),
      marketCap: (snapshot.marketCap ?? 0) * random.lognormal(1, 0.16),
    }),
  },
  {
    name: 'fabricator',
    description:
      'Three accounts of one; invents its numbers when it has none at hand: rejected, suspended, back again',
    everyMinutes: 50,
    accounts: 3,
    popularShare: 0.3,
    dawdlesSeconds: 60,
    looksAtRisks: false,
    think: ({ random }) =>
      opinion(random.between(-0.2, 1), 'My own model of the holders is decisive for this verdict'),
    tamper: (snapshot, random) =>
      random.chance(0.15)
        ? { ...snapshot, holderCount: Math.round((snapshot.holderCount ?? 0) * random.between(2, 6)) + 40 }
        : snapshot,
  },
]

const GUESSED_FACTORS: readonly RiskFactor[] = [
  'strong_community',
  'organic_volume',
  'active_development',
  'locked_liquidity',
  'honeypot_risk',
  'wash_trading',
  'copy_token',
  'no_liquidity_lock',
]

/** The quant that goes with an opinion: what the numbers say, or with the lean and at random where it does not look at them. */
export function quantFor(
  { looksAtRisks }: Strategy,
  { datapoint, random }: Seen,
  bars: readonly Bar[],
  lean: number,
): Quant {
  const quant = quantOf(datapoint, bars)
  if (looksAtRisks) return quant
  const guessed = Array.from({ length: 1 + random.below(3) }, () => random.pick(GUESSED_FACTORS))
  return { ...quant, riskFactors: [...new Set(guessed)], buyPressure: clamp(50 + 50 * lean) }
}
