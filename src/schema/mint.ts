// In: a string that claims to be a mint address. Out: whether it is one; and the mint that stands for a ticker symbol.
// Never asks a chain: the form alone is checked.
import { createHash } from 'node:crypto'
import { base58 } from '@scure/base'

const MINT_PATTERN = /^[1-9A-HJ-NP-Za-km-z]{32,44}$/
/** What JSON Schema can say of a mint: of texts of this form some are no mint, as they decode to fewer or more bytes. */
export const MINT_SHAPE = { minLength: 32, maxLength: 44, pattern: MINT_PATTERN.source }
const MINT_BYTES = 32
const ZERO_DIGIT = '1'
/** The lowest and the highest number of 32 bytes whose first is not zero. */
const LOWEST = base58.encode(Uint8Array.from({ length: MINT_BYTES }, (_, at) => (at === 0 ? 1 : 0)))
const HIGHEST = base58.encode(new Uint8Array(MINT_BYTES).fill(0xff))

/** Numbers without leading zeros: more digits are more, and the digits of base58 are in the order of their codes. */
const isAtMost = (text: string, other: string): boolean =>
  text.length === other.length ? text <= other : text.length < other.length

/**
 * True for base58 text of 32 to 44 characters that decodes to exactly 32 bytes. Decoding is avoided where comparing
 * tells: each request names a mint, and decoding would be the dearest check of most.
 */
export function isMint(text: unknown): text is string {
  if (typeof text !== 'string' || !MINT_PATTERN.test(text)) return false
  if (text[0] !== ZERO_DIGIT) return isAtMost(LOWEST, text) && isAtMost(text, HIGHEST)
  try {
    return base58.decode(text).length === MINT_BYTES
  } catch {
    return false
  }
}

/** The mint of a replayed symbol that is no mint itself: base58 of the symbol's SHA-256. */
export function mintOfSymbol(symbol: string): string {
  return base58.encode(createHash('sha256').update(symbol, 'utf8').digest())
}
