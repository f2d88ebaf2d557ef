// The body of an answer that another node makes: asked for chunk by chunk, as fast as the client reads.
import type { ChunkSource } from '../../http/response/send-chunks.ts'
import { KEEP_MS, REPLY_MS_MAX } from './limits.ts'
import type { NodeLink } from './node-link.ts'
import type { AnswerReply } from './protocol.ts'

export class RelayedBody implements ChunkSource {
  readonly #link: NodeLink
  readonly #subject: string
  readonly #call: string
  #first: Uint8Array | null
  /** Number of the chunk that is asked for next. */
  #at = 1
  #hasMore: boolean
  #isStopped = false
  #keeper: NodeJS.Timeout | null = null

  /** @param subject of the node that has the answer. @param call its name there */
  constructor(link: NodeLink, subject: string, call: string, { bytes, more }: AnswerReply) {
    this.#link = link
    this.#subject = subject
    this.#call = call
    this.#first = bytes
    this.#hasMore = more
  }

  async next(): Promise<Buffer | null> {
    this.#stopKeeping()
    const first = this.#first
    this.#first = null
    const bytes = first !== null && first.length > 0 ? first : await this.#ask()
    if (bytes === null) return null
    // Until the client has taken this, which may be long.
    this.#keeper = setInterval(() => this.#keep(), KEEP_MS).unref()
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
  }

  stop(): void {
    this.#stopKeeping()
    if (this.#hasMore && !this.#isStopped)
      this.#link.tell(this.#subject, { kind: 'cancel', call: this.#call })
    this.#isStopped = true
  }

  /** The next bytes that are there; null: the answer has ended. Rejects where the node does not answer. */
  async #ask(): Promise<Uint8Array | null> {
    while (this.#hasMore && !this.#isStopped) {
      const reply = await this.#link.askAgain(this.#subject, { kind: 'next', call: this.#call, at: this.#at })
      if (reply.kind !== 'chunk') throw new Error('the rest of the answer was lost')
      this.#at++
      this.#hasMore = reply.more
      if (reply.bytes.length > 0) return reply.bytes
    }
    return null
  }

  #keep(): void {
    // Where nobody is there the next chunk tells it.
    this.#link.ask(this.#subject, { kind: 'keep', call: this.#call }, REPLY_MS_MAX).catch(() => undefined)
  }

  #stopKeeping(): void {
    if (this.#keeper !== null) clearInterval(this.#keeper)
    this.#keeper = null
  }
}
