// What the WebSockets of feeds and of streams have in common: limits, and the handshake.
import type { HttpRequest, HttpResponse } from 'uWebSockets.js'
import { SOCKET_BACKPRESSURE_BYTES_MAX, SOCKET_IDLE_SECONDS_MAX } from '../limits.ts'
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

/** The request id in the error answer to a handshake, which has no other. */
export const UPGRADE_REQUEST_ID = 'upgrade'

/** Answers a handshake with an error. */
export const refuseUpgrade = (res: HttpResponse, path: string, error: unknown): void =>
  send(new Reply(res, UPGRADE_REQUEST_ID), problemAnswer(error, path, UPGRADE_REQUEST_ID))
