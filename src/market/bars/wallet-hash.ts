// A wallet's hash: two words of 32 bits, the same on every machine, as replays and readers need it. Wallets are no secrets, and who
// makes wallets whose hashes he likes could as well make more wallets: the hash needs no key.

import { WORD_CHARS_MAX } from '../../schema/bounds.ts'
import type { WalletBytes } from '../tokens/trade-places.ts'

/** A character of a text (a unit of UTF-16) takes at most so many bytes. */
const UTF8_BYTES_MAX = 3

/** The hash of `hashWallet` or `hashBytes`; overwritten by the next call. */
export const walletHash = new Int32Array(2)

/** The last steps of MurmurHash3: each bit changes all others. */
function finished(word: number): number {
  let mixed = Math.imul(word ^ (word >>> 16), 0x85ebca6b)
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35)
  return mixed ^ (mixed >>> 16)
}

/** Of a wallet that lies nowhere else. */
const copied: WalletBytes = { bytes: Buffer.alloc(WORD_CHARS_MAX * UTF8_BYTES_MAX), at: 0, length: 0 }

/** Writes the hash of a wallet to `walletHash`. */
export function hashWallet(wallet: string): void {
  copied.length = (copied.bytes as Buffer).write(wallet)
  hashBytes(copied)
}

/** Writes the hash of a wallet to `walletHash`. Characters read from the text, or copied first, take twice as long. */
export function hashBytes({ bytes, at, length }: WalletBytes): void {
  let one = 0xdeadbeef ^ length
  let two = 0x41c6ce57 ^ length
  // Two at a time.
  const paired = at + (length & ~1)
  for (let index = at; index < paired; index += 2) {
    const pair = bytes[index] | (bytes[index + 1] << 16)
    one = Math.imul(one ^ pair, 0x9e3779b1)
    one ^= one >>> 15
    two = Math.imul(two ^ pair, 0x85ebca77)
    two = (two << 13) | (two >>> 19)
  }
  if (paired < at + length) {
    one = Math.imul(one ^ bytes[paired], 0x9e3779b1)
    two = Math.imul(two ^ bytes[paired], 0x85ebca77)
  }
  walletHash[0] = finished(one)
  walletHash[1] = finished(two ^ Math.imul(one, 0xc2b2ae3d))
}
