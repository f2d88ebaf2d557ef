// Requests of one turn of the event loop that take about the same time are sent in one message, and answered in one: a message costs
// the two nodes and the bus more than what is in it.
import { chunkBytesOf } from './chunk-bytes.ts'
import { GROUP_REQUESTS_MAX, REPLY_MS_MAX } from './limits.ts'
import type { NodeLink } from './node-link.ts'
import type { ForwardedRequest, Reply } from './protocol.ts'

interface Waiting {
  request: ForwardedRequest
  resolve(reply: Reply): void
  reject(error: unknown): void
}

/** Of a request beside its texts and its body; and what it counts at least, so that its answer has so much room in the reply. */
const REQUEST_BYTES = 512
const ANSWER_BYTES = 4_096
/** UTF-8 takes at most so many for a UTF-16 unit. */
const BYTES_PER_UNIT = 3

export class RequestGroups {
  readonly #link: NodeLink
  readonly #subject: string
  #waiting: Waiting[] = []
  #waitingBytes = 0

  /** @param subject to which all of them are sent */
  constructor(link: NodeLink, subject: string) {
    this.#link = link
    this.#subject = subject
  }

  /** Sends a request, with its body in it. @throws UnansweredError, ForeignMessageError as `NodeLink.ask` */
  ask(request: ForwardedRequest): Promise<Reply> {
    const bytes = bytesOf(request)
    const isFull = this.#waitingBytes + bytes > chunkBytesOf(this.#link.connection)
    if (isFull || this.#waiting.length >= GROUP_REQUESTS_MAX) this.#flush()
    if (this.#waiting.length === 0) setImmediate(() => this.#flush())
    this.#waitingBytes += bytes
    const { promise, resolve, reject } = Promise.withResolvers<Reply>()
    this.#waiting.push({ request, resolve, reject })
    return promise
  }

  #flush(): void {
    const group = this.#waiting
    this.#waiting = []
    this.#waitingBytes = 0
    if (group.length > 0) void this.#send(group)
  }

  /** Never rejects. */
  async #send(group: readonly Waiting[]): Promise<void> {
    try {
      const requests = group.map(({ request }) => request)
      const replies = await this.#link.askTogether(this.#subject, requests, REPLY_MS_MAX)
      for (const [index, reply] of replies.entries()) group[index]?.resolve(reply)
    } catch (error) {
      for (const { reject } of group) reject(error)
    }
  }
}

/** How long its message is at most. */
function bytesOf({ path, query, headers, client, body }: ForwardedRequest): number {
  let units = path.length + query.length + client.length
  for (const name in headers) units += name.length + (headers[name]?.length ?? 0)
  return Math.max(ANSWER_BYTES, REQUEST_BYTES + BYTES_PER_UNIT * units + (body?.length ?? 0))
}
