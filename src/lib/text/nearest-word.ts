import { distance } from 'fastest-levenshtein'

/** Longest word that is compared: the time rises with its length. */
const CHARACTERS_MAX = 200

/**
 * The allowed word that was probably meant: at most a third of its characters differ. Null: none is that near.
 * @param words with the form in which each is compared
 */
export function nearestWord(
  sent: string,
  words: Iterable<readonly [word: string, form: string]>,
): string | null {
  if (sent.length > CHARACTERS_MAX) return null
  let nearest: string | null = null
  let leastShare = 1 / 3
  for (const [word, form] of words) {
    const share = distance(sent, form) / Math.max(1, form.length)
    if (share > leastShare || (share === leastShare && nearest !== null)) continue
    nearest = word
    leastShare = share
  }
  return nearest
}
