import type { Market } from '../../market/market.ts'
import { type Gap, tellGap } from '../../schema/event.ts'
import { controlFrame, type StreamFormat } from '../encode/stream-frame.ts'
import { FOLLOW_WRITES_MAX } from '../limits.ts'
import type { Chunk, StreamPosition } from './chunk.ts'
import type { Follower, Subscription } from './follower.ts'

/**
 * How far a subscription was served. `current`: it has been sent everything. `stalled`: its socket is full or closed. `more`:
 * it has more to be sent in the next flush. `too_slow`: it missed changes twice in a row.
 */
export type Progress = 'current' | 'stalled' | 'more' | 'too_slow'

/** Sends followers what they have not seen yet: snapshots, changes, resyncs, and gaps that began or ended. */
export class Delivery {
  readonly #market: Market
  /** The chunk that led the last follower of a tab to the newest change: nearly all others are at the same position. */
  #shared: { from: StreamPosition; chunk: Chunk } | null = null
  /** Where the market was when the flush began that runs: followers of tabs are served up to here, so that all are sent the same,
   *  however long it takes. Else null. */
  #flushSeq: number | null = null
  /** Up to this number of `gapChanges` every follower has been told; -1 while some are still to be told of others. */
  #gapsTold = 0
  #generationTold = 0

  constructor(market: Market) {
    this.#market = market
  }

  /** From here on followers of tabs are served up to where the market is now. */
  beginFlush(): void {
    this.#flushSeq = this.#market.seq
  }

  endFlush(): void {
    this.#flushSeq = null
    this.#shared = null
  }

  /** Sends what a subscription has not seen, as far as the socket takes it. */
  serve(follower: Follower, subscription: Subscription): Progress {
    const shared = this.#shared
    if (shared !== null && shared.from === subscription.position && subscription.snapshot === null) {
      subscription.isResyncing = false
      if (follower.canWrite) send(follower, subscription, shared.chunk)
      return 'current'
    }
    for (let writes = 0; writes < FOLLOW_WRITES_MAX; writes++) {
      if (!follower.canWrite) return 'stalled'
      const progress = this.#advance(follower, subscription)
      if (progress === 'current') follower.due.delete(subscription)
      if (progress !== 'more') return progress
    }
    return 'more'
  }

  /** @param seq undefined while there is no position to resume from. */
  heartbeat(follower: Follower, seq: number | undefined): void {
    follower.writeControl({ event: 'heartbeat', seq, ts: this.#market.timeMs })
  }

  /** The number of `gapChanges` of a stream that opens now: only later ones are told. */
  get nextGap(): number {
    return this.#market.gapChanges(null).next
  }

  get generation(): number {
    return this.#market.generation
  }

  /** Tells all followers of gaps that began or ended; those whose socket is full at a later call. */
  tellGaps(followers: Iterable<Follower>): void {
    const { nextGap, generation } = this
    if (nextGap === this.#gapsTold && generation === this.#generationTold) return
    this.#gapsTold = nextGap
    this.#generationTold = generation
    // Nearly all followers have been told the same so far, so their frames are made once.
    const frames = new Map<string, readonly Buffer[]>()
    for (const follower of followers) {
      this.#renumber(follower)
      if (follower.nextGap === nextGap && follower.resumedGap >= follower.firstGap) continue
      if (!follower.canWrite) {
        this.#gapsTold = -1
        continue
      }
      const key = `${follower.format} ${follower.nextGap}`
      const made =
        frames.get(key) ?? this.#gapFrames(this.#market.gapChanges(follower.nextGap).gaps, follower.format)
      frames.set(key, made)
      for (const frame of made) follower.write(frame, 'control')
      follower.nextGap = nextGap
      this.#tellEarlierGaps(follower)
    }
  }

  /** Tells a follower that begins of the gaps that go on. */
  tellOpenGaps(follower: Follower): void {
    this.#tell(follower, this.#market.gaps(1).open)
  }

  /** Tells a follower that resumes of gaps that ended while it was away: each once, however many channels it resumes, and at a later
   *  `tellGaps` if its socket is full. */
  tellGapsSince(follower: Follower, seq: number): void {
    this.#renumber(follower)
    follower.resumedGap = Math.min(follower.resumedGap, this.#market.gapChangeAt(seq))
    if (follower.canWrite) this.#tellEarlierGaps(follower)
    else this.#gapsTold = -1
  }

  /** A market that took the place of another numbers its gap changes anew: what a follower was told of them before counts for nothing, and
   *  the next `tellGaps` tells it of all that are known. */
  #renumber(follower: Follower): void {
    if (follower.generation === this.generation) return
    follower.generation = this.generation
    follower.firstGap = 0
    follower.nextGap = 0
    follower.resumedGap = 0
  }

  /** Those that ended since it resumed, and behind them those that go on, so that whoever takes them in order ends with what is so now. */
  #tellEarlierGaps(follower: Follower): void {
    const { resumedGap, firstGap } = follower
    if (resumedGap >= firstGap) return
    follower.firstGap = resumedGap
    const changes = this.#market.gapChanges(resumedGap, firstGap).gaps
    const ended = changes.filter(({ toMs }) => toMs !== null)
    if (ended.length > 0) this.#tell(follower, [...ended, ...this.#market.gaps(1).open])
  }

  #tell(follower: Follower, gaps: readonly Gap[]): void {
    for (const frame of this.#gapFrames(gaps, follower.format)) follower.write(frame, 'control')
  }

  #gapFrames(gaps: readonly Gap[], format: StreamFormat): Buffer[] {
    const ts = this.#market.timeMs
    return gaps.map((gap) =>
      controlFrame(format, { event: 'gap', ...tellGap(gap), ...(gap.isHealed && { healed: true }), ts }),
    )
  }

  /** Sends the next chunk, if there is one. */
  #advance(follower: Follower, subscription: Subscription): Progress {
    const { channel } = subscription
    if (subscription.snapshot !== null) {
      this.#sendSnapshot(follower, subscription, subscription.snapshot.next())
      return 'more'
    }
    if (channel.isLost(subscription.position)) return resync(follower, subscription)
    const asOf = this.#flushSeq ?? this.#market.seq
    const chunk = channel.changes(subscription.position, asOf)
    if (chunk === null) {
      subscription.isResyncing = false
      // A window that has not changed shows a later market than it did.
      if (channel.readSeq !== undefined)
        subscription.position = { ...subscription.position, seq: channel.readSeq }
      return 'current'
    }
    const isNewest = channel.mint === null && chunk.next.seq >= asOf
    this.#shared = isNewest ? { from: subscription.position, chunk } : null
    send(follower, subscription, chunk)
    return 'more'
  }

  #sendSnapshot(
    follower: Follower,
    subscription: Subscription,
    { chunk, isLast }: { chunk: Chunk; isLast: boolean },
  ): void {
    send(follower, subscription, chunk)
    if (!isLast) return
    subscription.snapshot = null
    // The last snapshot message of a WebSocket is marked as such. NDJSON rows have no head, so a heartbeat marks the end.
    if (follower.format === 'ndjson') this.heartbeat(follower, chunk.next.seq)
  }
}

/** Writes the frames of a chunk until the socket is full. The position moves behind the last one written. */
function send(follower: Follower, subscription: Subscription, chunk: Chunk): void {
  const frames = chunk.frames(follower.format)
  const kind = subscription.snapshot === null && !subscription.channel.isPaced ? 'changes' : 'rows'
  const last = frames.at(-1)
  for (const frame of frames) {
    follower.write(frame.bytes, kind)
    if (follower.canWrite || frame === last) continue
    subscription.position = frame.next
    return
  }
  subscription.position = chunk.next
}

/** Tells a follower that it missed changes, and begins to send every row again. */
function resync(follower: Follower, subscription: Subscription): Progress {
  if (subscription.isResyncing) return 'too_slow'
  subscription.isResyncing = true
  subscription.snapshot = subscription.channel.reopen()
  const channel = follower.format === 'ndjson' ? undefined : subscription.channel.name
  // Without a position: a client that is cut off before the last row must not resume from here.
  follower.writeControl({ event: 'resync', channel })
  return 'more'
}
