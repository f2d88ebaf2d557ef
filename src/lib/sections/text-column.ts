// Texts as bytes: their number, a word for each with its length and encoding, then their characters. Plain texts have one byte for
// each character, others two, so that any text that JavaScript can hold comes back as it was.
import { CheckpointError } from './checkpoint-error.ts'

const WORD_BYTES = 4
const NULL_TEXT = 0xffffffff
/** Set in the word of a text with two bytes for each character. */
const WIDE = 0x80000000

/** Whether a text's characters have one byte each. */
export const isAscii = (text: string): boolean => Buffer.byteLength(text) === text.length

/** Texts as bytes. */
export function encodeTexts(texts: readonly (string | null)[]): Uint8Array {
  const words = new Uint32Array(texts.length + 1)
  words[0] = texts.length
  let length = words.byteLength
  for (let index = 0; index < texts.length; index++) {
    const text = texts[index]
    if (text === null) {
      words[index + 1] = NULL_TEXT
      continue
    }
    const isWide = !isAscii(text)
    const bytes = isWide ? 2 * text.length : text.length
    words[index + 1] = isWide ? bytes + WIDE : bytes
    length += bytes
  }
  const encoded = Buffer.allocUnsafeSlow(length)
  encoded.set(new Uint8Array(words.buffer))
  let at = words.byteLength
  for (let index = 0; index < texts.length; index++) {
    const text = texts[index]
    if (text !== null) at += encoded.write(text, at, words[index + 1] < WIDE ? 'latin1' : 'utf16le')
  }
  return encoded
}

/** The texts of `encodeTexts`, each decoded when it is asked for. */
export class TextColumn {
  readonly count: number
  readonly #bytes: Buffer
  readonly #words: Uint32Array
  /** By text: where its characters begin. */
  readonly #starts: Uint32Array

  /**
   * @param bytes are held, or a copy if they are a part of something larger, which would be held too. They must not change.
   * @throws CheckpointError where the bytes are no texts.
   */
  constructor(name: string, bytes: Uint8Array) {
    this.#bytes = bytes.length === bytes.buffer.byteLength ? Buffer.from(bytes.buffer) : Buffer.from(bytes)
    this.count = bytes.length < WORD_BYTES ? 0 : this.#bytes.readUInt32LE(0)
    let at = (this.count + 1) * WORD_BYTES
    if (at > bytes.length) throw notTexts(name)
    this.#words = new Uint32Array(this.count)
    this.#starts = new Uint32Array(this.count)
    new Uint8Array(this.#words.buffer).set(bytes.subarray(WORD_BYTES, at))
    for (let index = 0; index < this.count; index++) {
      const word = this.#words[index]
      this.#starts[index] = at
      if (word !== NULL_TEXT) at += word < WIDE ? word : word - WIDE
    }
    if (at !== bytes.length) throw notTexts(name)
  }

  isNull(index: number): boolean {
    return this.#words[index] === NULL_TEXT
  }

  /** Copies a text to `target`. @returns its length; -1: it is none, has more than `charsMax` characters, or some that are no ASCII */
  copyAscii(index: number, target: Buffer, targetAt: number, charsMax: number): number {
    const length = this.#words[index]
    if (length > charsMax) return -1
    const start = this.#starts[index]
    this.#bytes.copy(target, targetAt, start, start + length)
    return length
  }

  at(index: number): string | null {
    const word = this.#words[index]
    if (word === NULL_TEXT) return null
    const start = this.#starts[index]
    return word < WIDE
      ? this.#bytes.toString('latin1', start, start + word)
      : this.#bytes.toString('utf16le', start, start + word - WIDE)
  }
}

const notTexts = (name: string): CheckpointError =>
  new CheckpointError(`The section ${name} does not hold the texts that it should.`)
