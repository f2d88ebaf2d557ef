// In: a port and the pipeline's ports. Out: a listening server. The only file that holds the HTTP engine's server. Never
// looks at a request: the pipeline does.
import {
  App,
  type TemplatedApp,
  type us_listen_socket,
  us_listen_socket_close,
  us_socket_local_port,
} from 'uWebSockets.js'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { createPipeline, type Pipeline, type PipelineDeps } from './pipeline.ts'
import { keyOf } from './request/request-head.ts'
import { INGEST_PATH, registerIngestSockets } from './stream/ingest-socket.ts'
import { registerStreamSockets, type StreamSources } from './stream/stream-socket.ts'

export interface ServerDeps extends PipelineDeps {
  streams: StreamSources
  /** What a held feed connection delivers; null where no feed may push. */
  ingestFrame: ((frame: Uint8Array, isBinary: boolean) => Record<string, unknown>) | null
}

export interface HttpServer {
  port: number
  /** From here on every answer tells its client that the connection ends, so that it closes it. */
  drain(): void
  /** No new connection from here on. */
  stopListening(): Promise<void>
  /** Resolves when no request is being answered and none has come for `quietMs`, or after `msMax`. */
  idle(quietMs: number, msMax: number): Promise<void>
  /** Ends every connection. */
  close(): Promise<void>
  /** Requests being answered. */
  inFlight(): number
  /** Memory charged for request bodies. */
  bodyBytes(): number
}

const IDLE_POLL_MS = 10
/** LIBUS_LISTEN_EXCLUSIVE_PORT, which the package's types leave out: without it two servers share a port silently. */
const LISTEN_EXCLUSIVE_PORT = 1
type Listen = (
  host: string,
  port: number,
  options: number,
  done: (socket: us_listen_socket | false) => void,
) => void

/** A held feed connection passes the same doors as a push. */
function socketDeps(deps: ServerDeps, ingestFrame: NonNullable<ServerDeps['ingestFrame']>) {
  const route = deps.routes.find(({ path }) => path === INGEST_PATH)!
  return {
    checkKey: (authorization: string) => deps.checkOperator('feed', keyOf(authorization)),
    admit: () => deps.admit(route),
    onFault: (error: unknown) => deps.onFault(error, 'frame'),
    ingestFrame,
  }
}

function runningServer(
  app: TemplatedApp,
  socket: us_listen_socket,
  pipeline: Pipeline,
  endSockets: () => void,
): HttpServer {
  let isListening = true
  /** Right after the sockets were read, before anything else that waits for that: what had come by then is accepted, or
   *  answered, and is not reset. */
  const afterReading = async (act: () => void) => {
    await nextTurn()
    await nextTurn()
    act()
  }
  const stopListening = () => {
    if (isListening) us_listen_socket_close(socket)
    isListening = false
  }
  return {
    port: us_socket_local_port(socket),
    drain: pipeline.drain,
    stopListening: () =>
      afterReading(() => {
        stopListening()
        endSockets()
      }),
    idle: (quietMs, msMax) => idle(pipeline, quietMs, msMax),
    close: () =>
      afterReading(() => {
        stopListening()
        app.close()
      }),
    inFlight: pipeline.inFlight,
    bodyBytes: pipeline.bodyBytes,
  }
}

async function idle({ requests, inFlight }: Pipeline, quietMs: number, msMax: number): Promise<void> {
  const startMs = performance.now()
  let [seen, quietSinceMs] = [requests(), startMs]
  for (let nowMs = startMs; nowMs - startMs < msMax; nowMs = performance.now()) {
    if (requests() !== seen || inFlight() > 0) [seen, quietSinceMs] = [requests(), nowMs]
    if (inFlight() === 0 && nowMs - quietSinceMs >= quietMs) return
    await new Promise((resolve) => setTimeout(resolve, IDLE_POLL_MS))
  }
}

/** Starts to listen; rejects when the port cannot be had. Port 0 takes a free one. */
export function startServer(host: string, port: number, deps: ServerDeps): Promise<HttpServer> {
  const pipeline = createPipeline(deps)
  const app = App()
  registerStreamSockets(app, deps.streams, deps)
  const endSockets =
    deps.ingestFrame === null ? () => {} : registerIngestSockets(app, socketDeps(deps, deps.ingestFrame))
  for (const [path, handle] of pipeline.gets) app.get(path, handle)
  app.any('/*', pipeline.handle)

  return new Promise((resolve, reject) => {
    const listen = app.listen.bind(app) as unknown as Listen
    listen(host, port, LISTEN_EXCLUSIVE_PORT, (socket) => {
      if (!socket) {
        reject(
          new Error(
            `port ${port} on ${host} cannot be had: another program listens there, or the address is not this machine's`,
          ),
        )
        return
      }
      resolve(runningServer(app, socket, pipeline, endSockets))
    })
  })
}
