import { recordFrom } from '../../lib/record.ts'
import { threadCpuMs, WorkSlice } from '../../lib/turns.ts'
import type { Market } from '../../market/market.ts'
import { BYE_REASONS } from '../../schema/api/stream.ts'
import { ServiceError } from '../../schema/errors.ts'
import { controlFrame, type StreamFormat } from '../encode/stream-frame.ts'
import {
  FOLLOW_AGE_MS_MAX,
  FOLLOW_FLUSH_MS_DEFAULT,
  FOLLOW_HEARTBEAT_MS,
  FOLLOW_STALLED_MS_MAX,
  FOLLOWERS_MAX,
  OVERLOAD_STREAMS_SHARE,
  WINDOW_EVERY_MS,
  WINDOWS_MAX,
  WINDOWS_OF_CLIENT_MAX,
} from '../limits.ts'
import { retryAfterMs } from '../overload.ts'
import { tryAgain } from '../response/rate-limit-headers.ts'
import type { Channel, StreamSnapshot } from './channel.ts'
import { Delivery } from './delivery.ts'
import {
  type DisconnectReason,
  Follower,
  type FollowerOwner,
  type StreamWriter,
  type Subscription,
} from './follower.ts'
import { Subscriptions } from './subscriptions.ts'
import { WindowChannel } from './window-channel.ts'

export interface FollowOptions {
  /** How long after a flush the next one may follow, so that changes are sent together. A change that comes later than that
   *  waits only until the event at hand is done, as every change does with 0. */
  flushMs: number
  heartbeatMs: number
  stalledMsMax: number
  ageMsMax: number
  followersMax: number
  /** A monotonic clock, ms. */
  now: () => number
  /** The one that heartbeats and the age of streams follow, where the market waits; default: `now`. */
  ageNow?: (() => number) | undefined
  /** Whoever takes the market on calls `deliver` after each step: nothing is sent in the middle of one. */
  isStepped?: boolean
}

/** How often the age and the silence of streams are checked, bars that close with time alone, and windows. */
const SWEEP_MS_MAX = WINDOW_EVERY_MS
/** A flush that works longer than this goes on after the requests that have come meanwhile, and is followed by a pause of its length,
 *  less what requests have had between its slices: followers of a market that changes faster than they can be told get half of the
 *  thread, if nobody else wants it. */
const FLUSH_SLICE_MS = 5
/** Between two slices requests take what they need, but no more than so many times the next slice: followers get a quarter at least. */
const OTHERS_SHARE_MAX = 3

const NOBODY: FollowerOwner = { key: '', client: '' }

const tooMany = (sentence: string, limit: number): ServiceError =>
  tryAgain('read_rate_limited', sentence, SWEEP_MS_MAX, { limit })

/**
 * Sends the changes of the market to all streams. Writes happen in a flush, on a timer, or to one stream in its own handler: the
 * HTTP engine batches both. A stream has a position in each channel instead of a queue, so a stalled one costs only what its
 * socket holds.
 */
export class Broadcaster {
  readonly #market: Market
  readonly #options: FollowOptions
  readonly #followers = new Set<Follower>()
  readonly #subscriptions: Subscriptions
  readonly #delivery: Delivery
  /** How often something was written to a stream. */
  writes = 0
  #isFlushScheduled = false
  /** What is left of the flush that has begun; null: none has. */
  #rest: Generator<void> | null = null
  /** When the latest flush began, its work so far, that of others since, its latest slice, and the thread's processor time at the end
   *  of that. */
  #startedAtMs = 0
  #workMs = 0
  #othersMs = 0
  #slice: WorkSlice
  #sliceEndMs = 0
  /** The earliest time of the next flush. */
  #nextFlushAtMs = 0
  /** Between two sweeps; 0: one goes before each step of the market. */
  readonly #sweepMs: number
  #sweeper: NodeJS.Timeout | null = null
  #isDraining = false
  readonly disconnects: Record<DisconnectReason, number> = recordFrom(BYE_REASONS, () => 0)

  constructor(market: Market, options: Partial<FollowOptions> = {}) {
    this.#market = market
    this.#subscriptions = new Subscriptions(market)
    this.#delivery = new Delivery(market)
    this.#options = {
      flushMs: FOLLOW_FLUSH_MS_DEFAULT,
      heartbeatMs: FOLLOW_HEARTBEAT_MS,
      stalledMsMax: FOLLOW_STALLED_MS_MAX,
      ageMsMax: FOLLOW_AGE_MS_MAX,
      followersMax: FOLLOWERS_MAX,
      now: () => performance.now(),
      ...options,
    }
    this.#slice = new WorkSlice(FLUSH_SLICE_MS, this.#options.now)
    const { isStepped, stalledMsMax, heartbeatMs } = this.#options
    this.#sweepMs = isStepped ? 0 : Math.max(1, Math.min(SWEEP_MS_MAX, stalledMsMax / 4, heartbeatMs / 4))
  }

  /** Open streams. */
  get size(): number {
    return this.#followers.size
  }

  /** With which key each of them was opened; empty: without one. */
  keys(): string[] {
    return Array.from(this.#followers, ({ owner }) => owner.key)
  }

  /** Streams whose socket is full. */
  get stalled(): number {
    let count = 0
    for (const { stalledAtMs } of this.#followers) if (stalledAtMs !== null) count++
    return count
  }

  /** Throws 429 if there are as many streams as are allowed, and 503 once the server ends. */
  admit(): void {
    if (this.#isDraining)
      throw new ServiceError('draining', 'The server is shutting down.', {}, { 'Retry-After': '1' })
    if (this.#followers.size < this.#options.followersMax) return
    const limit = this.#options.followersMax
    throw tooMany(`All ${limit} streams are in use; try again later.`, limit)
  }

  /** The window itself, or the same one where somebody follows it already. Throws 429 if as many are followed as are allowed. */
  window(channel: WindowChannel, client: string): WindowChannel {
    const found = this.#subscriptions.find(channel.key)
    const known = found instanceof WindowChannel ? found : null
    const followed = this.#subscriptions.windowsOf(client)
    // Those that others follow count too: two clients that hand theirs to one another would take all.
    if (followed.size >= WINDOWS_OF_CLIENT_MAX && (known === null || !followed.has(known)))
      throw tooMany(
        `You follow ${WINDOWS_OF_CLIENT_MAX} different windows, as many as one client may; end one of them.`,
        WINDOWS_OF_CLIENT_MAX,
      )
    if (known !== null) return known
    if (this.#subscriptions.windowCount < WINDOWS_MAX) return channel
    throw tooMany(`All ${WINDOWS_MAX} different windows are in use; try again later.`, WINDOWS_MAX)
  }

  /** The channel itself, or the same one where somebody follows it already. */
  known<Followed extends Channel>(channel: Followed): Followed {
    return (this.#subscriptions.find(channel.key) as Followed | null) ?? channel
  }

  connect(writer: StreamWriter, format: StreamFormat, owner: FollowerOwner = NOBODY): Follower {
    const { now, ageNow = now } = this.#options
    const follower = new Follower(writer, format, {
      now,
      startedAtMs: ageNow(),
      nextGap: this.#delivery.nextGap,
      generation: this.#delivery.generation,
      owner,
      onWrite: () => {
        this.writes++
      },
    })
    this.#followers.add(follower)
    writer.onClosed(() => this.#remove(follower))
    writer.onWritable(() => {
      follower.stalledAtMs = null
      this.#scheduleFlush()
    })
    if (this.#followers.size === 1) this.#start()
    this.#delivery.tellOpenGaps(follower)
    return follower
  }

  /**
   * Subscribes a follower to a channel. Must be called in the follower's own handler: what is there is sent at once.
   * @param start the rows to send first, or the position after which to go on.
   */
  subscribe(follower: Follower, channel: Channel, start: StreamSnapshot | number): void {
    const subscription = this.#subscriptions.add(follower, channel, start)
    // What is read once in a while is never resumed.
    if (typeof start === 'number' && !channel.isPaced) this.#delivery.tellGapsSince(follower, start)
    if (follower.canWrite) this.#serve(follower, subscription)
  }

  /** Returns false if there was no such subscription. */
  unsubscribe(follower: Follower, channelName: string): boolean {
    return this.#subscriptions.remove(follower, channelName)
  }

  /** Something that is followed has changed without the market. */
  wake(): void {
    if (this.#followers.size > 0) this.#scheduleFlush()
  }

  /** @param seq undefined while there is no position to resume from. */
  heartbeat(follower: Follower, seq: number | undefined): void {
    this.#delivery.heartbeat(follower, seq)
  }

  /** Up to where a follower has been sent everything, or undefined while it is still to be sent a snapshot. */
  positionOf(follower: Follower): number | undefined {
    return this.#subscriptions.positionOf(follower)
  }

  /** Sends what has changed, and heartbeats that are due. For a market that goes on in steps: streams are up to date before the next. */
  deliver(): void {
    if (this.#followers.size === 0) return
    this.#sweep()
    this.#isFlushScheduled = false
    for (const _ of this.#serveAll());
  }

  /** Ends every stream. */
  close(reason: DisconnectReason): void {
    this.#isDraining ||= reason === 'draining'
    for (const follower of this.#followers) this.#disconnect(follower, reason)
  }

  /** Ends some streams of a server that has too much to do: those that began last, who have the least to lose. */
  endLatest(): void {
    const count = Math.ceil(this.#followers.size * OVERLOAD_STREAMS_SHARE)
    const latest = count === 0 ? [] : [...this.#followers].slice(-count)
    for (const [at, follower] of latest.entries())
      this.#disconnect(follower, 'overloaded', { retryAfterMs: retryAfterMs((at + 0.5) / count) })
  }

  /** Begins to watch the market, with the first follower. */
  #start(): void {
    if (this.#options.isStepped) return
    this.#sweeper = setInterval(() => this.#sweep(), this.#sweepMs)
    this.#market.watch(() => {
      if (!this.#isFlushScheduled) this.#scheduleFlush()
    })
  }

  /** Ends watching, with the last follower. */
  #stop(): void {
    if (this.#sweeper !== null) clearInterval(this.#sweeper)
    this.#sweeper = null
    this.#market.watch(null)
  }

  #scheduleFlush(): void {
    if (this.#isFlushScheduled) return
    this.#isFlushScheduled = true
    // What has changed since that one began is sent by another, after its pause.
    if (this.#rest === null) this.#startFlushIn()
  }

  #startFlushIn(): void {
    const waitMs = this.#nextFlushAtMs - this.#options.now()
    if (waitMs <= 0) setImmediate(this.#flush)
    else setTimeout(this.#flush, waitMs)
  }

  /** Begins a flush, or goes on with the one that has begun, for a slice of time. */
  readonly #flush = (): void => {
    const { flushMs, now } = this.#options
    const beforeMs = threadCpuMs()
    if (this.#rest === null) {
      this.#isFlushScheduled = false
      this.#rest = this.#serveAll()
      this.#startedAtMs = now()
      this.#workMs = 0
      this.#othersMs = 0
      this.#sliceEndMs = beforeMs
    }
    const othersMs = beforeMs - this.#sliceEndMs
    this.#othersMs += othersMs
    this.#slice = new WorkSlice(Math.max(FLUSH_SLICE_MS, othersMs / OTHERS_SHARE_MAX), now)
    const isDone = this.#rest.next().done === true
    this.#sliceEndMs = threadCpuMs()
    this.#workMs += this.#sliceEndMs - beforeMs
    if (!isDone) {
      setImmediate(this.#flush)
      return
    }
    this.#rest = null
    const pauseMs = this.#workMs < FLUSH_SLICE_MS ? 0 : Math.max(0, this.#workMs - this.#othersMs)
    this.#nextFlushAtMs = Math.max(this.#startedAtMs + flushMs, now() + pauseMs)
    if (this.#isFlushScheduled) this.#startFlushIn()
  };

  /** Serves every follower who has something to be sent, as many at each step as a slice has time for. */
  *#serveAll(): Generator<void> {
    this.#delivery.tellGaps(this.#followers)
    this.#subscriptions.markChanged()
    this.#delivery.beginFlush()
    yield* this.#serveTabs()
    yield* this.#serveDue()
    this.#serveWindows()
    this.#delivery.endFlush()
  }

  *#serveTabs(): Generator<void> {
    // Whoever comes between two slices is served when it subscribes. An iterator that outlives a step would make an object for each.
    const waiting = [...this.#subscriptions.tabFollowers].reverse()
    for (let follower = waiting.pop(); follower !== undefined; follower = waiting.pop()) {
      this.#serveTabsOf(follower)
      if (this.#slice.isOver) yield
    }
  }

  #serveTabsOf(follower: Follower): void {
    if (follower.stalledAtMs !== null) return
    for (const subscription of follower.tabs) this.#serve(follower, subscription)
  }

  /** Serves the followers of tokens that have changed. */
  *#serveDue(): Generator<void> {
    const { dueFollowers } = this.#subscriptions
    for (const follower of dueFollowers) {
      for (const subscription of follower.due) {
        if (follower.stalledAtMs !== null) break
        this.#serve(follower, subscription)
      }
      if (follower.due.size === 0) dueFollowers.delete(follower)
      if (this.#slice.isOver) yield
    }
  }

  /** Serves windows whose time has come, for a slice of time; the others in the next flush, so that they do not hold up the changes. */
  #serveWindows(): void {
    const slice = new WorkSlice(FLUSH_SLICE_MS, this.#options.now)
    const { dueWindows } = this.#subscriptions
    for (const [subscription, follower] of dueWindows) {
      if (follower.stalledAtMs !== null) continue
      if (slice.isOver) {
        this.#scheduleFlush()
        break
      }
      dueWindows.delete(subscription)
      this.#serve(follower, subscription)
      if (follower.stalledAtMs !== null) dueWindows.set(subscription, follower)
    }
  }

  #serve(follower: Follower, subscription: Subscription): void {
    const progress = this.#delivery.serve(follower, subscription)
    if (progress === 'more') this.#scheduleFlush()
    else if (progress === 'too_slow') this.#disconnect(follower, 'slow_consumer')
  }

  /** Ends streams that are too old or too slow, and sends heartbeats to the others. */
  #sweep(): void {
    const { now, ageNow = now, stalledMsMax, ageMsMax, heartbeatMs } = this.#options
    const nowMs = now()
    const agedMs = ageNow()
    // One that the next sweep would send too late is sent now.
    const heartbeatBeforeMs = agedMs + this.#sweepMs - heartbeatMs
    for (const follower of this.#followers) {
      const { stalledAtMs } = follower
      if (stalledAtMs !== null && nowMs - stalledAtMs > stalledMsMax)
        this.#disconnect(follower, 'slow_consumer')
      else if (agedMs - follower.startedAtMs > ageMsMax) this.#disconnect(follower, 'max_age')
      else if (stalledAtMs === null && follower.heartbeatAtMs <= heartbeatBeforeMs) {
        follower.heartbeatAtMs = agedMs
        this.heartbeat(follower, this.positionOf(follower))
      }
    }
    if (this.#subscriptions.markElapsed()) this.#scheduleFlush()
  }

  /** @param told further members of the last message */
  #disconnect(follower: Follower, reason: DisconnectReason, told: object = {}): void {
    const fields = { event: 'bye', reason, seq: this.positionOf(follower), ...told }
    this.#remove(follower)
    this.disconnects[reason]++
    follower.writer.end(controlFrame(follower.format, fields), reason)
  }

  #remove(follower: Follower): void {
    if (!this.#followers.delete(follower)) return
    follower.isClosed = true
    this.#subscriptions.removeAll(follower)
    if (this.#followers.size === 0) this.#stop()
  }
}
