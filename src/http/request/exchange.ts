// The life of a request between its arrival and its answer: counted as in flight, its body's memory released at the end.
import type { Reply } from '../response/reply.ts'
import type { IncomingBody } from './body.ts'

/** How many requests are being answered. */
interface Exchanges {
  open: number
}

export class Exchange {
  readonly reply: Reply
  readonly #all: Exchanges
  #body: IncomingBody | null = null
  #isRunning = false
  #isOpen = false

  constructor(reply: Reply, all: Exchanges) {
    this.reply = reply
    this.#all = all
  }

  /** Must be called if the engine's handler returns before the answer is sent. Counts the request as in flight. */
  wait(body: IncomingBody | null = null): void {
    if (body !== null) this.#body = body
    if (this.#isOpen) return
    this.#isOpen = true
    this.#all.open++
    this.reply.detach(() => {
      this.#close()
      // A route that is running still reads the body.
      if (!this.#isRunning) this.#body?.release()
    })
  }

  /** Marks the route as running, until `finish`. */
  run(): void {
    this.#isRunning = true
  }

  /**
   * Calls `start` after the engine has read the packet that the request came in, unless the client has disconnected. If a
   * second request follows in the same packet, the engine closes the connection: then nothing has been carried out.
   * @param pauses false: goes on reading from the socket, so that a disconnect is noticed. A request that follows then closes
   *   the connection.
   */
  defer(start: () => void, pauses = true): void {
    if (pauses) this.reply.pause()
    setImmediate(() => {
      if (!this.reply.isClosed) start()
    })
  }

  /** Ends the exchange: the answer is sent. */
  finish(): void {
    this.#body?.release()
    this.#close()
  }

  #close(): void {
    if (this.#isOpen) this.#all.open--
    this.#isOpen = false
  }
}
