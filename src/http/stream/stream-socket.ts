// Accepts streaming WebSockets: the same channels as follow=1 over HTTP, after the same checks.
import { z } from 'zod'
import { STREAM_PROTOCOLS } from '../../schema/api/stream.ts'
import { ServiceError } from '../../schema/errors.ts'
import { authorize, type Reader } from '../access.ts'
import { refTo } from '../docs/components.ts'
import { COMPRESSED_SOCKETS_MAX, STREAM_MESSAGE_BYTES_MAX } from '../limits.ts'
import type { PipelineDeps } from '../pipeline.ts'
import type { ReleasableApp } from '../releasable-app.ts'
import { clientAddress } from '../request/addresses.ts'
import { withKeyHint } from '../request/key-hint.ts'
import { invalidParameter, wordsOf } from '../request/parameters.ts'
import { readerOf } from '../request/read-limits.ts'
import { toServiceError } from '../response/to-service-error.ts'
import type { PlainRoute } from '../route.ts'
import type { Broadcaster } from './broadcaster.ts'
import { type SocketTerms, STREAM_PATH, StreamSession, type StreamSources } from './stream-session.ts'
import { type Handshake, SHARED_COMPRESSION, SOCKET_SETTINGS, upgrader } from './upgrade.ts'

type StreamSocketDeps = PipelineDeps & StreamSources

/** What the engine keeps with a socket. */
interface SocketData extends SocketTerms {
  /** Null until the handshake is complete. */
  session: StreamSession | null
}

/** Describes the path in the documents, and tells a plain request why a handshake would be refused, else that it must be one. */
export const streamRoute = (broadcaster: Broadcaster): PlainRoute => ({
  method: 'GET',
  path: STREAM_PATH,
  access: 'read',
  answersMarket: true,
  summary: 'WebSocket: follow market tabs, tokens and bars; one read in all',
  docs: {
    operationId: 'openStream',
    tag: 'market',
    description:
      'A WebSocket. The client sends messages of the form StreamRequest; the server sends StreamMessage. ' +
      `Protocols: ${STREAM_PROTOCOLS.join(', ')}; JSON without one. The handshake counts as one read. ` +
      'A browser does not tell a page why a handshake was refused: a plain request, which is a read too, is refused for the same reason and told it, ' +
      'and is answered with 426 where nothing refuses. See [/streams.md](/streams.md).',
    headers: z.object({
      'Sec-WebSocket-Protocol': z
        .enum(STREAM_PROTOCOLS)
        .optional()
        .meta({ description: 'Format of the messages' }),
    }),
    answers: { 101: { description: 'The WebSocket is open' } },
    errors: ['upgrade_required'],
    unversioned: true,
    extensions: {
      'x-stream': {
        requests: refTo('StreamRequest'),
        messages: refTo('StreamMessage'),
        protocols: STREAM_PROTOCOLS,
        document: '/streams.md',
      },
    },
  },
  handle: () => {
    broadcaster.admit()
    throw new ServiceError(
      'upgrade_required',
      'This is a WebSocket: connect to it as one.',
      { protocols: STREAM_PROTOCOLS },
      { Upgrade: 'websocket', Connection: 'Upgrade' },
    )
  },
})

/** Must be called before the routes are registered: plain requests at the path are left to them. */
export function registerStreamSockets(app: ReleasableApp, deps: StreamSocketDeps): void {
  const { broadcaster, overload, onFault } = deps
  const route = streamRoute(broadcaster)
  /** Sockets whose rows are compressed. */
  let compressed = 0
  const take = ({ res, head, protocols, extensions }: Handshake) => {
    const refusal = overload.refusal(route)
    if (refusal !== null) throw refusal
    const sender = { forwardedFor: head.sent.forwardedFor, isRelayed: false }
    const ip = clientAddress(res, sender, deps.trustedProxies)
    const offered = wordsOf(protocols)
    const key = head.key || sessionKeyOf(offered)
    const countSubscription = subscriptionCounter(deps, route, key, ip)
    const owner = { key, client: countSubscription(false, 0) }
    broadcaster.admit()
    const protocol = protocols === '' ? '' : chooseProtocol(offered)
    const format = protocol === 'mintlake.msgpack' ? 'msgpack' : 'json'
    const isCompressed = /permessage-deflate/i.test(extensions) && compressed < COMPRESSED_SOCKETS_MAX
    const data: SocketData = { format, owner, isCompressed, countSubscription, session: null }
    return { data, protocol, extensions: isCompressed ? extensions : '' }
  }
  app.ws<SocketData>(STREAM_PATH, {
    ...SOCKET_SETTINGS,
    maxPayloadLength: STREAM_MESSAGE_BYTES_MAX,
    compression: SHARED_COMPRESSION,
    upgrade: upgrader(STREAM_PATH, take, onFault),
    open(ws) {
      const data = ws.getUserData()
      if (data.isCompressed) compressed++
      data.session = new StreamSession(ws, { ...deps, ...data })
    },
    message(ws, message, isBinary) {
      ws.getUserData().session?.receive(new Uint8Array(message), isBinary)
    },
    drain(ws) {
      ws.getUserData().session?.drained()
    },
    close(ws) {
      if (ws.getUserData().isCompressed) compressed--
      ws.getUserData().session?.closed()
    },
  })
}

/** A function that checks the client and counts a read, if it is not free, and rows. Called for each subscription. It returns whom it
 *  has counted them for. */
function subscriptionCounter(deps: StreamSocketDeps, route: PlainRoute, key: string, ip: string) {
  return (isFree: boolean, rows: number): string => {
    let reader: Reader = null
    try {
      reader = authorize(deps, route, key)
      if (isFree) deps.limits.countRows(reader, () => ip, rows)
      else deps.limits.countRead(reader, () => ip, rows)
      return readerOf(reader, () => ip)
    } catch (error) {
      const known = toServiceError(error)
      throw known === null ? error : withKeyHint(known, route.access, reader, deps.keyHint)
    }
  }
}

/** Browsers let a page send no header with a handshake: the console offers its session key as a protocol of its own. */
const SESSION_PROTOCOL = 'mintlake.session.'
const sessionKeyOf = (offered: readonly string[]): string =>
  offered.find((name) => name.startsWith(SESSION_PROTOCOL))?.slice(SESSION_PROTOCOL.length) ?? ''

/** The first of the offered protocols that the server knows. @throws ServiceError `invalid_parameter` if it knows none. */
function chooseProtocol(offered: readonly string[]): (typeof STREAM_PROTOCOLS)[number] {
  for (const name of offered) for (const known of STREAM_PROTOCOLS) if (name === known) return known
  const words = STREAM_PROTOCOLS.join(', ')
  throw invalidParameter('Sec-WebSocket-Protocol', `must be one of ${words}`, STREAM_PROTOCOLS)
}
