/** A letter or digit with what follows of the same word, or one pictograph. */
const WORD = /[\p{L}\p{N}][\p{L}\p{N}\p{M}]*|\p{So}/gu

/** A text that is one word without anything to fold but its case, such as a mint. */
const PLAIN_WORD = /^[0-9A-Za-z]+$/

/**
 * The words of a text as a search compares them: each with a blank before it, in lower case, and characters that differ in form
 * alone (full width, ligatures) as one. What is between words is dropped; a pictograph is a word of its own. Empty for a text
 * without words.
 */
export function searchWords(text: string): string {
  if (PLAIN_WORD.test(text)) return ` ${text.toLowerCase()}`
  // Lower case has two forms of sigma: which one it is depends on whether the word goes on.
  const folded = text.normalize('NFKC').toLowerCase().replaceAll('ς', 'σ')
  const words = folded.match(WORD)
  return words === null ? '' : ` ${words.join(' ')}`
}
