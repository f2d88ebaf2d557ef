/** Longer texts are left to Node, which a call into it costs as much as copying so many characters. */
const COPIED_MAX = 64
const FIRST_BYTES = 64 * 1_024
const COMMA = 0x2c
const LIST_END = 0x5d

/** Text made as bytes, piece by piece, in memory that is used again: no piece becomes a part of a string that the collector walks. */
export class TextBytes {
  #bytes = Buffer.allocUnsafeSlow(FIRST_BYTES)
  #length = 0

  /** What was written since `clear`. A view, valid until the next `clear`. */
  get bytes(): Buffer {
    return this.#bytes.subarray(0, this.#length)
  }

  /** The same in memory of its own, to be kept: Node's pool of small buffers would be pinned, 8 KiB for a few of them. */
  ownBytes(): Buffer {
    const own = Buffer.allocUnsafeSlow(this.#length)
    this.#bytes.copy(own, 0, 0, this.#length)
    return own
  }

  clear(): void {
    this.#length = 0
  }

  write(text: string): void {
    const { length } = text
    const bytes = this.#room(length)
    const start = this.#length
    let at = 0
    if (length <= COPIED_MAX)
      for (; at < length; at++) {
        const code = text.charCodeAt(at)
        if (code > 0x7f) break
        bytes[start + at] = code
      }
    this.#length = start + (at === length ? length : bytes.write(text, start))
  }

  /**
   * Writes an item of a list in JSON, the one that begins at `start`: a number, a boolean or null.
   * @returns where the next one begins
   */
  writeItem(list: string, start: number): number {
    const bytes = this.#room(list.length - start)
    for (let at = start; ; at++) {
      const code = list.charCodeAt(at)
      if (code === COMMA || code === LIST_END) return at + 1
      bytes[this.#length++] = code
    }
  }

  /** @returns memory with room for so many UTF-16 units, of at most three bytes each, behind what was written */
  #room(units: number): Buffer {
    const needed = this.#length + 3 * units
    if (needed > this.#bytes.length) {
      const larger = Buffer.allocUnsafeSlow(2 * needed)
      this.#bytes.copy(larger, 0, 0, this.#length)
      this.#bytes = larger
    }
    return this.#bytes
  }
}
