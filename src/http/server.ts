// Runs the HTTP engine: listens on the port and hands requests to the pipeline and WebSockets to their handlers.

import {
  App,
  type TemplatedApp,
  type us_listen_socket,
  us_listen_socket_close,
  us_socket_local_port,
} from 'uWebSockets.js'
import { nextTurn } from '../lib/wait.ts'
import { portFault } from '../lib/why-not-listening.ts'
import { Pipeline, type PipelineDeps } from './pipeline.ts'
import { ReleasableApp } from './releasable-app.ts'
import { type IngestFrame, registerIngestSockets } from './stream/ingest-socket.ts'
import type { StreamSources } from './stream/stream-session.ts'
import { registerStreamSockets } from './stream/stream-socket.ts'

export interface ServerDeps extends PipelineDeps, StreamSources {
  /** Applies a message of a feed's WebSocket; null if the server takes no pushes. */
  ingestFrame: IngestFrame | null
  /** Whether further processes may listen on the same port; false unless told. */
  isPortShared?: boolean
}

export interface HttpServer {
  port: number
  /** At which no other process listens: a free one of its own where the other is shared. */
  ownPort: number
  /** From now on every answer asks its client to close the connection. */
  drain(): void
  /** Accepts no further connections, and ends the WebSockets of feeds. */
  stopListening(): Promise<void>
  /** Resolves when no request is in flight and none has arrived for `quietMs`, or after `msMax`. */
  idle(quietMs: number, msMax: number): Promise<void>
  /** Closes every connection. */
  close(): Promise<void>
  /** Requests that are being answered; a stream only until it has begun. */
  inFlight(): number
  /** Requests received so far. */
  requestCount(): number
  /** Memory that request bodies take. */
  bodyBytes(): number
}

const IDLE_POLL_MS = 10
/** LIBUS_LISTEN_EXCLUSIVE_PORT, which the package's types lack. Without it two servers may share a port unnoticed. */
const LISTEN_EXCLUSIVE_PORT = 1
/** LIBUS_LISTEN_DEFAULT: with SO_REUSEPORT. The kernel spreads connections among all that listen. */
const LISTEN_SHARED_PORT = 0
declare module 'uWebSockets.js' {
  interface TemplatedApp {
    /** The form with a host and options, which the package's types lack. */
    listen(
      host: string,
      port: number,
      options: number,
      done: (socket: us_listen_socket | false) => void,
    ): TemplatedApp
  }
}

function runningServer(
  close: () => Promise<void>,
  sockets: readonly [us_listen_socket, ...us_listen_socket[]],
  pipeline: Pipeline,
  endSockets: () => void,
): HttpServer {
  let isListening = true
  /** Acts after the engine has read its sockets once more, so that what has arrived by now is accepted or answered, not reset. */
  const afterReading = async (act: () => void | Promise<void>) => {
    await nextTurn()
    await nextTurn()
    await act()
  }
  const stopListening = () => {
    if (isListening) for (const socket of sockets) us_listen_socket_close(socket)
    isListening = false
  }
  return {
    port: us_socket_local_port(sockets[0]),
    ownPort: us_socket_local_port(sockets.at(-1)!),
    drain: () => pipeline.drain(),
    stopListening: () =>
      afterReading(() => {
        stopListening()
        endSockets()
      }),
    idle: (quietMs, msMax) => untilIdle(pipeline, quietMs, msMax),
    close: () =>
      afterReading(() => {
        stopListening()
        return close()
      }),
    inFlight: () => pipeline.inFlight,
    requestCount: () => pipeline.requestCount,
    bodyBytes: () => pipeline.bodyBytes,
  }
}

async function untilIdle(pipeline: Pipeline, quietMs: number, msMax: number): Promise<void> {
  const startMs = performance.now()
  let [seen, quietSinceMs] = [pipeline.requestCount, startMs]
  for (let nowMs = startMs; nowMs - startMs < msMax; nowMs = performance.now()) {
    const { requestCount, inFlight } = pipeline
    if (requestCount !== seen || inFlight > 0) [seen, quietSinceMs] = [requestCount, nowMs]
    if (inFlight === 0 && nowMs - quietSinceMs >= quietMs) return
    await new Promise((resolve) => setTimeout(resolve, IDLE_POLL_MS))
  }
}

/** Starts to listen. Port 0 takes a free one. Rejects if the port cannot be used. */
export async function startServer(host: string, port: number, deps: ServerDeps): Promise<HttpServer> {
  const pipeline = new Pipeline(deps)
  const app = App()
  const handlers = new ReleasableApp(app)
  registerStreamSockets(handlers, deps)
  const endSockets =
    deps.ingestFrame === null
      ? () => {}
      : registerIngestSockets(handlers, deps, deps.ingestFrame, (route) => pipeline.noteWritten(route))
  for (const [path, handle] of pipeline.getHandlers()) handlers.get(path, handle)
  handlers.any('/*', pipeline.handle)
  const sockets: [us_listen_socket, ...us_listen_socket[]] = [
    await listen(app, host, port, deps.isPortShared ? LISTEN_SHARED_PORT : LISTEN_EXCLUSIVE_PORT),
  ]
  if (deps.isPortShared) sockets.push(await listen(app, host, 0, LISTEN_EXCLUSIVE_PORT))
  const close = async () => {
    app.close()
    await nextTurn()
    handlers.release()
  }
  return runningServer(close, sockets, pipeline, endSockets)
}

function listen(app: TemplatedApp, host: string, port: number, options: number): Promise<us_listen_socket> {
  return new Promise((resolve, reject) => {
    app.listen(host, port, options, (socket) => {
      if (socket) return resolve(socket)
      // The engine does not say why.
      const refused = `port ${port} on ${host} cannot be used: the engine refused it`
      portFault(host, port).then((fault) => reject(new Error(fault ?? refused)))
    })
  })
}
