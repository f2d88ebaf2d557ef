// API keys. The last six characters are a checksum of the rest, so that a mistyped key is told from an unknown one.
import { hash } from 'node:crypto'

const KEY_PREFIX = 'ps_'
const KEY_CHARACTERS = 48
const CHECKSUM_CHARACTERS = 6
const SECRET_CHARACTERS = KEY_CHARACTERS - CHECKSUM_CHARACTERS
const DISPLAY_CHARACTERS = KEY_PREFIX.length + 6
const ALPHABET = 'abcdefghijklmnopqrstuvwxyz0123456789'
/** The largest multiple of the alphabet's length in a byte. Greater bytes are discarded, so that all letters are equally likely. */
const BYTE_BOUND = 256 - (256 % ALPHABET.length)
const CHECKSUM_BYTES = 6
const KEY_PATTERN = new RegExp(`^${KEY_PREFIX}[a-z0-9]{${KEY_CHARACTERS}}$`)

/** Returns `count` unpredictable bytes. */
export type RandomBytes = (count: number) => Uint8Array

function checksum(body: string): string {
  let number = hash('sha256', body, 'buffer').readUIntBE(0, CHECKSUM_BYTES)
  let text = ''
  for (let i = 0; i < CHECKSUM_CHARACTERS; i++) {
    text += ALPHABET[number % ALPHABET.length]
    number = Math.floor(number / ALPHABET.length)
  }
  return text
}

/** A new key: `ps_`, 42 random characters (217 bits) and 6 of checksum. */
export function makeKey(randomBytes: RandomBytes): string {
  let secret = ''
  while (secret.length < SECRET_CHARACTERS) {
    for (const byte of randomBytes(SECRET_CHARACTERS)) {
      if (byte < BYTE_BOUND && secret.length < SECRET_CHARACTERS) secret += ALPHABET[byte % ALPHABET.length]
    }
  }
  return KEY_PREFIX + secret + checksum(KEY_PREFIX + secret)
}

/** True when form and checksum are right. The key may still be unknown. */
export function isKey(text: string): boolean {
  if (!KEY_PATTERN.test(text)) return false
  const body = text.slice(0, -CHECKSUM_CHARACTERS)
  return text.slice(-CHECKSUM_CHARACTERS) === checksum(body)
}

/** SHA-256, hex: the only thing that is stored of a key. 217 random bits need no slow hash. */
export function hashKey(key: string): string {
  return hash('sha256', key, 'hex')
}

/** The first characters, by which its owner recognises it. */
export function displayPrefix(key: string): string {
  return key.slice(0, DISPLAY_CHARACTERS)
}
