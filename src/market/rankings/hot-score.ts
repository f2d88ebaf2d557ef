// The hot score: a sum of trade volumes that decays with a half-life, kept as its logarithm. A trade weighs volume · 2^(t / half-life),
// so scores of different times compare as they are, and the passing of time reorders nothing. This is forward decay: Cormode,
// Shkapenyuk, Srivastava, Xu, "Forward Decay: A Practical Time Decay Model for Streaming Systems", ICDE 2009.
import { HOT_HALF_LIFE_MS } from '../../schema/market-item.ts'

/** The score of a token without trades. */
export const HOT_SCORE_NONE = 0

/** The score where its newest trades were of an earlier time. */
export const rewindHotScore = (score: number, byMs: number): number =>
  Math.max(HOT_SCORE_NONE, score - byMs / HOT_HALF_LIFE_MS)

/** The score after a trade: log2 of the sum of weights. */
export function addToHotScore(score: number, volumeUsd: number, tsMs: number): number {
  if (!(volumeUsd > 0)) return score
  const weight = Math.log2(volumeUsd) + tsMs / HOT_HALF_LIFE_MS
  const high = Math.max(score, weight)
  return high + Math.log2(1 + 2 ** (Math.min(score, weight) - high))
}
