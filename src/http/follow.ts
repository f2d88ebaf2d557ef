// In: the market's tape, and clients that follow a tab of it. Out: to each, its rows and then every row that changes,
// coalesced to the newest. A follower is a number on the tape, not a queue: a stalled one costs what the socket holds.
// Writes only from a timer, never from inside another socket's handler, where the engine would not batch them.
import type { MarketDoor } from '../market/types.ts'
import type { Tab } from '../schema/vocabulary.ts'

/** How often changes are sent. */
const FLUSH_MS = 5
/** Rows in one write to a follower that catches up: bounds what one write can hold. */
const CATCH_UP_ROWS_MAX = 500
export const HEARTBEAT_MS = 15_000
/** A follower whose socket took nothing for this long is too slow: it gets `bye`. */
const STALLED_MS_MAX = 30_000
/** After this a stream ends with `bye`, so that load can move between servers. */
const AGE_MS_MAX = 3_600_000
/** Followers at once; one more gets `bye` at once. */
const FOLLOWERS_MAX = 10_000

/** What a stream is written to. */
export interface StreamWriter {
  /** False when the socket is full: what was written is kept, and `onWritable` is called once there is room. */
  write(bytes: Buffer | string): boolean
  /** Ends an answer that is whole. */
  end(bytes: string): void
  onWritable(resume: () => void): void
  onClosed(forget: () => void): void
}

interface Follower {
  writer: StreamWriter
  tab: Tab
  seq: number
  startedAtMs: number
  wroteAtMs: number
  /** When the socket became full, or null while it takes what it is given. */
  stalledAtMs: number | null
}

export type ByeReason = 'draining' | 'slow_consumer' | 'max_age'

const line = (fields: object): string => `${JSON.stringify(fields)}\n`

export class FollowHub {
  #market: MarketDoor
  #followers = new Set<Follower>()
  #timer: NodeJS.Timeout | null = null
  /** Times are the process's own, ms. */
  #now: () => number

  constructor(market: MarketDoor, now: () => number = () => performance.now()) {
    this.#market = market
    this.#now = now
  }

  get size(): number {
    return this.#followers.size
  }

  /**
   * Adds a follower that has been sent everything up to `seq`, or, with `since` older than the tape, gets `resync` and
   * the whole tab again.
   */
  add(writer: StreamWriter, tab: Tab, since: number): void {
    const nowMs = this.#now()
    const follower: Follower = {
      writer,
      tab,
      seq: since,
      startedAtMs: nowMs,
      wroteAtMs: nowMs,
      stalledAtMs: null,
    }
    if (this.#followers.size >= FOLLOWERS_MAX) {
      writer.end(line({ event: 'bye', reason: 'slow_consumer', seq: since }))
      return
    }
    this.#followers.add(follower)
    writer.onClosed(() => this.#remove(follower))
    writer.onWritable(() => {
      follower.stalledAtMs = null
    })
    if (this.#isLost(since)) this.#resync(follower)
    else this.#write(follower, line({ event: 'heartbeat', seq: since, ts: this.#market.timeMs }))
    this.#timer ??= setInterval(() => this.#flush(), FLUSH_MS)
  }

  /** Says goodbye to everybody. */
  close(reason: ByeReason): void {
    for (const follower of this.#followers) this.#bye(follower, reason)
  }

  /** A number from before the tape, or from another run of the server. */
  #isLost(since: number): boolean {
    return since < this.#market.oldestSince || since > this.#market.seq
  }

  #flush(): void {
    const nowMs = this.#now()
    /** What followers at the same place of the same tab are sent is made once. */
    const made = new Map<string, { bytes: Buffer; nextSeq: number }>()
    for (const follower of this.#followers) {
      if (follower.stalledAtMs !== null) {
        if (nowMs - follower.stalledAtMs > STALLED_MS_MAX) this.#bye(follower, 'slow_consumer')
        continue
      }
      if (nowMs - follower.startedAtMs > AGE_MS_MAX) {
        this.#bye(follower, 'max_age')
        continue
      }
      if (follower.seq < this.#market.seq) this.#advance(follower, made)
      if (nowMs - follower.wroteAtMs >= HEARTBEAT_MS) {
        this.#write(follower, line({ event: 'heartbeat', seq: follower.seq, ts: this.#market.timeMs }))
      }
    }
  }

  #advance(follower: Follower, made: Map<string, { bytes: Buffer; nextSeq: number }>): void {
    if (this.#isLost(follower.seq)) {
      this.#resync(follower)
      return
    }
    const key = `${follower.tab} ${follower.seq}`
    let changes = made.get(key)
    if (changes === undefined) {
      const { ndjson, nextSeq } = this.#market.changesSince(follower.seq, follower.tab, CATCH_UP_ROWS_MAX)
      changes = { bytes: ndjson, nextSeq }
      made.set(key, changes)
    }
    follower.seq = changes.nextSeq
    if (changes.bytes.length > 0) this.#write(follower, changes.bytes)
  }

  /** Tells the follower that it missed changes, and sends every row of its tab anew. */
  #resync(follower: Follower): void {
    const { tab } = follower
    const seq = this.#market.seq
    const limit = Math.max(1, this.#market.stats().tokens)
    const { ndjson } = this.#market.page({ tab, sort: 'hot', order: 'desc', offset: 0, limit })
    follower.seq = seq
    this.#write(follower, line({ event: 'resync', seq }))
    this.#write(follower, ndjson)
  }

  #write(follower: Follower, bytes: Buffer | string): void {
    const nowMs = this.#now()
    follower.wroteAtMs = nowMs
    if (!follower.writer.write(bytes)) follower.stalledAtMs ??= nowMs
  }

  #bye(follower: Follower, reason: ByeReason): void {
    this.#remove(follower)
    follower.writer.end(line({ event: 'bye', reason, seq: follower.seq }))
  }

  #remove(follower: Follower): void {
    this.#followers.delete(follower)
    if (this.#followers.size > 0 || this.#timer === null) return
    clearInterval(this.#timer)
    this.#timer = null
  }
}
