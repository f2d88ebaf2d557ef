// A feed's WebSocket. Each message is applied before the next is read, so TCP slows down a feed that is too fast. The reply
// has the format of the message: JSON for text, msgpack for binary. A feed that does not read its replies is disconnected.
import type { WebSocket } from 'uWebSockets.js'
import { toMsgpack } from '../encode/items.ts'
import { INGEST_FRAME_BYTES_MAX } from '../limits.ts'
import type { ReleasableApp } from '../releasable-app.ts'
import { RequestHead } from '../request/request-head.ts'
import { problemAnswer } from '../response/reply.ts'
import { toServiceError } from '../response/to-service-error.ts'
import { CLOSE_GOING_AWAY, readUpgradeHeaders, refuseUpgrade, SOCKET_SETTINGS } from './upgrade.ts'

export const INGEST_PATH = '/api/v1/ingest'

export interface IngestSocketDeps {
  /** Throws 401 unless it is the feed key. */
  checkKey(key: string): void
  /** Throws 503 while the server takes no events. */
  admit(): void
  /** Applies one message. @returns what the reply tells of it. */
  ingestFrame(frame: Uint8Array, isBinary: boolean): Record<string, unknown>
  onFault(error: unknown): void
}

/** Accepts WebSockets at the path of the push. @returns a function that ends them all. */
export function registerIngestSockets(app: ReleasableApp, deps: IngestSocketDeps): () => void {
  const sockets = new Set<WebSocket<unknown>>()
  app.ws(INGEST_PATH, {
    ...SOCKET_SETTINGS,
    maxPayloadLength: INGEST_FRAME_BYTES_MAX,
    upgrade(res, req, context) {
      try {
        deps.admit()
        deps.checkKey(new RequestHead().read(req).key)
      } catch (error) {
        refuseUpgrade(res, INGEST_PATH, error)
        return
      }
      const { key, extensions } = readUpgradeHeaders(req)
      // No subprotocol: the type of a message tells its format.
      res.upgrade({}, key, '', extensions, context)
    },
    open: (ws) => {
      sockets.add(ws)
    },
    close: (ws) => {
      sockets.delete(ws)
    },
    message: (ws, message, isBinary) => reply(ws, new Uint8Array(message), isBinary, deps),
  })
  return () => {
    for (const ws of [...sockets]) ws.end(CLOSE_GOING_AWAY, 'draining')
  }
}

function reply(ws: WebSocket<unknown>, frame: Uint8Array, isBinary: boolean, deps: IngestSocketDeps): void {
  const result = apply(frame, isBinary, deps)
  ws.send(isBinary ? toMsgpack(result) : JSON.stringify(result), isBinary)
}

function apply(frame: Uint8Array, isBinary: boolean, deps: IngestSocketDeps): Record<string, unknown> {
  try {
    deps.admit()
    return { ok: true, ...deps.ingestFrame(frame, isBinary) }
  } catch (error) {
    if (toServiceError(error) === null) deps.onFault(error)
    return problemAnswer(error, INGEST_PATH, 'frame').body
  }
}
