// In: the chunks of request bodies, as the engine reads them. Out: each body as one buffer, or the error that says why it was
// not read to its end. Memory is bounded for each body, for each client, and over all connections together; so is the time
// that a body may take. Never looks at what a body says.
import type { HttpResponse } from 'uWebSockets.js'
import { ServiceError } from '../../schema/errors.ts'
import {
  BODIES_BYTES_MAX,
  BODY_BYTES_CHARGED_MIN,
  BODY_SWEEP_MS,
  CLIENT_BODIES_BYTES_MAX,
  DISCARDED_BYTES_MAX,
  OPERATOR_BODIES_BYTES_MAX,
} from '../limits.ts'

export interface BodyRequest {
  /** Whose memory it takes: a client, or null for feeds and operators, whose keys the server's owner gave out. */
  owner: string | null
  bytesMax: number
  /** Content-Length; 0 where it was not sent. Never more than `bytesMax`. */
  announcedBytes: number
  msMax: number
}

type Settle = (result: Buffer | ServiceError) => void

export const tooLarge = (bytesMax: number): ServiceError =>
  new ServiceError('payload_too_large', `The body is larger than ${bytesMax} bytes.`, { limit: bytesMax })

/** Bytes of bodies under way: so many in all, and so many for one owner. */
class BodyMemory {
  readonly #bytesMax: number
  readonly #ownerBytesMax: number
  readonly #byOwner = new Map<string, number>()
  #bytes = 0

  constructor(bytesMax: number, ownerBytesMax: number) {
    this.#bytesMax = bytesMax
    this.#ownerBytesMax = ownerBytesMax
  }

  get bytes(): number {
    return this.#bytes
  }

  /** @throws ServiceError `overloaded` when there is no room. */
  take(owner: string, bytes: number): void {
    const held = (this.#byOwner.get(owner) ?? 0) + bytes
    if (held > this.#ownerBytesMax || this.#bytes + bytes > this.#bytesMax) {
      throw new ServiceError(
        'overloaded',
        'The server holds as many request bodies as it may; try again.',
        { retryAfterMs: 1_000 },
        { 'Retry-After': '1' },
      )
    }
    this.#byOwner.set(owner, held)
    this.#bytes += bytes
  }

  giveBack(owner: string, bytes: number): void {
    const held = (this.#byOwner.get(owner) ?? 0) - bytes
    if (held > 0) this.#byOwner.set(owner, held)
    else this.#byOwner.delete(owner)
    this.#bytes -= bytes
  }
}

const OPERATORS = 'operators'

/** A body under way. Its memory is charged until `release`. */
export class IncomingBody {
  readonly #memory: BodyMemory
  readonly #owner: string
  readonly #capacityMax: number
  readonly #bytesMax: number
  readonly deadlineMs: number
  #settle: Settle | null
  #charged = 0
  #length = 0
  #buffer = new ArrayBuffer(0)

  constructor(memory: BodyMemory, request: BodyRequest, deadlineMs: number, settle: Settle) {
    this.#memory = memory
    this.#owner = request.owner ?? OPERATORS
    this.#bytesMax = request.bytesMax
    this.#capacityMax = request.announcedBytes > 0 ? request.announcedBytes : request.bytesMax
    this.deadlineMs = deadlineMs
    this.#settle = settle
    this.#charge(BODY_BYTES_CHARGED_MIN)
  }

  /** True until it was read to its end, refused or released. */
  get isOpen(): boolean {
    return this.#settle !== null
  }

  /** Takes the next chunk; its memory is the engine's and dies with the call. */
  take(chunk: ArrayBuffer, isLast: boolean): void {
    if (!this.isOpen) return
    const length = this.#length + chunk.byteLength
    if (length > this.#bytesMax) {
      this.refuse(tooLarge(this.#bytesMax))
      return
    }
    try {
      // Nearly all bodies come in one chunk.
      if (isLast && this.#length === 0) {
        this.#charge(length)
        this.#end(Buffer.from(new Uint8Array(chunk)))
        return
      }
      this.#grow(length)
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error
      this.refuse(error)
      return
    }
    new Uint8Array(this.#buffer).set(new Uint8Array(chunk), this.#length)
    this.#length = length
    if (isLast) this.#end(Buffer.from(this.#buffer, 0, length))
  }

  /** Ends it without its body; what comes yet is not kept. */
  refuse(error: ServiceError): void {
    this.#buffer = new ArrayBuffer(0)
    const settle = this.#settle
    this.#settle = null
    settle?.(error)
  }

  /** Gives its memory back; whoever asked for it hears no more of it. */
  release(): void {
    this.#settle = null
    this.#buffer = new ArrayBuffer(0)
    this.#memory.giveBack(this.#owner, this.#charged)
    this.#charged = 0
  }

  #end(body: Buffer): void {
    const settle = this.#settle
    this.#settle = null
    settle?.(body)
  }

  /** Doubles the buffer, so that many small chunks cost no more than one large one. What it replaces is freed at once, not
   *  when the garbage collector comes by. */
  #grow(length: number): void {
    if (length <= this.#buffer.byteLength) return
    const doubled = Math.max(2 * this.#buffer.byteLength, BODY_BYTES_CHARGED_MIN)
    const capacity = Math.max(length, Math.min(doubled, this.#capacityMax))
    this.#charge(capacity)
    this.#buffer = this.#buffer.transfer(capacity)
  }

  /** Charges up to `bytes` in all. */
  #charge(bytes: number): void {
    if (bytes <= this.#charged) return
    this.#memory.take(this.#owner, bytes - this.#charged)
    this.#charged = bytes
  }
}

/** Reads the bodies of all connections. */
export class BodyReader {
  readonly #clients = new BodyMemory(BODIES_BYTES_MAX, CLIENT_BODIES_BYTES_MAX)
  readonly #operators = new BodyMemory(OPERATOR_BODIES_BYTES_MAX, OPERATOR_BODIES_BYTES_MAX)
  readonly #open = new Set<IncomingBody>()
  #sweeper: NodeJS.Timeout | null = null

  /** Memory charged for bodies under way. */
  get heldBytes(): number {
    return this.#clients.bytes + this.#operators.bytes
  }

  /**
   * Reads the body of `res` and calls `settle` once with it or with what is wrong; never after it was released.
   * @throws ServiceError `overloaded`.
   */
  read(res: HttpResponse, request: BodyRequest, settle: Settle): IncomingBody {
    const memory = request.owner === null ? this.#operators : this.#clients
    const body = new IncomingBody(memory, request, performance.now() + request.msMax, settle)
    this.#open.add(body)
    this.#sweeper ??= setInterval(() => this.#sweep(), BODY_SWEEP_MS).unref()
    res.onData((chunk, isLast) => {
      body.take(chunk, isLast)
      if (!body.isOpen) this.#open.delete(body)
    })
    return body
  }

  /** Throws away what is past its time. One timer for all: a body that is there at once costs none. */
  #sweep(): void {
    const nowMs = performance.now()
    for (const body of this.#open) {
      if (body.isOpen && nowMs >= body.deadlineMs) {
        body.refuse(new ServiceError('body_timeout', 'The body did not arrive in time.'))
      }
      if (!body.isOpen) this.#open.delete(body)
    }
    if (this.#open.size > 0 || this.#sweeper === null) return
    clearInterval(this.#sweeper)
    this.#sweeper = null
  }
}

/** Reads a body without keeping any of it; calls back at its end, or when too much of it has come. The engine closes a
 *  connection that does not go on sending. */
export function discardBody(res: HttpResponse, done: () => void): void {
  let bytes = 0
  let isOpen = true
  res.onData((chunk, isLast) => {
    bytes += chunk.byteLength
    if (!isOpen || (!isLast && bytes < DISCARDED_BYTES_MAX)) return
    isOpen = false
    done()
  })
}
