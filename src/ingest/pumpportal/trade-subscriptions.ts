import { UPSTREAM_KEYS_PER_MESSAGE_MAX } from '../limits.ts'

export interface SubscriptionMessage {
  method: 'subscribeTokenTrade' | 'unsubscribeTokenTrade'
  keys: string[]
}

/** The mints whose trades are subscribed to, and the messages that PumpPortal needs for it. When full, the oldest is dropped. */
export class TradeSubscriptions {
  /** The oldest first. */
  readonly #mints = new Set<string>()
  readonly #mintsMax: number

  constructor(mintsMax: number) {
    this.#mintsMax = mintsMax
  }

  get size(): number {
    return this.#mints.size
  }

  /** Adds a mint. @returns the messages to send. */
  add(mint: string): SubscriptionMessage[] {
    if (this.#mints.has(mint)) return []
    this.#mints.add(mint)
    const messages: SubscriptionMessage[] = [{ method: 'subscribeTokenTrade', keys: [mint] }]
    if (this.#mints.size <= this.#mintsMax) return messages
    const [oldest] = this.#mints
    this.#mints.delete(oldest)
    return [...messages, { method: 'unsubscribeTokenTrade', keys: [oldest] }]
  }

  /** The messages to send on a new connection, for all mints. */
  subscribeAll(): SubscriptionMessage[] {
    const mints = [...this.#mints]
    const messages: SubscriptionMessage[] = []
    for (let from = 0; from < mints.length; from += UPSTREAM_KEYS_PER_MESSAGE_MAX) {
      const keys = mints.slice(from, from + UPSTREAM_KEYS_PER_MESSAGE_MAX)
      messages.push({ method: 'subscribeTokenTrade', keys })
    }
    return messages
  }
}
