// A feed's WebSocket. Each message is applied before the next is read, so TCP slows down a feed that is too fast; one that waits for
// the disk is answered later, in order. The reply has the format of the message: JSON for text, msgpack for binary. A feed that does not
// read its replies is disconnected.

import type { WebSocket } from 'uWebSockets.js'
import { jsonLine } from '../../lib/text/json-text.ts'
import { INGEST_FRAME_BYTES_MAX } from '../../schema/media-types.ts'
import { toMsgpack } from '../encode/items.ts'
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
  /** Applies one message, of which it may keep nothing. Each waits for those before it. @returns what the reply tells of it. */
  ingestFrame(frame: Uint8Array, isBinary: boolean): object | Promise<object>
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
    message: (ws, message, isBinary) => {
      const result = apply(new Uint8Array(message), isBinary, deps)
      if (!(result instanceof Promise)) reply(ws, result, isBinary)
      else void result.then((late) => sockets.has(ws) && reply(ws, late, isBinary))
    },
  })
  return () => {
    for (const ws of [...sockets]) ws.end(CLOSE_GOING_AWAY, 'draining')
  }
}

function reply(ws: WebSocket<unknown>, result: object, isBinary: boolean): void {
  ws.send(isBinary ? toMsgpack(result) : jsonLine(result), isBinary)
}

function apply(frame: Uint8Array, isBinary: boolean, deps: IngestSocketDeps): object | Promise<object> {
  const refuse = (error: unknown): object => {
    if (toServiceError(error) === null) deps.onFault(error)
    return problemAnswer(error, INGEST_PATH, 'frame').body
  }
  const accept = (result: object): object => ({ ok: true, ...result })
  try {
    deps.admit()
    const result = deps.ingestFrame(frame, isBinary)
    return result instanceof Promise ? result.then(accept, refuse) : accept(result)
  } catch (error) {
    return refuse(error)
  }
}
