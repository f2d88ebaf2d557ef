// What the WebSockets of feeds and of streams have in common: limits, and the handshake.
import type { HttpRequest, HttpResponse, us_socket_context_t } from 'uWebSockets.js'
import { SOCKET_BACKPRESSURE_BYTES_MAX, SOCKET_IDLE_SECONDS_MAX } from '../limits.ts'
import { ambiguityOf } from '../request/parameters.ts'
import { RequestHead } from '../request/request-head.ts'
import { RequestIds } from '../request/request-ids.ts'
import { noteHeaders, withIgnored } from '../response/notes.ts'
import { problemAnswer, Reply, send } from '../response/reply.ts'
import { toServiceError } from '../response/to-service-error.ts'

/** Settings of the HTTP engine. */
export const SOCKET_SETTINGS = {
  maxBackpressure: SOCKET_BACKPRESSURE_BYTES_MAX,
  closeOnBackpressureLimit: true,
  idleTimeout: SOCKET_IDLE_SECONDS_MAX,
}

/** The engine's SHARED_COMPRESSOR and SHARED_DECOMPRESSOR, which its types do not give as values: memory for all sockets together,
 *  none for each. */
export const SHARED_COMPRESSION = 1 | 256

/** Close code: the server shuts down (RFC 6455, section 7.4.1). */
export const CLOSE_GOING_AWAY = 1001
/** Close code: try again later (the registry of RFC 6455, section 11.7). */
export const CLOSE_TRY_AGAIN_LATER = 1013

const ids = new RequestIds()

/** A handshake as the checks of its path see it. */
export interface Handshake {
  res: HttpResponse
  head: RequestHead
  /** As the client offers them. */
  protocols: string
  extensions: string
}

/** What becomes of a handshake that is taken: what the engine keeps with the socket, and the protocol and the extensions that are chosen. */
interface Taken<SocketData> {
  data: SocketData
  protocol: string
  extensions: string
}

/**
 * Answers the handshakes at a path as the pipeline answers requests.
 * @param take makes the checks of the path, and throws to refuse
 */
export const upgrader =
  <SocketData>(
    path: string,
    take: (handshake: Handshake) => Taken<SocketData>,
    onFault: (error: unknown, requestId: string) => void,
  ) =>
  (res: HttpResponse, req: HttpRequest, context: us_socket_context_t): void => {
    const head = new RequestHead().read(req)
    const requestId = ids.idFor(head.sent.requestId)
    if (head.ambiguous !== '') {
      refuseAmbiguous(res, path, requestId, head.ambiguous)
      return
    }
    // Copied: the engine's request is invalid once its handler returns.
    const key = req.getHeader('sec-websocket-key')
    const protocols = req.getHeader('sec-websocket-protocol')
    const extensions = req.getHeader('sec-websocket-extensions')
    let taken: Taken<SocketData>
    try {
      taken = take({ res, head, protocols, extensions })
    } catch (error) {
      if (toServiceError(error) === null) onFault(error, requestId)
      send(new Reply(res, requestId), problemAnswer(error, path, requestId))
      return
    }
    beginUpgrade(res, requestId, req.getQuery())
    res.upgrade(taken.data, key, taken.protocol, taken.extensions, context)
  }

/** Begins the answer to a handshake that is taken: `HttpResponse.upgrade` writes the rest. @param query as it was sent; a handshake reads none */
function beginUpgrade(res: HttpResponse, requestId: string, query: string): void {
  res.writeStatus('101 Switching Protocols').writeHeader('X-Request-Id', requestId)
  const names = [...new Set(new URLSearchParams(query).keys())].filter((name) => name !== '')
  for (const [name, value] of Object.entries(noteHeaders(withIgnored({}, names))))
    res.writeHeader(name, value)
}

/** Refuses a handshake whose end or host can be read in two ways, as the pipeline refuses such a request: after the packet, so that nothing
 *  behind it is taken for another request; then the connection is closed. */
function refuseAmbiguous(res: HttpResponse, path: string, requestId: string, ambiguous: string): void {
  const reply = new Reply(res, requestId)
  reply.closes = true
  reply.detach()
  reply.pause()
  setImmediate(() => {
    if (!reply.isClosed) send(reply, problemAnswer(ambiguityOf(ambiguous), path, requestId))
  })
}
