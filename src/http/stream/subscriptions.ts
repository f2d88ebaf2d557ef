import { assert } from '../../lib/assert.ts'
import type { Market } from '../../market/market.ts'
import type { Channel, StreamSnapshot } from './channel.ts'
import type { Follower, Subscription } from './follower.ts'

/** A channel that has followers. */
interface ActiveChannel {
  channel: Channel
  followers: Map<Follower, Subscription>
}

const NONE: ReadonlyMap<Channel, number> = new Map()

/** Who follows which channel, and which followers have something to be sent. */
export class Subscriptions {
  readonly #market: Market
  readonly #channels = new Map<string, ActiveChannel>()
  readonly #channelsByMint = new Map<string, Set<ActiveChannel>>()
  /** Followers of at least one tab. */
  readonly tabFollowers = new Set<Follower>()
  /** Followers with a token that has changed. */
  readonly dueFollowers = new Set<Follower>()
  /** Subscriptions to windows whose time has come, with their followers. */
  readonly dueWindows = new Map<Subscription, Follower>()
  /** Different windows that are followed. */
  windowCount = 0
  /** By client; see `windowsOf`. */
  readonly #windowsByClient = new Map<string, Map<Channel, number>>()
  /** Followers of the tokens that changed up to here are marked as due. */
  #markedSeq = 0

  constructor(market: Market) {
    this.#market = market
  }

  /** @param start the rows to send first, or the position after which to go on. */
  add(follower: Follower, channel: Channel, start: StreamSnapshot | number): Subscription {
    this.remove(follower, channel.name)
    const active = this.#activate(channel)
    const subscription: Subscription = {
      channel: active.channel,
      position: { seq: typeof start === 'number' ? start : this.#market.seq, barMs: 0, state: '' },
      snapshot: typeof start === 'number' ? null : start,
      isResyncing: false,
    }
    follower.subscriptions.set(channel.name, subscription)
    active.followers.set(follower, subscription)
    if (channel.isPaced) {
      this.dueWindows.set(subscription, follower)
      this.#countWindow(follower, active.channel, 1)
    } else if (channel.mint === null) {
      follower.tabs = [...follower.tabs, subscription]
      this.tabFollowers.add(follower)
    } else {
      follower.due.add(subscription)
      this.dueFollowers.add(follower)
    }
    return subscription
  }

  /** The channel of that key, if somebody follows it. */
  find(key: string): Channel | null {
    return this.#channels.get(key)?.channel ?? null
  }

  /** The windows that a client follows, each with how many streams. */
  windowsOf(client: string): ReadonlyMap<Channel, number> {
    return this.#windowsByClient.get(client) ?? NONE
  }

  #countWindow({ owner: { client } }: Follower, channel: Channel, more: 1 | -1): void {
    const windows = this.#windowsByClient.get(client) ?? new Map<Channel, number>()
    const streams = (windows.get(channel) ?? 0) + more
    if (streams > 0) windows.set(channel, streams)
    else windows.delete(channel)
    if (windows.size > 0) this.#windowsByClient.set(client, windows)
    else this.#windowsByClient.delete(client)
  }

  /** Returns false if there was no such subscription. */
  remove(follower: Follower, name: string): boolean {
    const subscription = follower.subscriptions.get(name)
    if (subscription === undefined) return false
    follower.subscriptions.delete(name)
    follower.due.delete(subscription)
    this.dueWindows.delete(subscription)
    if (subscription.channel.isPaced) this.#countWindow(follower, subscription.channel, -1)
    follower.tabs = follower.tabs.filter((tab) => tab !== subscription)
    if (follower.tabs.length === 0) this.tabFollowers.delete(follower)
    const active = this.#channels.get(subscription.channel.key)
    assert(active !== undefined, 'a channel is active while it has followers')
    active.followers.delete(follower)
    if (active.followers.size === 0) this.#deactivate(active)
    return true
  }

  removeAll(follower: Follower): void {
    for (const name of [...follower.subscriptions.keys()]) this.remove(follower, name)
    this.tabFollowers.delete(follower)
    this.dueFollowers.delete(follower)
    assert(follower.subscriptions.size === 0, 'a closed follower has no subscriptions')
  }

  /** Marks the followers of tokens that have changed since the last call. */
  markChanged(): void {
    if (this.#channelsByMint.size === 0) return
    const since = this.#markedSeq
    this.#markedSeq = this.#market.seq
    if (since < this.#market.oldestSince) {
      for (const mint of this.#channelsByMint.keys()) this.#markMint(mint)
    } else this.#market.changedMints(since, (mint) => this.#markMint(mint))
  }

  /** Marks the followers of channels that the passing of time has changed. Returns whether any follower is due. */
  markElapsed(): boolean {
    for (const active of this.#channels.values()) if (active.channel.hasMoved?.()) this.#mark(active)
    return this.dueFollowers.size > 0 || this.dueWindows.size > 0
  }

  /** Up to where a follower has been sent everything, or undefined while it is still to be sent a snapshot. */
  positionOf(follower: Follower): number | undefined {
    const { subscriptions, due } = follower
    if (subscriptions.size === 0) return undefined
    let { seq } = this.#market
    for (const subscription of subscriptions.values()) {
      if (subscription.snapshot !== null) return undefined
      const { mint, isPaced } = subscription.channel
      if (isPaced && subscription.position.seq === 0) return undefined
      // A token that is not due has not changed up to `#markedSeq`.
      const isServed = mint !== null && !due.has(subscription)
      seq = Math.min(seq, isServed ? this.#markedSeq : subscription.position.seq)
    }
    return seq
  }

  /** The active channel of that name, so that all its followers share what is encoded for one of them. */
  #activate(channel: Channel): ActiveChannel {
    const known = this.#channels.get(channel.key)
    if (known !== undefined) return known
    const active: ActiveChannel = { channel, followers: new Map() }
    this.#channels.set(channel.key, active)
    if (channel.isPaced) this.windowCount++
    if (channel.mint === null) return active
    if (this.#channelsByMint.size === 0) this.#markedSeq = this.#market.seq
    const sameMint = this.#channelsByMint.get(channel.mint) ?? new Set()
    this.#channelsByMint.set(channel.mint, sameMint.add(active))
    return active
  }

  #deactivate(active: ActiveChannel): void {
    const { key, mint, isPaced } = active.channel
    this.#channels.delete(key)
    if (isPaced) this.windowCount--
    if (mint === null) return
    const sameMint = this.#channelsByMint.get(mint)
    sameMint?.delete(active)
    if (sameMint?.size === 0) this.#channelsByMint.delete(mint)
  }

  #markMint(mint: string): void {
    const channels = this.#channelsByMint.get(mint)
    if (channels === undefined) return
    for (const active of channels) this.#mark(active)
  }

  #mark({ channel, followers }: ActiveChannel): void {
    for (const [follower, subscription] of followers) {
      if (channel.isPaced) {
        this.dueWindows.set(subscription, follower)
        continue
      }
      follower.due.add(subscription)
      this.dueFollowers.add(follower)
    }
  }
}
