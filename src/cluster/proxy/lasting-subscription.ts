// A subscription that comes again where the bus has denied it: the operator may permit it while this process runs.
import type { Msg, NatsConnection, Subscription } from '@nats-io/transport-node'
import { DENIED_RETRY_MS } from '../limits.ts'

export class LastingSubscription {
  readonly #connection: NatsConnection
  readonly #subscribe: () => Subscription
  #subscription: Subscription
  #retry: NodeJS.Timeout | null = null
  #isEnded = false

  constructor(connection: NatsConnection, subject: string, onMessage: (message: Msg) => void) {
    const callback = (error: Error | null, message: Msg) => {
      if (error === null) onMessage(message)
      else this.#tryAgain()
    }
    this.#connection = connection
    this.#subscribe = () => connection.subscribe(subject, { callback })
    this.#subscription = this.#subscribe()
  }

  unsubscribe(): void {
    this.#isEnded = true
    if (this.#retry !== null) clearTimeout(this.#retry)
    this.#subscription.unsubscribe()
  }

  #tryAgain(): void {
    if (this.#isEnded || this.#retry !== null) return
    this.#retry = setTimeout(() => {
      this.#retry = null
      if (!this.#connection.isClosed()) this.#subscription = this.#subscribe()
    }, DENIED_RETRY_MS).unref()
  }
}
