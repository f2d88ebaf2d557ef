// One streaming WebSocket: carries out the client's messages and writes what its subscriptions send.
import type { WebSocket } from 'uWebSockets.js'
import type { Market } from '../../market/market.ts'
import { STREAM_OPERATIONS } from '../../schema/api/stream.ts'
import { ServiceError } from '../../schema/errors.ts'
import { COMPRESSED_MESSAGE_BYTES_MIN, SUBSCRIPTIONS_MAX } from '../limits.ts'
import { type HttpNode, whenReached } from '../node.ts'
import { invalidParameter } from '../request/parameters.ts'
import { problemAnswer } from '../response/reply.ts'
import { toServiceError } from '../response/to-service-error.ts'
import { BarsChannel } from './bars-channel.ts'
import type { Broadcaster } from './broadcaster.ts'
import type { Channel, StreamSnapshot } from './channel.ts'
import { positionAt } from './chunk.ts'
import type { DisconnectReason, Follower, FollowerOwner, StreamWriter, WriteKind } from './follower.ts'
import { countSnapshotRows, MarketChannel } from './market-channel.ts'
import {
  type Message,
  notesOnSubscription,
  parseMessage,
  parseTopic,
  requiredWord,
  type Topic,
} from './stream-request.ts'
import type { SubmissionLog } from './submission-log.ts'
import { SubmissionsChannel } from './submissions-channel.ts'
import { TokenChannel } from './token-channel.ts'
import { CLOSE_GOING_AWAY, CLOSE_TRY_AGAIN_LATER } from './upgrade.ts'
import { WindowChannel } from './window-channel.ts'

export const STREAM_PATH = '/api/v1/stream'

export interface StreamSources {
  market: Market
  broadcaster: Broadcaster
  submissionLog: SubmissionLog
}

/** What a client was given when its socket was opened. */
export interface SocketTerms {
  format: 'json' | 'msgpack'
  owner: FollowerOwner
  /** Whether rows are compressed where that makes them smaller. */
  isCompressed: boolean
  /** Checks the client's key and counts a subscription: its rows and, unless it is free, one read. Throws 401 or 429. */
  countSubscription(isFree: boolean, rows: number): void
}

export interface SessionOptions extends StreamSources, SocketTerms {
  node: HttpNode
  onFault(error: unknown, requestId: string): void
}

/** RFC 6455, section 7.4.1, and the registry it refers to. */
const CLOSE_CODES: Readonly<Record<DisconnectReason, number>> = {
  draining: CLOSE_GOING_AWAY,
  slow_consumer: 1008,
  max_age: 1000,
  behind: CLOSE_TRY_AGAIN_LATER,
  overloaded: CLOSE_TRY_AGAIN_LATER,
}

/** The `id` of a message, for its reply, and what else that tells of the message. */
type Echo = { id?: string } & ReturnType<typeof notesOnSubscription>

export class StreamSession implements StreamWriter {
  readonly #ws: WebSocket<unknown>
  readonly #options: SessionOptions
  readonly #isBinary: boolean
  readonly #follower: Follower
  /** Channels whose first subscription was free; at most SUBSCRIPTIONS_MAX. */
  readonly #freeChannels = new Set<string>()
  #isClosed = false
  #onWritable: () => void = () => {}
  #onClosed: () => void = () => {}

  constructor(ws: WebSocket<unknown>, options: SessionOptions) {
    this.#ws = ws
    this.#options = options
    this.#isBinary = options.format === 'msgpack'
    this.#follower = options.broadcaster.connect(this, options.format, options.owner)
  }

  // The engine's answers: 1 sent; 0 kept, but the socket is full; 2 over the limit, and the engine closes the socket.
  write(bytes: Buffer, kind: WriteKind = 'control'): boolean {
    // Changes go to many: to compress them for each would cost more than all else. Over HTTP they are compressed once for all.
    const isCompressed =
      this.#options.isCompressed && kind === 'rows' && bytes.length >= COMPRESSED_MESSAGE_BYTES_MIN
    return this.#ws.send(bytes, this.#isBinary, isCompressed) === 1
  }

  end(bytes: Buffer, reason: DisconnectReason): void {
    this.#ws.send(bytes, this.#isBinary)
    // The engine may have closed the socket because of those bytes.
    if (!this.#isClosed) this.#ws.end(CLOSE_CODES[reason], reason)
  }

  onWritable(onWritable: () => void): void {
    this.#onWritable = onWritable
  }

  onClosed(onClosed: () => void): void {
    this.#onClosed = onClosed
  }

  /** The socket has sent something of what was kept. */
  drained(): void {
    if (this.#ws.getBufferedAmount() === 0) this.#onWritable()
  }

  /** The socket is closed. */
  closed(): void {
    this.#isClosed = true
    this.#onClosed()
  }

  /** Carries out a message. An error goes to the sender, and the socket stays open. */
  receive(frame: Uint8Array, isBinary: boolean): void {
    if (this.#isClosed) return
    let id: string | null = null
    try {
      const message = parseMessage(frame, isBinary)
      id = message.get('id')
      this.#perform(message, id === null ? {} : { id })
    } catch (error) {
      this.#refuse(error, id ?? undefined)
    }
  }

  #refuse(error: unknown, id: string | undefined): void {
    if (toServiceError(error) === null) this.#options.onFault(error, 'message')
    const { body } = problemAnswer(error, STREAM_PATH, id ?? 'message')
    this.#follower.writeControl({ event: 'error', ...(id !== undefined && { id }), ...body })
  }

  #perform(message: Message, echo: Echo): void {
    const operation = requiredWord(message, 'op', STREAM_OPERATIONS)
    if (operation === 'ping') {
      this.#pong(echo)
      return
    }
    const channel = message.get('channel')
    if (operation === 'unsubscribe' && channel !== null) {
      this.#unsubscribe(channel, echo)
      return
    }
    const topic = parseTopic(message, this.#options.market.tokensMax)
    if (operation === 'subscribe')
      this.#subscribeFrom(topic, { ...echo, ...notesOnSubscription(message, topic) })
    else this.#unsubscribe(findChannel(topic, this.#options).channel.name, echo)
  }

  /** Subscribes as soon as this node is at the position that the client asks for. */
  #subscribeFrom(topic: Topic, echo: Echo): void {
    const { market, node } = this.#options
    const reached = whenReached(node, market, 'since' in topic ? (topic.since ?? 0) : 0)
    if (reached === null) {
      this.#subscribe(topic, echo)
      return
    }
    reached
      .then(() => {
        if (!this.#isClosed) this.#subscribe(topic, echo)
      })
      .catch((error) => {
        if (!this.#isClosed) this.#refuse(error, echo.id)
      })
  }

  #pong(echo: Echo): void {
    const { market, broadcaster } = this.#options
    const seq = broadcaster.positionOf(this.#follower)
    this.#follower.writeControl({ event: 'pong', ...echo, seq, ts: market.timeMs })
  }

  #unsubscribe(name: string, echo: Echo): void {
    const { broadcaster } = this.#options
    if (!broadcaster.unsubscribe(this.#follower, name))
      throw invalidParameter('topic', `${name} is not subscribed to`)
    this.#follower.writeControl({ event: 'unsubscribed', ...echo, channel: name })
  }

  #subscribe(topic: Topic, echo: Echo): void {
    const { broadcaster, market } = this.#options
    const { channel, open, countRows = () => 0 } = findChannel(topic, this.#options)
    this.#admit(topic, channel.name, countRows())
    const since = 'since' in topic ? topic.since : null
    // The position from which it resumes. A new subscription has one only after its snapshot, which bears it.
    const seq = since === null || channel.isLost(positionAt(since)) ? undefined : since
    const told = { ...echo, ...leftOut(topic, market) }
    this.#follower.writeControl({ event: 'subscribed', ...told, channel: channel.name, seq })
    broadcaster.subscribe(this.#follower, channel, since ?? open())
  }

  /** Throws if the client may not subscribe. */
  #admit(topic: Topic, name: string, rows: number): void {
    const { market, countSubscription } = this.#options
    const { subscriptions } = this.#follower
    // A subscription begins with rows: the first to a channel belongs to the read that opened the socket, another is a read.
    const isFree = !this.#freeChannels.has(name) && this.#freeChannels.size < SUBSCRIPTIONS_MAX
    countSubscription(isFree, rows)
    if (isFree) this.#freeChannels.add(name)
    if ('mint' in topic && !market.has(topic.mint))
      throw new ServiceError('token_not_found', `No DataPoint is known for ${topic.mint}.`)
    if (!subscriptions.has(name) && subscriptions.size >= SUBSCRIPTIONS_MAX)
      throw invalidParameter('topic', `: a socket holds at most ${SUBSCRIPTIONS_MAX} subscriptions`)
  }
}

/**
 * Told where more bars start at the time from which a client resumes, or later, than it begins with: it has to read the others, those
 * before `heldFrom` in the lake.
 */
function leftOut(topic: Topic, market: Market): { clamped?: { limit: number }; heldFrom?: number } {
  if (topic.topic !== 'ohlc') return {}
  const { mint, tf, fromMs, limit } = topic
  const query = { mint, tf, limit, fromMs, toMs: null, fill: 'none' } as const
  const count = market.bars({ ...query, limit: limit + 1 })?.bars.length ?? 0
  const heldFrom = market.barsHeldFromMs(query, count)
  return {
    ...(fromMs !== null && count > limit && { clamped: { limit } }),
    ...(heldFrom > 0 && { heldFrom }),
  }
}

/** The channel of a topic, how a new subscription to it begins, and how many rows of the market list that are. */
function findChannel(
  topic: Topic,
  { market, broadcaster, submissionLog, owner }: SessionOptions,
): { channel: Channel; open: () => StreamSnapshot | number; countRows?: () => number } {
  switch (topic.topic) {
    case 'market': {
      const channel = new MarketChannel(market, topic.tab, topic.fields)
      return { channel, open: () => channel.open(topic), countRows: () => countSnapshotRows(market, topic) }
    }
    case 'window': {
      const channel = broadcaster.window(new WindowChannel(market, topic), owner.client)
      return { channel, open: () => 0, countRows: () => channel.countRows() }
    }
    case 'submissions': {
      const channel = new SubmissionsChannel(market, submissionLog)
      return { channel, open: () => channel.reopen() }
    }
    case 'token': {
      const channel = new TokenChannel(market, topic.mint, topic.fields)
      return { channel, open: () => channel.reopen() }
    }
    case 'ohlc': {
      const { mint, tf, fromMs, limit } = topic
      // Bars before what can still change need nobody to leave them out: all who begin there share a channel.
      const ownFromMs = fromMs !== null && fromMs > market.barsOpenFromMs(mint, tf) ? fromMs : null
      // What was sent is counted by the channel that goes on from there.
      const channel = broadcaster.known(new BarsChannel(market, mint, tf, ownFromMs))
      return { channel, open: () => channel.open(limit, fromMs ?? 0) }
    }
  }
}
