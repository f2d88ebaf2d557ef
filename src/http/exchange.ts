// In: a request whose answer is not there at once. Out: the count of those under way, and a body whose memory is given back
// when nobody reads it any more. Never answers.
import type { IncomingBody } from './body.ts'
import type { Reply } from './reply.ts'

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
    this.reply.outlive(() => {
      this.#close()
      // A handler that runs still reads it.
      if (!this.#isRunning) this.#body?.release()
    })
  }

  /** The handler of its route runs from here on, until `finish`. */
  run(): void {
    this.#isRunning = true
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
