// In: a string that claims to be a mint address. Out: whether it is one; and the mint that stands for a ticker symbol.
// Never asks a chain: the form alone is checked.
import { createHash } from 'node:crypto'
import { base58 } from '@scure/base'

const MINT_PATTERN = /^[1-9A-HJ-NP-Za-km-z]{32,44}$/
const MINT_BYTES = 32

/** True for base58 text of 32 to 44 characters that decodes to exactly 32 bytes. */
export function isMint(text: unknown): text is string {
  if (typeof text !== 'string' || !MINT_PATTERN.test(text)) return false
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
