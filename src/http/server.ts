// In: a port and the pipeline's ports. Out: a listening server. The only file that holds the HTTP engine's server. Never
// looks at a request: the pipeline does.
import { App, type us_listen_socket, us_listen_socket_close, us_socket_local_port } from 'uWebSockets.js'
import { INGEST_PATH, takeIngestSockets } from './ingest-socket.ts'
import { createPipeline, type PipelinePorts } from './pipeline.ts'
import { keyOf } from './request.ts'
import { type StreamRooms, takeStreamSockets } from './stream-socket.ts'

export interface ServerPorts extends PipelinePorts {
  streams: StreamRooms
  /** What a held feed connection delivers; null where no feed may push. */
  ingestFrame: ((frame: Uint8Array, isBinary: boolean) => Record<string, unknown>) | null
}

export interface HttpServer {
  port: number
  /** No new connection from here on. */
  stopListening(): void
  /** Ends every connection. */
  close(): void
  /** Requests being answered. */
  inFlight(): number
  /** Memory charged for request bodies. */
  bodyBytes(): number
}

/** LIBUS_LISTEN_EXCLUSIVE_PORT, which the package's types leave out: without it two servers share a port silently. */
const LISTEN_EXCLUSIVE_PORT = 1
type Listen = (
  host: string,
  port: number,
  options: number,
  done: (socket: us_listen_socket | false) => void,
) => void

/** A held feed connection passes the same doors as a push. */
function socketPorts(ports: ServerPorts, ingestFrame: NonNullable<ServerPorts['ingestFrame']>) {
  const route = ports.routes.find(({ path }) => path === INGEST_PATH)!
  return {
    checkKey: (authorization: string) => ports.checkOperator('feed', keyOf(authorization)),
    admit: () => ports.admit(route),
    onFault: (error: unknown) => ports.onFault(error, 'frame'),
    ingestFrame,
  }
}

/** Starts to listen; rejects when the port cannot be had. Port 0 takes a free one. */
export function startServer(host: string, port: number, ports: ServerPorts): Promise<HttpServer> {
  const pipeline = createPipeline(ports)
  const app = App()
  takeStreamSockets(app, ports.streams, ports)
  if (ports.ingestFrame !== null) takeIngestSockets(app, socketPorts(ports, ports.ingestFrame))
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
      let listening = true
      const stopListening = () => {
        if (listening) us_listen_socket_close(socket)
        listening = false
      }
      resolve({
        port: us_socket_local_port(socket),
        stopListening,
        close: () => {
          stopListening()
          app.close()
        },
        inFlight: pipeline.inFlight,
        bodyBytes: pipeline.bodyBytes,
      })
    })
  })
}
