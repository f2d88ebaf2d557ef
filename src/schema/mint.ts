import { createHash } from 'node:crypto'
import { base58 } from '@scure/base'

const MINT_PATTERN = /^[1-9A-HJ-NP-Za-km-z]{32,44}$/
/** The part of the check that JSON Schema can express. Some texts of this form are not mints: they decode to another length. */
export const MINT_SHAPE = { minLength: 32, maxLength: 44, pattern: MINT_PATTERN.source }
const MINT_BYTES = 32
const ZERO_DIGIT = '1'
/** By length: the lowest and highest number of so many bytes whose first byte is not zero; of none at all the empty text. */
const BOUNDS = Array.from({ length: MINT_BYTES + 1 }, (_, bytes) => ({
  lowest: base58.encode(Uint8Array.from({ length: bytes }, (_, at) => (at === 0 ? 1 : 0))),
  highest: base58.encode(new Uint8Array(bytes).fill(0xff)),
}))

/** Compares base58 numbers without leading zeros: a longer one is larger, and digits are ordered like their characters. */
const isAtMost = (text: string, other: string): boolean =>
  text.length === other.length ? text <= other : text.length < other.length

/**
 * Whether `text` is a mint address: base58 that decodes to exactly 32 bytes. Whether it exists on the chain is not checked. The text is
 * compared with bounds and not decoded, because decoding would be the most expensive check of most requests.
 */
export function isMint(text: unknown): text is string {
  if (typeof text !== 'string' || !MINT_PATTERN.test(text)) return false
  let zeros = 0
  while (text[zeros] === ZERO_DIGIT) zeros++
  // Each zero in front stands for a byte that is zero.
  const bounds = BOUNDS[MINT_BYTES - zeros]
  if (bounds === undefined) return false
  const digits = zeros === 0 ? text : text.slice(zeros)
  return isAtMost(bounds.lowest, digits) && isAtMost(digits, bounds.highest)
}

/** A mint for a symbol that is not one itself, for example a stock ticker: base58 of the symbol's SHA-256. */
export function mintOfSymbol(symbol: string): string {
  return base58.encode(createHash('sha256').update(symbol, 'utf8').digest())
}
