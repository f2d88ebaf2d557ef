// Tells other nodes which lists this one keeps: it answers at the subject of each of them.
import type { ListWatcher } from '../../http/response/cursors.ts'
import type { Bus } from '../bus.ts'
import type { LastingSubscription } from './lasting-subscription.ts'
import type { NodeAddress } from './node-gate.ts'
import { answerAt } from './questions.ts'

export class KeptLists implements ListWatcher {
  /** By the name of each list that is kept; null: no other node knows of it yet. */
  readonly #subscriptions = new Map<string, LastingSubscription | null>()
  /** And the address of this node. Null: the bus was not reached yet. */
  #opened: { bus: Bus; address: () => NodeAddress } | null = null

  /** Begins to answer. Subscriptions come again by themselves after the connection was lost, or where the bus has denied them. */
  open(bus: Bus, address: () => NodeAddress): void {
    this.#opened = { bus, address }
    this.#subscribeAll()
    bus.watch.onConnected(() => this.#subscribeAll())
  }

  kept(name: string): void {
    this.#subscriptions.set(name, this.#subscribe(name))
  }

  dropped(name: string): void {
    this.#subscriptions.get(name)?.unsubscribe()
    this.#subscriptions.delete(name)
  }

  #subscribeAll(): void {
    for (const [name, subscription] of this.#subscriptions) if (subscription === null) this.kept(name)
  }

  #subscribe(name: string): LastingSubscription | null {
    // The client would keep what it is to send until it is connected again, without a bound.
    if (this.#opened === null) return null
    const { bus, address } = this.#opened
    if (!bus.watch.isConnected || bus.connection.isClosed()) return null
    return answerAt(bus.connection, bus.names.list(name), address)
  }
}
