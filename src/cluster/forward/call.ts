// One request of another node while it is carried out here: its answer is read as far as it is asked for.

import type { RelayedResponse } from '../../http/response/relayed-response.ts'
import { within } from '../../lib/wait.ts'
import { HOLD_MS } from './limits.ts'
import type { Position, Reply } from './protocol.ts'

/** Written by the node that sends the answer to its client, or of no use to it. */
const OWN_HEADERS = new Set([
  'access-control-allow-origin',
  'access-control-expose-headers',
  'connection',
  'x-request-id',
])

export interface CallOptions {
  nodeId: string
  chunkBytes: number
  /** What the request has changed, once it is answered with `status`. */
  position(status: number): Promise<Position | null>
}

export class Call {
  readonly #options: CallOptions
  readonly #response: RelayedResponse
  /** The chunk that was asked for last. */
  #last: { at: number; reply: Promise<Reply> } | null = null
  /** When it was asked for last, on the monotonic clock. */
  askedAtMs = performance.now()

  constructor(response: RelayedResponse, options: CallOptions) {
    this.#response = response
    this.#options = options
  }

  /** Whether the answer has begun and is not read to its end. */
  get isOpen(): boolean {
    return this.#response.status !== 0 && this.#hasMore
  }

  get #hasMore(): boolean {
    return !this.#response.isEnded || this.#response.waitingBytes > 0
  }

  /** The chunk `at`: the one after the last, or the last again. Rejects where the answer cannot be read. */
  chunk(at: number): Promise<Reply> {
    this.askedAtMs = performance.now()
    if (this.#last?.at === at) return this.#last.reply
    if (at !== (this.#last === null ? 0 : this.#last.at + 1))
      return Promise.reject(new Error(`chunk ${at} of an answer is not there any more`))
    const before = this.#last
    const reply = this.#make(at === 0)
    const asked = { at, reply }
    this.#last = asked
    return reply.then((made) => {
      // Not a chunk: the same number is asked for again.
      if (made.kind === 'pending' && this.#last === asked) this.#last = before
      return made
    })
  }

  /** Gives the rest up. */
  stop(): void {
    this.#response.abort()
  }

  async #make(isFirst: boolean): Promise<Reply> {
    await this.#collect()
    const { nodeId, chunkBytes } = this.#options
    const response = this.#response
    const { status, isCut, headers } = response
    if (isCut) throw new Error('the answer was given up')
    if (isFirst && status === 0) return { kind: 'pending', nodeId }
    const bytes = response.take(chunkBytes)
    const more = this.#hasMore
    if (!isFirst) return { kind: 'chunk', bytes, more }
    const position = await this.#options.position(status)
    return {
      ...{ kind: 'answer', nodeId, status, bytes, more, position },
      headers: headers.filter(([name]) => !OWN_HEADERS.has(name.toLowerCase())),
    }
  }

  /** Waits until a chunk is full, the answer has ended, or HOLD_MS have passed. */
  async #collect(): Promise<void> {
    const response = this.#response
    const { chunkBytes } = this.#options
    const isThere = () => response.isEnded || response.waitingBytes >= chunkBytes
    if (isThere()) return
    const { promise, resolve } = Promise.withResolvers<void>()
    response.onProgress = () => {
      if (isThere()) resolve()
    }
    await within(HOLD_MS, promise)
  }
}
