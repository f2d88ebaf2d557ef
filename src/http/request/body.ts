// Reads request bodies. Memory is bounded for each body, for each client and for all connections together, and so is the time
// that a body may take.

import { KeyedSums } from '../../lib/collections/keyed-sums.ts'
import { type Placed, PlacedList } from '../../lib/collections/placed-list.ts'
import { ServiceError } from '../../schema/errors.ts'
import type { EngineResponse } from '../engine.ts'
import {
  BODIES_BYTES_MAX,
  BODY_BYTES_CHARGED_MIN,
  BODY_SWEEP_MS,
  CLIENT_BODIES_BYTES_MAX,
  DISCARDED_BYTES_MAX,
  OPERATOR_BODIES_BYTES_MAX,
} from '../limits.ts'
import { overloaded } from '../response/rate-limit-headers.ts'

export interface BodyRequest {
  /** The client whose share of memory it takes, or null for feeds and operators, who have a share of their own. */
  owner: string | null
  bytesMax: number
  /** Content-Length, at most `bytesMax`; 0 if it was not sent. */
  announcedBytes: number
  msMax: number
}

type Settle = (result: Buffer | ServiceError) => void

export const tooLarge = (bytesMax: number): ServiceError =>
  new ServiceError('payload_too_large', `The body is larger than ${bytesMax} bytes.`, { limit: bytesMax })

/** Counts the memory of bodies that are being read, bounded in all and for each owner. */
class BodyMemory {
  readonly #bytesMax: number
  readonly #ownerBytesMax: number
  readonly #byOwner = new KeyedSums()
  #bytes = 0

  constructor(bytesMax: number, ownerBytesMax: number) {
    this.#bytesMax = bytesMax
    this.#ownerBytesMax = ownerBytesMax
  }

  get bytes(): number {
    return this.#bytes
  }

  /** @throws ServiceError `overloaded` if that is more than the bounds allow. */
  take(owner: string, bytes: number): void {
    if (this.#byOwner.get(owner) + bytes > this.#ownerBytesMax || this.#bytes + bytes > this.#bytesMax) {
      throw overloaded('The server is receiving as many request bodies as it has memory for; try again.')
    }
    this.#byOwner.add(owner, bytes)
    this.#bytes += bytes
  }

  release(owner: string, bytes: number): void {
    this.#byOwner.add(owner, -bytes)
    this.#bytes -= bytes
  }
}

const OPERATORS = 'operators'

/** A body that is being read. Its memory stays charged until `release`. */
export class IncomingBody implements Placed {
  place = -1
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

  /** Whether more chunks are expected: false once it is complete, refused or released. */
  get isOpen(): boolean {
    return this.#settle !== null
  }

  /** Copies the next chunk: the engine frees its memory after the call. */
  take(chunk: ArrayBuffer, isLast: boolean): void {
    if (!this.isOpen) return
    const length = this.#length + chunk.byteLength
    if (length > this.#bytesMax) {
      this.refuse(tooLarge(this.#bytesMax))
      return
    }
    try {
      // Nearly all bodies arrive in one chunk.
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

  /** Ends the body with an error. Later chunks are ignored. */
  refuse(error: ServiceError): void {
    this.#buffer = new ArrayBuffer(0)
    this.#end(error)
  }

  /** Frees the memory. `settle` is not called any more. */
  release(): void {
    this.#settle = null
    this.#buffer = new ArrayBuffer(0)
    this.#memory.release(this.#owner, this.#charged)
    this.#charged = 0
  }

  #end(result: Buffer | ServiceError): void {
    const settle = this.#settle
    this.#settle = null
    settle?.(result)
  }

  /** Doubles the buffer, so that many small chunks cost no more than one large one. The old memory is freed at once, without
   *  waiting for the garbage collector. */
  #grow(length: number): void {
    if (length <= this.#buffer.byteLength) return
    const doubled = Math.max(2 * this.#buffer.byteLength, BODY_BYTES_CHARGED_MIN)
    const capacity = Math.max(length, Math.min(doubled, this.#capacityMax))
    this.#charge(capacity)
    this.#buffer = this.#buffer.transfer(capacity)
  }

  /** Raises the charge to `bytes`. */
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
  readonly #open = new PlacedList<IncomingBody>()
  #sweeper: NodeJS.Timeout | null = null

  /** Memory charged for bodies that are being read or used. */
  get heldBytes(): number {
    return this.#clients.bytes + this.#operators.bytes
  }

  /**
   * Reads the body of `res`. Calls `settle` once, with the body or the error, unless it is released before.
   * @throws ServiceError `overloaded`.
   */
  read(res: EngineResponse, request: BodyRequest, settle: Settle): IncomingBody {
    const memory = request.owner === null ? this.#operators : this.#clients
    const body = new IncomingBody(memory, request, performance.now() + request.msMax, settle)
    this.#open.add(body)
    this.#sweeper ??= setInterval(() => this.#sweep(), BODY_SWEEP_MS).unref()
    res.onData((chunk, isLast) => {
      body.take(chunk, isLast)
      if (!body.isOpen) this.#open.remove(body)
    })
    return body
  }

  /** Refuses the bodies that are past their deadline. One timer serves all: a body that arrives at once needs none. */
  #sweep(): void {
    const nowMs = performance.now()
    for (const body of this.#open.toArray()) {
      if (body.isOpen && nowMs >= body.deadlineMs) {
        body.refuse(new ServiceError('body_timeout', 'The body did not arrive in time.'))
      }
      if (!body.isOpen) this.#open.remove(body)
    }
    if (this.#open.size > 0 || this.#sweeper === null) return
    clearInterval(this.#sweeper)
    this.#sweeper = null
  }
}

/** Reads a body and discards it. Calls `done` at its end, or once DISCARDED_BYTES_MAX have arrived. The engine closes a
 *  connection that stops sending. */
export function discardBody(res: EngineResponse, done: () => void): void {
  let bytes = 0
  let isOpen = true
  res.onData((chunk, isLast) => {
    bytes += chunk.byteLength
    if (!isOpen || (!isLast && bytes < DISCARDED_BYTES_MAX)) return
    isOpen = false
    done()
  })
}
