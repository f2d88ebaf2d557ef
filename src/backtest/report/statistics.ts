// Means and their intervals, by bootstrap over tokens: calls on one token share its price, so they are no independent samples.
import { Random } from '../../ingest/simulator/random.ts'
import { BOOTSTRAP_ROUNDS, CALLS_MIN, TOKENS_MIN } from '../limits.ts'

/** One observation. */
export interface Sample {
  mint: string
  value: number
}

/** A mean and its 95 % interval; null where there are too few samples to say anything. */
export interface Estimate {
  count: number
  tokens: number
  mean: number | null
  low: number | null
  high: number | null
}

const isEnough = (count: number, tokens: number): boolean => count >= CALLS_MIN && tokens >= TOKENS_MIN

const NONE = { sum: 0, count: 0 }

/** The value below which this share of the sorted values lies. */
export function quantile(sorted: readonly number[], share: number): number {
  const at = share * (sorted.length - 1)
  const [low, high] = [sorted[Math.floor(at)] ?? 0, sorted[Math.ceil(at)] ?? 0]
  return low + (high - low) * (at - Math.floor(at))
}

/** @param seed of the resampling: the same samples give the same interval */
export function estimateMean(samples: readonly Sample[], seed: number): Estimate {
  const byMint = new Map<string, { sum: number; count: number }>()
  for (const { mint, value } of samples) {
    const token = byMint.get(mint)
    if (token === undefined) byMint.set(mint, { sum: value, count: 1 })
    else {
      token.sum += value
      token.count++
    }
  }
  const tokens = [...byMint.values()]
  const known = { count: samples.length, tokens: tokens.length }
  if (!isEnough(known.count, known.tokens)) return { ...known, mean: null, low: null, high: null }
  const random = new Random(seed)
  const means: number[] = []
  for (let round = 0; round < BOOTSTRAP_ROUNDS; round++) {
    let [sum, count] = [0, 0]
    for (let draw = 0; draw < tokens.length; draw++) {
      const token = tokens[Math.floor(random.next() * tokens.length)] ?? NONE
      sum += token.sum
      count += token.count
    }
    means.push(sum / count)
  }
  means.sort((a, b) => a - b)
  const mean = samples.reduce((total, { value }) => total + value, 0) / samples.length
  return { ...known, mean, low: quantile(means, 0.025), high: quantile(means, 0.975) }
}
