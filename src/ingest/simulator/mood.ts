import type { Random } from './random.ts'

export type MoodName = 'fresh' | 'pump' | 'calm' | 'fade' | 'rug' | 'dead'

/**
 * A phase in a token's life. It decides how much the token is traded and bought. Phases last for a number of trades, not of
 * minutes, so that they mean the same at every simulated rate.
 */
interface Mood {
  /** Share of trades that are buys. */
  buyShare: number
  /** Trading relative to a calm token. */
  heat: number
  /** Mean number of trades before the mood may change. */
  trades: number
  /** The moods that may follow, with their probabilities. */
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

/** Draws the next mood. A graduated token cannot be rugged by its creator. */
export function nextMood(random: Random, mood: MoodName, isGraduated: boolean): MoodName {
  let left = random.next()
  for (const [name, probability] of MOODS[mood].next) {
    left -= probability
    if (left < 0) return name === 'rug' && isGraduated ? 'fade' : name
  }
  return 'fade'
}

/** Draws for how many trades a mood lasts. */
export function drawMoodTrades(random: Random, mood: MoodName): number {
  return 1 + Math.round(random.exponential(MOODS[mood].trades))
}

/** Draws the mood of a token that existed before the simulation. */
export function drawSettledMood(random: Random): MoodName {
  const share = random.next()
  return share < 0.03 ? 'pump' : share < 0.2 ? 'calm' : share < 0.5 ? 'fade' : 'dead'
}
