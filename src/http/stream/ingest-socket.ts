// In: a held WebSocket connection of a feed. Out: each frame's records in the market, and an answer to each frame in the
// frame's own form: JSON to text, msgpack to binary. A frame is applied before the next is read, so a feed that is too
// fast is held back by TCP. A peer that does not read its answers is closed. Never parses a record.
import type { TemplatedApp, WebSocket } from 'uWebSockets.js'
import { ServiceError } from '../../schema/errors.ts'
import { toMsgpack } from '../encode/items.ts'
import { FRAME_BYTES_MAX, SOCKET_BACKPRESSURE_BYTES_MAX, SOCKET_IDLE_SECONDS_MAX } from '../limits.ts'
import { problem, Reply, send } from '../response/reply.ts'

export const INGEST_PATH = '/api/v1/ingest'

export interface IngestSocketDeps {
  /** Throws 401 unless the feed's key is right. */
  checkKey(authorization: string): void
  /** Throws while the server may not take events. */
  admit(): void
  ingestFrame(frame: Uint8Array, isBinary: boolean): Record<string, unknown>
  onFault(error: unknown): void
}

/** RFC 6455, section 7.4.1: the server goes away. */
const CLOSE_GOING_AWAY = 1001

/** Takes upgrades at the path of the push; plain requests go on to the ordinary routes. @returns what ends them all. */
export function registerIngestSockets(app: TemplatedApp, deps: IngestSocketDeps): () => void {
  const sockets = new Set<WebSocket<unknown>>()
  app.ws(INGEST_PATH, {
    maxPayloadLength: FRAME_BYTES_MAX,
    maxBackpressure: SOCKET_BACKPRESSURE_BYTES_MAX,
    closeOnBackpressureLimit: true,
    idleTimeout: SOCKET_IDLE_SECONDS_MAX,
    upgrade(res, req, context) {
      try {
        deps.admit()
        const apiKey = req.getHeader('x-api-key')
        deps.checkKey(req.getHeader('authorization') || (apiKey && `Bearer ${apiKey}`))
      } catch (error) {
        const reply = new Reply(res, 'upgrade')
        send(reply, problem(error, INGEST_PATH, reply.requestId))
        return
      }
      // None of the protocols that a client may offer is spoken here: what it gets is what this file says.
      const [key, extensions] = ['sec-websocket-key', 'sec-websocket-extensions'].map((name) =>
        req.getHeader(name),
      )
      res.upgrade({}, key, '', extensions, context)
    },
    open: (ws) => {
      sockets.add(ws)
    },
    close: (ws) => {
      sockets.delete(ws)
    },
    message: (ws, message, isBinary) => answer(ws, new Uint8Array(message), isBinary, deps),
  })
  return () => {
    for (const ws of [...sockets]) ws.end(CLOSE_GOING_AWAY, 'draining')
  }
}

function answer(ws: WebSocket<unknown>, frame: Uint8Array, isBinary: boolean, deps: IngestSocketDeps): void {
  let result: Record<string, unknown>
  try {
    deps.admit()
    result = { ok: true, ...deps.ingestFrame(frame, isBinary) }
  } catch (error) {
    if (!(error instanceof ServiceError)) deps.onFault(error)
    result = problem(error, INGEST_PATH, 'frame').body as Record<string, unknown>
  }
  ws.send(isBinary ? toMsgpack(result) : JSON.stringify(result), isBinary)
}
