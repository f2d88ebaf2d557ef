// In: mints whose trades are wanted. Out: the subscription messages that bring them, at most so many mints at once: the
// oldest gives way. Never sends: the connection does.
import { UPSTREAM_KEYS_PER_MESSAGE_MAX } from '../limits.ts'

export interface SubscriptionMessage {
  method: 'subscribeTokenTrade' | 'unsubscribeTokenTrade'
  keys: string[]
}

export class TradeSubscriptions {
  /** In order of wanting, the oldest first. */
  private readonly mints = new Set<string>()
  private readonly keysMax: number

  constructor(keysMax: number) {
    this.keysMax = keysMax
  }

  get size(): number {
    return this.mints.size
  }

  /** Wants one more mint; answers what must be said upstream. */
  add(mint: string): SubscriptionMessage[] {
    if (this.mints.has(mint)) return []
    this.mints.add(mint)
    const messages: SubscriptionMessage[] = [{ method: 'subscribeTokenTrade', keys: [mint] }]
    if (this.mints.size <= this.keysMax) return messages
    const [oldest] = this.mints
    this.mints.delete(oldest)
    return [...messages, { method: 'unsubscribeTokenTrade', keys: [oldest] }]
  }

  /** What must be said on a new connection. */
  all(): SubscriptionMessage[] {
    const mints = [...this.mints]
    const messages: SubscriptionMessage[] = []
    for (let from = 0; from < mints.length; from += UPSTREAM_KEYS_PER_MESSAGE_MAX) {
      const keys = mints.slice(from, from + UPSTREAM_KEYS_PER_MESSAGE_MAX)
      messages.push({ method: 'subscribeTokenTrade', keys })
    }
    return messages
  }
}
