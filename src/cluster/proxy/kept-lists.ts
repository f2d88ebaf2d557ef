// Tells other nodes which lists this one keeps: it answers at the subject of each of them.
import type { ListWatcher } from '../../http/response/cursors.ts'
import type { Bus } from '../bus.ts'
import type { NodeAddress } from './node-gate.ts'
import { type Answering, answerAt } from './questions.ts'

export class KeptLists implements ListWatcher {
  /** By the name of each list that is kept; null: no other node knows of it yet. */
  readonly #subscriptions = new Map<string, Answering | null>()
  /** And the address of this node. Null: the bus was not reached yet. */
  #opened: { bus: Bus; address: () => NodeAddress } | null = null

  /** Begins to answer. Subscriptions come again by themselves after the connection was lost, or where the bus has denied them. */
  open(bus: Bus, address: () => NodeAddress): void {
    this.#opened = { bus, address }
    this.#subscribeAll()
    bus.watch.onConnected(() => this.#subscribeAll())
  }

  kept(name: string): void {
    const opened = this.#opened
    // While it is away the client would keep what it is to send, without a bound.
    const isThere = opened?.bus.watch.isConnected && !opened.bus.connection.isClosed()
    const answering = isThere
      ? answerAt(opened.bus.connection, opened.bus.names.list(name), opened.address)
      : null
    this.#subscriptions.set(name, answering)
  }

  dropped(name: string): void {
    this.#subscriptions.get(name)?.unsubscribe()
    this.#subscriptions.delete(name)
  }

  #subscribeAll(): void {
    for (const [name, subscription] of this.#subscriptions) if (subscription === null) this.kept(name)
  }
}
