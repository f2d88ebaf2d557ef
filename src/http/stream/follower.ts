import type { BYE_REASONS } from '../../schema/api/stream.ts'
import { controlFrame, type StreamFormat } from '../encode/stream-frame.ts'
import type { Channel, StreamSnapshot } from './channel.ts'
import type { StreamPosition } from './chunk.ts'

export type DisconnectReason = (typeof BYE_REASONS)[number]

/**
 * What bytes are: `changes`, which nearly all followers of a channel are sent one after another; `rows`, a snapshot or a window, which
 * few others are sent; `control`, of this stream alone.
 */
export type WriteKind = 'changes' | 'rows' | 'control'

/** The socket or the open response that a stream is written to. */
export interface StreamWriter {
  /** Returns false if the socket is full: the bytes are kept, and `onWritable` is called once there is room. */
  write(bytes: Buffer, kind?: WriteKind): boolean
  /** Writes the last bytes and ends the stream. */
  end(bytes: Buffer, reason: DisconnectReason): void
  onWritable(onWritable: () => void): void
  onClosed(onClosed: () => void): void
}

/** One channel that a follower is subscribed to. */
export interface Subscription {
  channel: Channel
  /** Up to where it has been sent everything. */
  position: StreamPosition
  /** Rows that are still to be sent before any change, or null. */
  snapshot: StreamSnapshot | null
  /** Whether it has missed changes and is being sent all rows again. If it misses changes meanwhile, it is too slow. */
  isResyncing: boolean
}

/** Who opened a stream. */
export interface FollowerOwner {
  /** Empty: without one. */
  key: string
  /** As its reads are counted, see `readerOf`. */
  client: string
}

export interface FollowerStart {
  /** A monotonic clock, ms. */
  now: () => number
  /** By the clock that heartbeats and ages follow. */
  startedAtMs: number
  nextGap: number
  /** Of the market, whose numbers of gap changes these are. */
  generation: number
  owner: FollowerOwner
  onWrite(): void
}

/** One stream: an HTTP response that stays open, or a WebSocket. It has a position in each channel and no queue. */
export class Follower {
  readonly writer: StreamWriter
  readonly format: StreamFormat
  readonly startedAtMs: number
  readonly owner: FollowerOwner
  readonly #start: FollowerStart
  readonly subscriptions = new Map<string, Subscription>()
  /** Subscriptions to tokens that have changed since they were last served. */
  readonly due = new Set<Subscription>()
  /** Subscriptions to tabs, which change all the time: each flush serves them. */
  tabs: readonly Subscription[] = []
  heartbeatAtMs: number
  /** When the socket became full, or null while it takes what is written. */
  stalledAtMs: number | null = null
  isClosed = false
  /** From the first of these numbers of `gapChanges` up to the second it has been told. */
  firstGap: number
  nextGap: number
  /** From this number on it is to be told, because it resumed at such a position of the market. */
  resumedGap: number
  /** The generation of the market that these numbers are of. */
  generation: number

  constructor(writer: StreamWriter, format: StreamFormat, start: FollowerStart) {
    const { startedAtMs, nextGap, generation, owner } = start
    this.#start = start
    this.firstGap = nextGap
    this.nextGap = nextGap
    this.resumedGap = nextGap
    this.generation = generation
    this.writer = writer
    this.format = format
    this.startedAtMs = startedAtMs
    this.owner = owner
    this.heartbeatAtMs = startedAtMs
  }

  get canWrite(): boolean {
    return this.stalledAtMs === null && !this.isClosed
  }

  write(bytes: Buffer, kind: WriteKind): void {
    this.#start.onWrite()
    if (!this.writer.write(bytes, kind)) this.stalledAtMs ??= this.#start.now()
  }

  /** Writes a message about the stream itself, even if the socket is full. */
  writeControl(fields: object): void {
    if (!this.isClosed) this.write(controlFrame(this.format, fields), 'control')
  }
}
