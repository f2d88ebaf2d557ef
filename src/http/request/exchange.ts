// In: a request whose answer is not there at once. Out: the count of those under way, a body whose memory is given back when
// nobody reads it any more, and a start that no other request of the same packet can harm. Never answers.

import type { Reply } from '../response/reply.ts'
import type { IncomingBody } from './body.ts'

/** Requests being answered. */
export class Exchanges {
  open = 0
}

/** One request on its way to its answer. */
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

  /** Must be called where the engine's handler ends before the answer is made. */
  wait(body: IncomingBody | null = null): void {
    if (body !== null) this.#body = body
    if (this.#isOpen) return
    this.#isOpen = true
    this.#all.open++
    this.reply.detach(() => {
      this.#close()
      // A handler that runs still reads it.
      if (!this.#isRunning) this.#body?.release()
    })
  }

  /** The handler of its route runs from here on, until `finish`. */
  run(): void {
    this.#isRunning = true
  }

  /**
   * Calls `start` once the engine is through with the packet that the request came in; not at all where the client has gone
   * by then. Where a second request follows in the same packet the engine closes the connection: then nothing was done.
   */
  defer(start: () => void): void {
    this.reply.pause()
    setImmediate(() => {
      if (!this.reply.aborted) start()
    })
  }

  /** It is answered. */
  finish(): void {
    this.#body?.release()
    this.#close()
  }

  #close(): void {
    if (this.#isOpen) this.#all.open--
    this.#isOpen = false
  }
}
