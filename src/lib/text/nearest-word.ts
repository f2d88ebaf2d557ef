import { distance } from 'fastest-levenshtein'

/** Longest word that is compared: the time rises with its length. */
const CHARACTERS_MAX = 200

/** In a word of at least so many characters two may differ: neighbours change places easily. */
const SWAPPED_CHARACTERS_MIN = 4
const editsMax = (word: string): number =>
  Math.max(word.length / 3, word.length < SWAPPED_CHARACTERS_MIN ? 0 : 2)

/**
 * The allowed word that was probably meant: at most a third of its characters differ, or two. Null: none is that near.
 * @param words with the form in which each is compared
 */
export function nearestWord(
  sent: string,
  words: Iterable<readonly [word: string, form: string]>,
): string | null {
  if (sent.length > CHARACTERS_MAX) return null
  let nearest: string | null = null
  let leastShare = Number.POSITIVE_INFINITY
  for (const [word, form] of words) {
    const edits = distance(sent, form)
    const share = edits / Math.max(1, form.length)
    if (edits > editsMax(form) || share >= leastShare) continue
    nearest = word
    leastShare = share
  }
  return nearest
}

/** The end of a sentence on a word that is not one of `words`: which was probably meant; nothing where none is near. */
export function didYouMean(
  sent: string,
  words: readonly string[],
  shown: (word: string) => string = (word) => word,
): string {
  const meant = nearestWord(
    sent,
    words.map((word) => [word, word]),
  )
  return meant === null ? '' : `; did you mean ${shown(meant)}?`
}
