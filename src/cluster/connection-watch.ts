// Whether the connection to the bus is there now, and when it is there again.
import type { NatsConnection } from '@nats-io/transport-node'

export class ConnectionWatch {
  #isConnected = true
  readonly #onConnected = new Set<() => void>()

  /** @param connection a connection that is there. It is watched until it is closed. */
  constructor(connection: NatsConnection) {
    void this.#watch(connection)
  }

  get isConnected(): boolean {
    return this.#isConnected
  }

  /** Calls `act` each time that the connection was lost and is there again. @returns ends that */
  onConnected(act: () => void): () => void {
    this.#onConnected.add(act)
    return () => this.#onConnected.delete(act)
  }

  async #watch(connection: NatsConnection): Promise<void> {
    for await (const { type } of connection.status()) {
      if (type === 'disconnect' || type === 'staleConnection' || type === 'close') this.#isConnected = false
      if (type !== 'reconnect') continue
      this.#isConnected = true
      for (const act of this.#onConnected) act()
    }
    this.#isConnected = false
  }
}
