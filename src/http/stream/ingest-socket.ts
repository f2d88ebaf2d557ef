// A feed's WebSocket. Each message is applied before the next is read, so TCP slows down a feed that is too fast; one that waits for
// the disk is answered later, in order. The reply has the format of the message: JSON for text, msgpack for binary. A feed that does not
// read its replies is disconnected.

import type { WebSocket } from 'uWebSockets.js'
import { assert } from '../../lib/assert.ts'
import { jsonLine } from '../../lib/text/json-text.ts'
import { INGEST_FRAME_BYTES_MAX } from '../../schema/media-types.ts'
import { toMsgpack } from '../encode/items.ts'
import type { PipelineDeps } from '../pipeline.ts'
import type { ReleasableApp } from '../releasable-app.ts'
import { problemAnswer } from '../response/reply.ts'
import { toServiceError } from '../response/to-service-error.ts'
import type { Route } from '../route.ts'
import { CLOSE_GOING_AWAY, type Handshake, SOCKET_SETTINGS, upgrader } from './upgrade.ts'

export const INGEST_PATH = '/api/v1/ingest'

/** Applies one message, of which it may keep nothing. Each waits for those before it. @returns what the reply tells of it. */
export type IngestFrame = (frame: Uint8Array, isBinary: boolean) => object | Promise<object>

/**
 * Accepts WebSockets at the path of the push, after the checks of a push over HTTP; each message is admitted as one is.
 * @param onWritten told of each push before it is acknowledged
 * @returns a function that ends them all.
 */
export function registerIngestSockets(
  app: ReleasableApp,
  deps: PipelineDeps,
  ingestFrame: IngestFrame,
  onWritten: (route: Route) => void,
): () => void {
  const { health, keys, overload, routes, onFault } = deps
  const route = routes.find(({ path }) => path === INGEST_PATH)
  assert(route !== undefined, 'there is a route for pushes')
  const refuse = (error: unknown): object => {
    if (toServiceError(error) === null) onFault(error, 'frame')
    return problemAnswer(error, INGEST_PATH, 'frame').body
  }
  const accept = (result: object): object => {
    onWritten(route)
    return { ok: true, ...result }
  }
  const apply: IngestFrame = (frame, isBinary) => {
    try {
      health.admit(route)
      const refusal = overload.refusal(route)
      if (refusal !== null) throw refusal
      const result = ingestFrame(frame, isBinary)
      return result instanceof Promise ? result.then(accept, refuse) : accept(result)
    } catch (error) {
      return refuse(error)
    }
  }
  const take = ({ head, extensions }: Handshake) => {
    health.admit(route)
    keys.checkOperator('feed', head.key)
    return { data: {}, protocol: '', extensions }
  }
  const sockets = new Set<WebSocket<unknown>>()
  app.ws(INGEST_PATH, {
    ...SOCKET_SETTINGS,
    maxPayloadLength: INGEST_FRAME_BYTES_MAX,
    // No subprotocol: the type of a message tells its format.
    upgrade: upgrader(INGEST_PATH, take, onFault),
    open: (ws) => {
      sockets.add(ws)
    },
    close: (ws) => {
      sockets.delete(ws)
    },
    message: (ws, message, isBinary) => {
      const result = apply(new Uint8Array(message), isBinary)
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
