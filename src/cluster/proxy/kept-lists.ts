// Tells other nodes which lists this one keeps: it answers at the subject of each of them.
import type { ListWatcher } from '../../http/response/cursors.ts'
import type { BusNames } from '../bus.ts'
import type { LastingSubscription } from './lasting-subscription.ts'
import type { NodeAddress } from './node-gate.ts'
import { type AskingBus, answerAt } from './questions.ts'

export interface KeptListsBus extends AskingBus {
  names: BusNames
  /** Of this node. */
  address(): NodeAddress
}

export class KeptLists implements ListWatcher {
  /** By the name of each list that is kept; null: no other node knows of it yet. */
  readonly #subscriptions = new Map<string, LastingSubscription | null>()
  /** Null: the bus was not reached yet. */
  #bus: KeptListsBus | null = null

  /** Begins to answer. Subscriptions come again by themselves after the connection was lost, or where the bus has denied them. */
  open(bus: KeptListsBus): void {
    this.#bus = bus
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
    if (this.#bus === null || !this.#bus.watch.isConnected || this.#bus.connection.isClosed()) return null
    const { connection, names, address } = this.#bus
    return answerAt(connection, names.list(name), address)
  }
}
