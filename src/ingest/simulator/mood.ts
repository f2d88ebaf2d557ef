// In: what a token went through. Out: how much it is traded, how much of that is buying, and what comes next.
// Moods last for a number of trades, not of minutes: so they mean the same at every speed. Never knows a token.
import type { Random } from './random.ts'

export type MoodName = 'fresh' | 'pump' | 'calm' | 'fade' | 'rug' | 'dead'

interface Mood {
  /** Share of trades that are buys. */
  buyShare: number
  /** How much more it is traded than a calm one. */
  heat: number
  /** Mean number of trades before the mood may change. */
  trades: number
  /** What follows, by probability. */
  next: readonly (readonly [MoodName, number])[]
}

export const MOODS: Readonly<Record<MoodName, Mood>> = {
  fresh: {
    buyShare: 0.62,
    heat: 3,
    trades: 40,
    next: [
      ['pump', 0.2],
      ['calm', 0.2],
      ['fade', 0.42],
      ['rug', 0.18],
    ],
  },
  pump: {
    buyShare: 0.62,
    heat: 4,
    trades: 240,
    next: [
      ['calm', 0.38],
      ['fade', 0.47],
      ['rug', 0.15],
    ],
  },
  calm: {
    buyShare: 0.5,
    heat: 1,
    trades: 350,
    next: [
      ['pump', 0.15],
      ['calm', 0.3],
      ['fade', 0.5],
      ['rug', 0.05],
    ],
  },
  fade: {
    buyShare: 0.43,
    heat: 0.4,
    trades: 150,
    next: [
      ['dead', 0.5],
      ['calm', 0.3],
      ['pump', 0.1],
      ['fade', 0.1],
    ],
  },
  rug: { buyShare: 0.06, heat: 8, trades: 12, next: [['dead', 1]] },
  dead: {
    buyShare: 0.46,
    heat: 0.02,
    trades: 40,
    next: [
      ['dead', 0.9],
      ['fade', 0.07],
      ['pump', 0.03],
    ],
  },
}

/** The mood after this one. A graduated token has no creator left to pull the rug. */
export function nextMood(random: Random, mood: MoodName, isGraduated: boolean): MoodName {
  let left = random.next()
  for (const [name, probability] of MOODS[mood].next) {
    left -= probability
    if (left < 0) return name === 'rug' && isGraduated ? 'fade' : name
  }
  return 'fade'
}

/** For how many trades a mood lasts. */
export function moodTrades(random: Random, mood: MoodName): number {
  return 1 + Math.round(random.exponential(MOODS[mood].trades))
}

/** The mood in which an old token is found. */
export function settledMood(random: Random): MoodName {
  const share = random.next()
  return share < 0.03 ? 'pump' : share < 0.2 ? 'calm' : share < 0.5 ? 'fade' : 'dead'
}
