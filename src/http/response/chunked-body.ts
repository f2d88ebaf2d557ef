// In: a large page. Out: its bytes a part at a time, as a socket takes them. One part of memory serves all readers, as
// what a socket does not take is made again: one who stalls costs the references to the rows of his page, and the rows
// that have changed since. Never joins a page: where others have it joined, that is what is sent.
import { assert } from '../../lib/assert.ts'
import type { Page } from '../../market/types.ts'
import { BODY_CHUNK_BYTES } from '../limits.ts'

const part = Buffer.allocUnsafeSlow(BODY_CHUNK_BYTES)

export class ChunkedBody {
  readonly #page: Page
  /** The line at which the last part began, and its offset. */
  #line = 0
  #lineAt = 0

  constructor(page: Page) {
    this.#page = page
  }

  get bytes(): number {
    return this.#page.bytes
  }

  /** The next bytes from `offset` on, which never goes back before the last one. Valid until any part is asked for. */
  partAt(offset: number): Buffer {
    assert(offset >= this.#lineAt && offset < this.bytes, 'a body is read once, from front to end')
    const { lines, joined } = this.#page
    if (joined !== null) return joined.subarray(offset)
    while (this.#lineAt + lines[this.#line].length <= offset) this.#lineAt += lines[this.#line++].length
    const rest = lines[this.#line].subarray(offset - this.#lineAt)
    if (rest.length >= BODY_CHUNK_BYTES) return rest
    part.set(rest)
    let length = rest.length
    for (let at = this.#line + 1; at < lines.length; at++) {
      const line = lines[at]
      if (length + line.length > BODY_CHUNK_BYTES) break
      part.set(line, length)
      length += line.length
    }
    return part.subarray(0, length)
  }

  /** The same page for another reader. */
  again(): ChunkedBody {
    return new ChunkedBody(this.#page)
  }

  /** All of it, for whoever must have it in one piece. */
  joined(): Buffer {
    return this.#page.ndjson
  }
}
