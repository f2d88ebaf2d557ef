import { distance } from 'fastest-levenshtein'
import { SUGGESTION_CHARACTERS_MAX } from './limits.ts'

/** `rugPull Risk` becomes `rug_pull_risk`. */
const normalize = (text: string) =>
  text
    .slice(0, SUGGESTION_CHARACTERS_MAX)
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '_')
    .replace(/^_+|_+$/g, '')

const splitWords = (text: string) => text.split('_').filter((word) => word.length > 0)

/** The weight of each word: one over the number of allowed values that have it, so that `rug` outweighs `risk`. */
function wordWeights(allowed: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const value of allowed) {
    for (const word of new Set(splitWords(value))) counts.set(word, (counts.get(word) ?? 0) + 1)
  }
  return new Map([...counts].map(([word, count]) => [word, 1 / count]))
}

function similarity(sent: string, candidate: string, weights: Map<string, number>): number {
  const letters = 1 - distance(sent, candidate) / Math.max(sent.length, candidate.length, 1)
  const sentWords = new Set(splitWords(sent))
  let shared = 0
  let all = 0
  for (const word of splitWords(candidate)) {
    const weight = weights.get(word) ?? 1
    all += weight
    if (sentWords.has(word)) shared += weight
  }
  return letters + (all === 0 ? 0 : shared / all)
}

/**
 * The allowed value that is nearest by letters (Levenshtein) and by shared words; null for an empty list. Looks at the first
 * SUGGESTION_CHARACTERS_MAX characters.
 */
export function nearest(sent: string, allowed: readonly string[]): string | null {
  const word = normalize(sent)
  const weights = wordWeights(allowed)
  let best: string | null = null
  let bestScore = Number.NEGATIVE_INFINITY
  for (const candidate of allowed) {
    const score = similarity(word, candidate, weights)
    if (score > bestScore) {
      best = candidate
      bestScore = score
    }
  }
  return best
}
