// What the WebSockets of feeds and of streams have in common: limits, and the handshake.
import type { HttpRequest, HttpResponse } from 'uWebSockets.js'
import { SOCKET_BACKPRESSURE_BYTES_MAX, SOCKET_IDLE_SECONDS_MAX } from '../limits.ts'
import { ambiguityOf } from '../request/parameters.ts'
import type { RequestHead } from '../request/request-head.ts'
import { RequestIds } from '../request/request-ids.ts'
import { noteHeaders, withIgnored } from '../response/notes.ts'
import { problemAnswer, Reply, send } from '../response/reply.ts'

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

/** The headers of a handshake, copied: the engine's request is invalid once its handler returns. */
export const readUpgradeHeaders = (req: HttpRequest) => ({
  key: req.getHeader('sec-websocket-key'),
  protocols: req.getHeader('sec-websocket-protocol'),
  extensions: req.getHeader('sec-websocket-extensions'),
})

const ids = new RequestIds()

/** The id of a handshake, by which its answer and the log name it. */
export const upgradeId = (head: RequestHead): string => ids.idFor(head.sent.requestId)

/** Begins the answer to a handshake that is taken: `HttpResponse.upgrade` writes the rest. @param query as it was sent; a handshake reads none */
export function beginUpgrade(res: HttpResponse, requestId: string, query: string): void {
  res.writeStatus('101 Switching Protocols').writeHeader('X-Request-Id', requestId)
  const names = [...new Set(new URLSearchParams(query).keys())].filter((name) => name !== '')
  for (const [name, value] of Object.entries(noteHeaders(withIgnored({}, names))))
    res.writeHeader(name, value)
}

/** Refuses a handshake whose end or host can be read in two ways, as the pipeline refuses such a request: after the packet, so that nothing
 *  behind it is taken for another request; then the connection is closed. @returns whether it did */
export function refuseAmbiguous(
  res: HttpResponse,
  path: string,
  requestId: string,
  { ambiguous }: RequestHead,
): boolean {
  if (ambiguous === '') return false
  const reply = new Reply(res, requestId)
  reply.closes = true
  reply.detach()
  reply.pause()
  setImmediate(() => {
    if (!reply.isClosed) send(reply, problemAnswer(ambiguityOf(ambiguous), path, requestId))
  })
  return true
}

/** Answers a handshake with an error. */
export const refuseUpgrade = (res: HttpResponse, path: string, requestId: string, error: unknown): void =>
  send(new Reply(res, requestId), problemAnswer(error, path, requestId))
