// Reads a follow stream line by line, and holds it to the API description.
import { checkConformance, checkStreamed } from './conformance/conformance.ts'

export type Line = Record<string, unknown> & { event?: string; mint?: string; seq?: number }

/** A stream read line by line. */
export class FollowReader {
  #abort = new AbortController()
  #lines: AsyncGenerator<Line>
  /** Of the answer, once its first line was read. */
  headers = new Headers()

  constructor(url: string) {
    this.#lines = this.#read(url)
  }

  async *#read(url: string): AsyncGenerator<Line> {
    const response = await fetch(url, { signal: this.#abort.signal })
    this.headers = response.headers
    const { pathname, search } = new URL(url)
    const { status, headers } = response
    checkConformance({ method: 'GET', path: pathname + search, status, headers, body: Buffer.alloc(0) })
    let rest = ''
    const decoder = new TextDecoder()
    for await (const chunk of response.body!) {
      const parts = (rest + decoder.decode(chunk, { stream: true })).split('\n')
      rest = parts.pop()!
      for (const part of parts) {
        checkStreamed('StreamLine', part)
        yield JSON.parse(part)
      }
    }
  }

  /** The next line; null at the end. */
  async next(): Promise<Line | null> {
    const { value, done } = await this.#lines.next()
    return done ? null : value
  }

  async until(enough: (line: Line) => boolean): Promise<Line> {
    for (;;) {
      const line = await this.next()
      if (line === null) throw new Error('the stream ended')
      if (enough(line)) return line
    }
  }

  close(): void {
    this.#abort.abort()
  }
}
