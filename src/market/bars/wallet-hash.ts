// A wallet's hash: two words of 32 bits, the same on every machine, as replays and readers need it. Wallets are no secrets, and who
// makes wallets whose hashes he likes could as well make more wallets: the hash needs no key.

/** The hash of `hashWallet`; overwritten by the next call. */
export const walletHash = new Int32Array(2)

/** The last steps of MurmurHash3: each bit changes all others. */
function finished(word: number): number {
  let mixed = Math.imul(word ^ (word >>> 16), 0x85ebca6b)
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35)
  return mixed ^ (mixed >>> 16)
}

/** Writes the hash of a text to `walletHash`. Nothing is called for each character, which would take as long as all the rest. */
export function hashWallet(wallet: string): void {
  const { length } = wallet
  let one = 0xdeadbeef ^ length
  let two = 0x41c6ce57 ^ length
  // Two characters at a time: reading them is most of the work.
  const paired = length & ~1
  for (let index = 0; index < paired; index += 2) {
    const pair = wallet.charCodeAt(index) | (wallet.charCodeAt(index + 1) << 16)
    one = Math.imul(one ^ pair, 0x9e3779b1)
    one ^= one >>> 15
    two = Math.imul(two ^ pair, 0x85ebca77)
    two = (two << 13) | (two >>> 19)
  }
  if (paired < length) {
    one = Math.imul(one ^ wallet.charCodeAt(paired), 0x9e3779b1)
    two = Math.imul(two ^ wallet.charCodeAt(paired), 0x85ebca77)
  }
  walletHash[0] = finished(one)
  walletHash[1] = finished(two ^ Math.imul(one, 0xc2b2ae3d))
}
