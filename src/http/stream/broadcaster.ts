// In: channels of the market, and followers of them. Out: to each, its opening rows and then every row that changes,
// coalesced to the newest. A follower is a number for each channel, not a queue: a stalled one costs what its socket holds.
// Writes from a timer, or to a follower in its own handler; never to others from inside a handler, where the HTTP engine
// would not batch the writes.
import { assert } from '../../lib/assert.ts'
import type { MarketEngine } from '../../market/types.ts'
import { ServiceError } from '../../schema/errors.ts'
import { controlFrame, type StreamFormat } from '../encode/stream-frame.ts'
import {
  FOLLOW_AGE_MS_MAX,
  FOLLOW_FLUSH_MS_DEFAULT,
  FOLLOW_HEARTBEAT_MS,
  FOLLOW_STALLED_MS_MAX,
  FOLLOW_WRITES_MAX,
  FOLLOWERS_MAX,
} from '../limits.ts'
import type { Channel, Chunk, StreamPosition, StreamSnapshot } from './channel.ts'

export interface FollowOptions {
  /** How long a change may wait for others to be sent with it, counted from the last flush: one that comes later than that
   *  waits, as with 0, until the event at hand is done. */
  flushMs: number
  heartbeatMs: number
  stalledMsMax: number
  ageMsMax: number
  followersMax: number
  /** The process's own time, ms. */
  now: () => number
}

/** What a stream is written to. */
export interface StreamWriter {
  /** False when the socket is full: what was written is kept, and `onWritable` is called once there is room. */
  write(bytes: Buffer): boolean
  /** Ends an answer that is whole. */
  end(bytes: Buffer, reason: DisconnectReason): void
  onWritable(resume: () => void): void
  onClosed(forget: () => void): void
}

export type DisconnectReason = 'draining' | 'slow_consumer' | 'max_age'

/** What one follower follows of one channel. */
interface Subscription {
  channel: Channel
  position: StreamPosition
  /** Rows that still come before any change. */
  snapshot: StreamSnapshot | null
  /** True from a resync on until it has seen everything once: one who is lost again by then is too slow. */
  resyncing: boolean
}

/** One stream: an HTTP answer that stays open, or a WebSocket. */
export class Follower {
  readonly writer: StreamWriter
  readonly format: StreamFormat
  readonly subscriptions = new Map<string, Subscription>()
  /** Subscriptions to a token that has changed. */
  readonly due = new Set<Subscription>()
  /** Subscriptions to a tab, where something changes all the time. */
  tabs: Subscription[] = []
  startedAtMs: number
  heartbeatAtMs: number
  /** When the socket became full, or null while it takes what it is given. */
  stalledAtMs: number | null = null
  isGone = false

  constructor(writer: StreamWriter, format: StreamFormat, nowMs: number) {
    this.writer = writer
    this.format = format
    this.startedAtMs = nowMs
    this.heartbeatAtMs = nowMs
  }
}

/** How often followers are looked at for their age, their silence, and bars that time has closed. */
const SWEEP_MS_MAX = 1_000
/** A flush of so much work is followed by a pause of the same length, so that requests have half of the process. A shorter
 *  one needs none: each turn of the event loop serves the requests that wait before it flushes again. What counts is this
 *  thread's work: one that others kept from it is late as it is. */
const LONG_FLUSH_MS = 5

/** Processor time of this thread so far. */
function workedMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1_000
}

export class Broadcaster {
  readonly #market: MarketEngine
  readonly #options: FollowOptions
  readonly #followers = new Set<Follower>()
  /** Those with a subscription to a tab, and those with a changed token: who is served in a flush. */
  readonly #ofTabs = new Set<Follower>()
  readonly #due = new Set<Follower>()
  readonly #channels = new Map<string, { channel: Channel; followers: Map<Follower, Subscription> }>()
  readonly #namesByMint = new Map<string, Set<string>>()
  /** Changes up to here have made their tokens' subscribers due. */
  #markedSeq = 0
  /** The step from one cursor to the newest change, which nearly all followers of a tab take together. */
  #step: { from: StreamPosition; chunk: Chunk } | null = null
  #isScheduled = false
  /** Not before this is there another flush. */
  #nextFlushAtMs = 0
  #sweeper: NodeJS.Timeout | null = null
  readonly disconnects: Record<DisconnectReason, number> = { draining: 0, slow_consumer: 0, max_age: 0 }

  constructor(market: MarketEngine, options: Partial<FollowOptions> = {}) {
    this.#market = market
    this.#options = {
      flushMs: FOLLOW_FLUSH_MS_DEFAULT,
      heartbeatMs: FOLLOW_HEARTBEAT_MS,
      stalledMsMax: FOLLOW_STALLED_MS_MAX,
      ageMsMax: FOLLOW_AGE_MS_MAX,
      followersMax: FOLLOWERS_MAX,
      now: () => performance.now(),
      ...options,
    }
  }

  get size(): number {
    return this.#followers.size
  }

  get stalled(): number {
    let count = 0
    for (const { stalledAtMs } of this.#followers) if (stalledAtMs !== null) count++
    return count
  }

  /** Throws 429 when there is no room for one more. */
  admit(): void {
    if (this.#followers.size < this.#options.followersMax) return
    const limit = this.#options.followersMax
    throw new ServiceError(
      'read_rate_limited',
      `All ${limit} streams are in use; try again later.`,
      { limit, retryAfterMs: SWEEP_MS_MAX },
      { 'Retry-After': '1' },
    )
  }

  connect(writer: StreamWriter, format: StreamFormat): Follower {
    const follower = new Follower(writer, format, this.#options.now())
    this.#followers.add(follower)
    writer.onClosed(() => this.#remove(follower))
    writer.onWritable(() => {
      follower.stalledAtMs = null
      this.#wake()
    })
    if (this.#sweeper === null) this.#start()
    return follower
  }

  /**
   * Subscribes a follower to a channel: after the opening rows or, without them, from `since` on. Called in the
   * follower's own handler: what is there already is sent at once.
   */
  subscribe(follower: Follower, channel: Channel, start: StreamSnapshot | number): void {
    this.unsubscribe(follower, channel.name)
    const seq = typeof start === 'number' ? start : this.#market.seq
    const subscription: Subscription = {
      channel: this.#shared(channel),
      position: { seq, barMs: 0, state: '' },
      snapshot: typeof start === 'number' ? null : start,
      resyncing: false,
    }
    follower.subscriptions.set(channel.name, subscription)
    this.#channels.get(channel.name)!.followers.set(follower, subscription)
    if (channel.mint === null) {
      follower.tabs = [...follower.tabs, subscription]
      this.#ofTabs.add(follower)
    } else {
      follower.due.add(subscription)
      this.#due.add(follower)
    }
    if (this.#isReady(follower)) this.#serve(follower, subscription)
  }

  /** False when there was no such subscription. */
  unsubscribe(follower: Follower, name: string): boolean {
    const subscription = follower.subscriptions.get(name)
    if (subscription === undefined) return false
    follower.subscriptions.delete(name)
    follower.due.delete(subscription)
    follower.tabs = follower.tabs.filter((tab) => tab !== subscription)
    if (follower.tabs.length === 0) this.#ofTabs.delete(follower)
    const { channel, followers } = this.#channels.get(name)!
    followers.delete(follower)
    if (followers.size > 0) return true
    this.#channels.delete(name)
    const names = this.#namesByMint.get(channel.mint ?? '')
    names?.delete(name)
    if (names?.size === 0) this.#namesByMint.delete(channel.mint!)
    return true
  }

  /** Tells a follower something of its stream. */
  tell(follower: Follower, fields: object): void {
    if (!follower.isGone) this.#write(follower, controlFrame(follower.format, fields))
  }

  /** @param seq undefined while there is no position to go on from. */
  heartbeat(follower: Follower, seq: number | undefined): void {
    this.tell(follower, { event: 'heartbeat', seq, ts: this.#market.timeMs })
  }

  /** Says goodbye to everybody. */
  close(reason: DisconnectReason): void {
    for (const follower of this.#followers) this.#disconnect(follower, reason)
  }

  /** The channel that other followers of the same name have, so that what is made for one serves all. */
  #shared(channel: Channel): Channel {
    const known = this.#channels.get(channel.name)
    if (known !== undefined) return known.channel
    this.#channels.set(channel.name, { channel, followers: new Map() })
    if (channel.mint === null) return channel
    if (this.#namesByMint.size === 0) this.#markedSeq = this.#market.seq
    const names = this.#namesByMint.get(channel.mint) ?? new Set()
    this.#namesByMint.set(channel.mint, names.add(channel.name))
    return channel
  }

  // ---- time

  #start(): void {
    const { stalledMsMax, heartbeatMs } = this.#options
    const sweepMs = Math.max(1, Math.min(SWEEP_MS_MAX, stalledMsMax / 4, heartbeatMs / 4))
    this.#sweeper = setInterval(() => this.#sweep(), sweepMs)
    this.#market.watch(() => {
      if (!this.#isScheduled) this.#wake()
    })
  }

  #halt(): void {
    clearInterval(this.#sweeper!)
    this.#sweeper = null
    this.#market.watch(null)
  }

  /** Sees to it that there will be a flush. */
  #wake(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    const waitMs = this.#nextFlushAtMs - this.#options.now()
    if (waitMs <= 0) setImmediate(this.#flush)
    else setTimeout(this.#flush, waitMs)
  }

  #flush = (): void => {
    this.#isScheduled = false
    const { flushMs, now } = this.#options
    const startedAtMs = now()
    const workedBeforeMs = workedMs()
    this.#markChanged()
    this.#step = null
    for (const follower of this.#ofTabs) {
      if (follower.stalledAtMs !== null) continue
      for (const subscription of follower.tabs) this.#serve(follower, subscription)
    }
    this.#step = null
    for (const follower of this.#due) {
      for (const subscription of follower.due) {
        if (follower.stalledAtMs !== null) break
        this.#serve(follower, subscription)
      }
      if (follower.due.size === 0) this.#due.delete(follower)
    }
    const workMs = workedMs() - workedBeforeMs
    const pauseMs = workMs < LONG_FLUSH_MS ? 0 : workMs
    this.#nextFlushAtMs = Math.max(startedAtMs + flushMs, now() + pauseMs)
  }

  /** Makes subscribers of tokens that changed due. */
  #markChanged(): void {
    if (this.#namesByMint.size === 0) return
    const since = this.#markedSeq
    this.#markedSeq = this.#market.seq
    const makeDue = (names: Iterable<string>) => {
      for (const name of names) this.#makeDue(name)
    }
    if (since < this.#market.oldestSince) for (const names of this.#namesByMint.values()) makeDue(names)
    else this.#market.changedMints(since, (mint) => makeDue(this.#namesByMint.get(mint) ?? []))
  }

  #makeDue(name: string): void {
    for (const [follower, subscription] of this.#channels.get(name)!.followers) {
      follower.due.add(subscription)
      this.#due.add(follower)
    }
  }

  /** Ends what is too old or too slow, and says to the others that they live. */
  #sweep(): void {
    const nowMs = this.#options.now()
    const { stalledMsMax, ageMsMax, heartbeatMs } = this.#options
    for (const follower of this.#followers) {
      const { stalledAtMs } = follower
      if (stalledAtMs !== null && nowMs - stalledAtMs > stalledMsMax)
        this.#disconnect(follower, 'slow_consumer')
      else if (nowMs - follower.startedAtMs > ageMsMax) this.#disconnect(follower, 'max_age')
      else if (stalledAtMs === null && nowMs - follower.heartbeatAtMs >= heartbeatMs) {
        follower.heartbeatAtMs = nowMs
        this.heartbeat(follower, this.seqOf(follower))
      }
    }
    for (const [name, { channel }] of this.#channels) if (channel.hasMoved()) this.#makeDue(name)
    if (this.#due.size > 0) this.#wake()
  }

  /** Up to where a follower has been sent everything that it follows; undefined while that is nothing yet, or opening rows
   *  are still to come. */
  seqOf(follower: Follower): number | undefined {
    const { subscriptions, tabs, due } = follower
    if (subscriptions.size === 0) return undefined
    // Of a token that is not due nothing has changed up to where all were last looked at.
    let seq = subscriptions.size === tabs.length ? this.#market.seq : this.#markedSeq
    for (const subscription of subscriptions.values()) {
      if (subscription.snapshot !== null) return undefined
      if (subscription.channel.mint === null || due.has(subscription))
        seq = Math.min(seq, subscription.position.seq)
    }
    return seq
  }

  // ---- one follower

  #isReady(follower: Follower): boolean {
    return follower.stalledAtMs === null && !follower.isGone
  }

  /** Sends what a subscription has not seen, as far as the socket takes it. */
  #serve(follower: Follower, subscription: Subscription): void {
    const step = this.#step
    if (step !== null && step.from === subscription.position && subscription.snapshot === null) {
      subscription.resyncing = false
      if (this.#isReady(follower)) this.#send(follower, subscription, step.chunk)
      return
    }
    for (let writes = 0; writes < FOLLOW_WRITES_MAX; writes++) {
      if (!this.#isReady(follower)) return
      if (!this.#advance(follower, subscription)) {
        follower.due.delete(subscription)
        return
      }
    }
    this.#wake()
  }

  /** Sends one piece; false when there is none. */
  #advance(follower: Follower, subscription: Subscription): boolean {
    const { channel, snapshot } = subscription
    if (snapshot !== null) {
      const { chunk, isLast } = snapshot.next()
      this.#send(follower, subscription, chunk)
      if (!isLast) return true
      subscription.snapshot = null
      // Over a WebSocket the last snapshot says that it is the last; lines of NDJSON have no head to say so.
      if (follower.format === 'ndjson') this.heartbeat(follower, chunk.next.seq)
      return true
    }
    if (channel.isLost(subscription.position)) {
      this.#resync(follower, subscription)
      return true
    }
    const chunk = channel.changes(subscription.position)
    if (chunk === null) {
      subscription.resyncing = false
      return false
    }
    const isNewest = channel.mint === null && chunk.next.seq === this.#market.seq
    this.#step = isNewest ? { from: subscription.position, chunk } : null
    this.#send(follower, subscription, chunk)
    return true
  }

  /** Sends a piece; of one in several messages as many as the socket takes, and its reader stands after those. */
  #send(follower: Follower, subscription: Subscription, chunk: Chunk): void {
    const frames = chunk.frames(follower.format)
    for (const [index, { bytes, next }] of frames.entries()) {
      this.#write(follower, bytes)
      if (this.#isReady(follower) || index === frames.length - 1) continue
      subscription.position = next
      return
    }
    subscription.position = chunk.next
  }

  /** Tells the follower that it missed changes, and sends every row anew. */
  #resync(follower: Follower, subscription: Subscription): void {
    if (subscription.resyncing) {
      this.#disconnect(follower, 'slow_consumer')
      return
    }
    subscription.resyncing = true
    subscription.snapshot = subscription.channel.reopen()
    const channel = follower.format === 'ndjson' ? undefined : subscription.channel.name
    // No position: who is cut off before the last of the rows that follow could not go on from it.
    this.tell(follower, { event: 'resync', channel })
  }

  #write(follower: Follower, bytes: Buffer): void {
    if (!follower.writer.write(bytes)) follower.stalledAtMs ??= this.#options.now()
  }

  #disconnect(follower: Follower, reason: DisconnectReason): void {
    const fields = { event: 'bye', reason, seq: this.seqOf(follower) }
    this.#remove(follower)
    this.disconnects[reason]++
    follower.writer.end(controlFrame(follower.format, fields), reason)
  }

  #remove(follower: Follower): void {
    if (!this.#followers.delete(follower)) return
    follower.isGone = true
    for (const name of [...follower.subscriptions.keys()]) this.unsubscribe(follower, name)
    this.#ofTabs.delete(follower)
    this.#due.delete(follower)
    assert(follower.subscriptions.size === 0, 'a follower that is gone follows nothing')
    if (this.#followers.size === 0) this.#halt()
  }
}
