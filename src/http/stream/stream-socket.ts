// In: WebSockets of readers. Out: what they subscribe to, as messages in JSON or msgpack: opening rows, then changes. The
// same channels as the streams over HTTP, behind the same doors. A message that is wrong is answered with the error that
// a request would get, and the socket stays open. Never writes to a socket but its own.
import type { TemplatedApp, WebSocket } from 'uWebSockets.js'
import type { MarketEngine } from '../../market/types.ts'
import { ServiceError } from '../../schema/errors.ts'
import type { Caller } from '../../submissions/types.ts'
import {
  SOCKET_BACKPRESSURE_BYTES_MAX,
  SOCKET_IDLE_SECONDS_MAX,
  STREAM_MESSAGE_BYTES_MAX,
  SUBSCRIPTIONS_MAX,
} from '../limits.ts'
import type { PipelineDeps } from '../pipeline.ts'
import { clientAddress } from '../request/addresses.ts'
import { invalidParameter } from '../request/parameters.ts'
import { keyOf, RequestHead } from '../request/request-head.ts'
import { problem, Reply, send } from '../response/reply.ts'
import { toServiceError } from '../response/to-service-error.ts'
import type { Route } from '../route.ts'
import type { Broadcaster, DisconnectReason, Follower } from './broadcaster.ts'
import {
  BarsChannel,
  type Channel,
  MarketChannel,
  type StreamSnapshot,
  snapshotRows,
  TokenChannel,
} from './channel.ts'
import { OPERATIONS, readMessage, required, type Topic, topicOf } from './stream-request.ts'

export const STREAM_PATH = '/api/v1/stream'

/** What the client may ask for as Sec-WebSocket-Protocol; without one it is JSON. */
export const STREAM_PROTOCOLS = { 'mintlake.json': 'json', 'mintlake.msgpack': 'msgpack' } as const
type Protocol = keyof typeof STREAM_PROTOCOLS

/** RFC 6455, section 7.4.1, and the registry it points to. */
const CLOSE_CODES: Readonly<Record<DisconnectReason, number>> = {
  draining: 1001,
  slow_consumer: 1008,
  max_age: 1000,
}

export interface StreamSources {
  market: MarketEngine
  broadcaster: Broadcaster
}

type StreamDeps = Pick<
  PipelineDeps,
  'admit' | 'authenticate' | 'countRead' | 'countRows' | 'trustedProxies' | 'onFault'
>

/** What the server keeps of a socket. */
interface Reader {
  format: 'json' | 'msgpack'
  /** Admits whoever opened the socket once more, and counts a read unless it is free, and the rows that it sends; throws
   *  401 or 429. */
  admit(isFree: boolean, rows: number): void
  /** Channels that it has subscribed to without a count; at most SUBSCRIPTIONS_MAX. */
  free: Set<string>
  follower: Follower | null
  resume: () => void
  forget: () => void
}

/** The path as the documents show it; a plain request is told what it lacks. */
export const streamRoute: Route = {
  method: 'GET',
  path: STREAM_PATH,
  access: 'read',
  summary: 'WebSocket: follow market tabs, tokens and bars; one read in all',
  handle: () => {
    throw new ServiceError(
      'upgrade_required',
      'This is a WebSocket: connect to it as one.',
      { protocols: Object.keys(STREAM_PROTOCOLS) },
      { Upgrade: 'websocket', Connection: 'Upgrade' },
    )
  },
}

/** Takes upgrades at the path of the stream; plain requests go on to the ordinary routes. */
export function registerStreamSockets(app: TemplatedApp, sources: StreamSources, deps: StreamDeps): void {
  const { broadcaster } = sources
  app.ws<Reader>(STREAM_PATH, {
    maxPayloadLength: STREAM_MESSAGE_BYTES_MAX,
    maxBackpressure: SOCKET_BACKPRESSURE_BYTES_MAX,
    closeOnBackpressureLimit: true,
    idleTimeout: SOCKET_IDLE_SECONDS_MAX,
    upgrade(res, req, context) {
      const [key, protocols, extensions] = [
        'sec-websocket-key',
        'sec-websocket-protocol',
        'sec-websocket-extensions',
      ].map((name) => req.getHeader(name))
      try {
        const { credentials, forwardedFor } = new RequestHead().read(req)
        const ip = clientAddress(res, forwardedFor, deps.trustedProxies)
        const admit = (isFree: boolean, rows: number) => {
          deps.admit(streamRoute)
          const apiKey = keyOf(credentials)
          const caller: Caller | null = apiKey === '' ? null : deps.authenticate(apiKey)
          if (isFree) deps.countRows(caller, () => ip, rows)
          else deps.countRead(caller, () => ip, rows)
        }
        admit(false, 0)
        broadcaster.admit()
        const protocol = protocolOf(protocols)
        const reader: Reader = {
          format: STREAM_PROTOCOLS[protocol ?? 'mintlake.json'],
          admit,
          free: new Set(),
          follower: null,
          resume: () => {},
          forget: () => {},
        }
        res.upgrade(reader, key, protocol ?? '', extensions, context)
      } catch (error) {
        const reply = new Reply(res, 'upgrade')
        if (toServiceError(error) === null) deps.onFault(error, reply.requestId)
        send(reply, problem(error, STREAM_PATH, reply.requestId))
      }
    },
    open(ws) {
      const reader = ws.getUserData()
      reader.follower = broadcaster.connect(writerOf(ws, reader), reader.format)
    },
    message(ws, message, isBinary) {
      const reader = ws.getUserData()
      if (reader.follower !== null)
        answer(reader, reader.follower, new Uint8Array(message), isBinary, sources, deps)
    },
    drain(ws) {
      if (ws.getBufferedAmount() === 0) ws.getUserData().resume()
    },
    close(ws) {
      const reader = ws.getUserData()
      reader.follower = null
      reader.forget()
    },
  })
}

/** The first of the offered protocols that is spoken here; none offered is JSON. */
function protocolOf(offered: string): Protocol | null {
  if (offered === '') return null
  const names = offered.split(',').map((name) => name.trim())
  const found = names.find((name) => Object.hasOwn(STREAM_PROTOCOLS, name))
  if (found !== undefined) return found as Protocol
  throw invalidParameter(
    'Sec-WebSocket-Protocol',
    `must be one of ${Object.keys(STREAM_PROTOCOLS).join(', ')}`,
    Object.keys(STREAM_PROTOCOLS),
  )
}

function writerOf(ws: WebSocket<Reader>, reader: Reader) {
  const isBinary = reader.format === 'msgpack'
  return {
    // 0: kept, but the socket is full. 2: over the bound; the engine closes the socket.
    write: (bytes: Buffer) => ws.send(bytes, isBinary) === 1,
    end(bytes: Buffer, reason: DisconnectReason) {
      ws.send(bytes, isBinary)
      // Sending may have closed it, which empties the reader.
      if (reader.follower !== null) ws.end(CLOSE_CODES[reason], reason)
    },
    onWritable(resume: () => void) {
      reader.resume = resume
    },
    onClosed(forget: () => void) {
      reader.forget = forget
    },
  }
}

/** Carries out one message; whatever is wrong with it is told to its sender alone. */
function answer(
  reader: Reader,
  follower: Follower,
  frame: Uint8Array,
  isBinary: boolean,
  sources: StreamSources,
  deps: StreamDeps,
): void {
  let id: string | null = null
  try {
    const message = readMessage(frame, isBinary)
    id = message.get('id')
    perform(message, id, reader, follower, sources)
  } catch (error) {
    if (toServiceError(error) === null) deps.onFault(error, 'message')
    const { body } = problem(error, STREAM_PATH, id ?? 'message')
    sources.broadcaster.tell(follower, { event: 'error', ...(id !== null && { id }), ...body })
  }
}

function perform(
  message: URLSearchParams,
  id: string | null,
  reader: Reader,
  follower: Follower,
  { market, broadcaster }: StreamSources,
): void {
  const operation = required(message, 'op', OPERATIONS)
  const echo = id === null ? {} : { id }
  if (operation === 'ping') {
    broadcaster.tell(follower, {
      event: 'pong',
      ...echo,
      seq: broadcaster.seqOf(follower),
      ts: market.timeMs,
    })
    return
  }
  const topic = topicOf(message, market.tokensMax)
  const { channel, open } = channelOf(topic, market)
  if (operation === 'unsubscribe') {
    if (!broadcaster.unsubscribe(follower, channel.name))
      throw invalidParameter('topic', `${channel.name} is not subscribed to`)
    broadcaster.tell(follower, { event: 'unsubscribed', ...echo, channel: channel.name })
    return
  }
  // Each subscription sends opening rows: the first of a channel belongs to the stream, another is one more read.
  const isFree = !reader.free.has(channel.name) && reader.free.size < SUBSCRIPTIONS_MAX
  reader.admit(isFree, topic.topic === 'market' ? snapshotRows(market, topic) : 0)
  if (isFree) reader.free.add(channel.name)
  if ('mint' in topic && !market.has(topic.mint))
    throw new ServiceError('token_not_found', `No DataPoint is known for ${topic.mint}.`)
  if (!follower.subscriptions.has(channel.name) && follower.subscriptions.size >= SUBSCRIPTIONS_MAX)
    throw invalidParameter('topic', `: a socket holds at most ${SUBSCRIPTIONS_MAX} subscriptions`)
  const since = 'since' in topic ? topic.since : null
  // Where it goes on; who begins has a position once all opening rows were sent.
  const seq = since === null || channel.isLost({ seq: since }) ? undefined : since
  broadcaster.tell(follower, { event: 'subscribed', ...echo, channel: channel.name, seq })
  broadcaster.subscribe(follower, channel, since ?? open())
}

/** The channel of a topic, and what a new subscriber of it is sent first. */
function channelOf(topic: Topic, market: MarketEngine): { channel: Channel; open: () => StreamSnapshot } {
  if (topic.topic === 'market') {
    const channel = new MarketChannel(market, topic.tab)
    return { channel, open: () => channel.open(topic) }
  }
  if (topic.topic === 'token') {
    const channel = new TokenChannel(market, topic.mint)
    return { channel, open: () => channel.reopen() }
  }
  const channel = new BarsChannel(market, topic.mint, topic.tf)
  return { channel, open: () => channel.open(topic.limit, topic.fromMs) }
}
