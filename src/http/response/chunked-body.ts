// Yields the bytes of a large page in chunks, as a socket takes them. All bodies share the memory of one chunk: what a socket does
// not take is copied again from the rows. So a slow reader holds its page's rows, not a copy of them.
import { assert } from '../../lib/assert.ts'
import type { Page } from '../../market/types.ts'
import { BODY_CHUNK_BYTES } from '../limits.ts'

const sharedChunk = Buffer.allocUnsafeSlow(BODY_CHUNK_BYTES)

export class ChunkedBody {
  readonly #page: Page
  /** The row in which the last chunk began, and the row's offset. */
  #line = 0
  #lineAt = 0

  constructor(page: Page) {
    this.#page = page
  }

  get bytes(): number {
    return this.#page.bytes
  }

  /** The next bytes from `offset` on, which must not be lower than before. Valid until the next call on any body. */
  chunkAt(offset: number): Buffer {
    assert(offset >= this.#lineAt && offset < this.bytes, 'a body is read once, from start to end')
    const { lines } = this.#page
    const rest = this.#seekLine(offset).subarray(offset - this.#lineAt)
    if (rest.length >= BODY_CHUNK_BYTES) return rest
    sharedChunk.set(rest)
    let length = rest.length
    for (let at = this.#line + 1; at < lines.length; at++) {
      const line = lines[at]
      if (line === undefined || length + line.length > BODY_CHUNK_BYTES) break
      sharedChunk.set(line, length)
      length += line.length
    }
    return sharedChunk.subarray(0, length)
  }

  /** Moves on to the row that holds the byte at `offset`. */
  #seekLine(offset: number): Buffer {
    const { lines } = this.#page
    for (;;) {
      const line = lines[this.#line]
      assert(line !== undefined, 'the rows of a page are as long as the page')
      if (offset < this.#lineAt + line.length) return line
      this.#lineAt += line.length
      this.#line++
    }
  }

  /** The same page, read from its start. */
  restart(): ChunkedBody {
    return new ChunkedBody(this.#page)
  }

  /** The whole body in one buffer. */
  joined(): Buffer {
    return this.#page.ndjson
  }
}
