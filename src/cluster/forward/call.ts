// One request of another node while it is carried out here: its answer is read as far as it is asked for.
import type { ClientRequest, IncomingMessage } from 'node:http'
import { HOLD_MS } from './limits.ts'
import type { Position, Reply } from './protocol.ts'

/** Written by the node that sends the answer to its client, or not valid for its connection. */
const OWN_HEADERS = new Set([
  'access-control-allow-origin',
  'access-control-expose-headers',
  'connection',
  'date',
  'keep-alive',
  'transfer-encoding',
  'uwebsockets',
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
  readonly #request: ClientRequest
  readonly #answered: Promise<IncomingMessage>
  #answer: IncomingMessage | null = null
  #iterator: AsyncIterator<Buffer> | null = null
  /** What was read and not asked for yet. */
  #waiting: Buffer[] = []
  #waitingBytes = 0
  #isEnded = false
  /** The next bytes, while they are being waited for. */
  #reading: Promise<void> | null = null
  /** The chunk that was asked for last. */
  #last: { at: number; reply: Promise<Reply> } | null = null
  /** When it was asked for last, on the monotonic clock. */
  askedAtMs = performance.now()

  constructor(request: ClientRequest, options: CallOptions) {
    this.#request = request
    this.#options = options
    this.#answered = new Promise((resolve, reject) => {
      request.on('response', resolve)
      request.on('error', reject)
    })
    // Seen by whoever asks for a chunk.
    this.#answered.catch(() => undefined)
  }

  /** Whether the answer has begun and is not read to its end. */
  get isOpen(): boolean {
    return this.#answer !== null && !this.#isEnded
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
    this.#isEnded = true
    this.#waiting = []
    this.#request.destroy()
  }

  async #make(isFirst: boolean): Promise<Reply> {
    await this.#collect()
    const { nodeId, chunkBytes } = this.#options
    const answer = this.#answer
    if (answer === null) return { kind: 'pending', nodeId }
    const all = Buffer.concat(this.#waiting)
    const bytes = all.subarray(0, chunkBytes)
    this.#waiting = all.length > chunkBytes ? [all.subarray(chunkBytes)] : []
    this.#waitingBytes = all.length - bytes.length
    const more = !this.#isEnded || this.#waitingBytes > 0
    if (!isFirst) return { kind: 'chunk', bytes, more }
    const status = answer.statusCode ?? 500
    const position = await this.#options.position(status)
    return { kind: 'answer', nodeId, status, headers: headersOf(answer), bytes, more, position }
  }

  /** Reads until a chunk is full, the answer has ended, or HOLD_MS have passed. */
  async #collect(): Promise<void> {
    const untilMs = performance.now() + HOLD_MS
    while (!this.#isEnded && this.#waitingBytes < this.#options.chunkBytes) {
      this.#reading ??= this.#read()
      const isRead = await isSettledWithin(this.#reading, untilMs - performance.now())
      if (!isRead) return
      this.#reading = null
    }
  }

  async #read(): Promise<void> {
    this.#answer ??= await this.#answered
    this.#iterator ??= this.#answer[Symbol.asyncIterator]()
    const { value, done } = await this.#iterator.next()
    if (done) {
      this.#isEnded = true
      return
    }
    this.#waiting.push(value)
    this.#waitingBytes += value.length
  }
}

/** False: not within that time. Rejects as `promise` does. */
async function isSettledWithin(promise: Promise<void>, ms: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), Math.max(0, ms))
  })
  try {
    return await Promise.race([promise.then(() => true), late])
  } finally {
    clearTimeout(timer)
  }
}

function headersOf({ rawHeaders }: IncomingMessage): [string, string][] {
  const headers: [string, string][] = []
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const [name = '', value = ''] = rawHeaders.slice(at, at + 2)
    if (!OWN_HEADERS.has(name.toLowerCase())) headers.push([name, Buffer.from(value, 'latin1').toString()])
  }
  return headers
}
