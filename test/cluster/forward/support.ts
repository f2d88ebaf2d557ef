// A node that forwards, in the test's own process: an HTTP server whose routes are carried out by a writer over the real bus.
import { connectBus } from '../../../src/cluster/bus.ts'
import { ConnectionWatch } from '../../../src/cluster/connection-watch.ts'
import { ForwardClient } from '../../../src/cluster/forward/forward-client.ts'
import { ForwardServer } from '../../../src/cluster/forward/forward-server.ts'
import { forwardedRoute } from '../../../src/cluster/forward/forwarded-route.ts'
import type { Position } from '../../../src/cluster/forward/protocol.ts'
import { readConfig } from '../../../src/config/config.ts'
import { BODY_MS_MAX } from '../../../src/http/limits.ts'
import { singleNode } from '../../../src/http/node.ts'
import { TrustedProxies } from '../../../src/http/request/addresses.ts'
import type { Route } from '../../../src/http/route.ts'
import { type HttpServer, startServer } from '../../../src/http/server.ts'
import { createLog } from '../../../src/lib/log.ts'
import { ServiceError } from '../../../src/schema/errors.ts'
import { createRoutes, type RouteDeps } from '../../../src/server/routes.ts'
import { ADMIN_KEY, Client, FEED_KEY, type TestServer } from '../../support/test-server.ts'

const log = createLog({ format: 'text', quiet: true })

export const busSettings = (url: string) => readConfig(['--role', 'reader', '--bus', url], {})

export interface Forwarder {
  client: Client
  url: string
  http: HttpServer
  forward: ForwardClient
  /** Positions that an answer waited for. */
  positions: Position[]
  close(): Promise<void>
}

/** Every route of the server; only their handlers use what they are made of. */
const routesOf = (url: string): Route[] =>
  createRoutes({
    settings: busSettings(url),
    node: singleNode(),
    market: { seq: 0 },
    metrics: {},
    health: {},
  } as unknown as RouteDeps)

/** A node behind a trusted proxy, so that tests choose the addresses of clients (X-Forwarded-For). */
export async function startForwarder(busUrl: string): Promise<Forwarder> {
  const bus = await connectBus(busSettings(busUrl), 'forwarder')
  const watch = new ConnectionWatch(bus.connection)
  const positions: Position[] = []
  const untilApplied = async (position: Position) => void positions.push(position)
  const { connection, names } = bus
  const forward = new ForwardClient({ connection, names, watch, untilApplied, writerSilentMs: null })
  const routes = routesOf(busUrl).map((route) => forwardedRoute(route, { client: forward, names }))
  const http = await startServer('127.0.0.1', 0, {
    node: singleNode(),
    routes,
    streams: {} as never,
    ingestFrame: null,
    admit: () => {},
    authenticate: () => {
      throw new Error('not asked for')
    },
    checkOperator: (_access, key) => {
      if (key !== FEED_KEY) throw new ServiceError('invalid_key', 'The feed key is wrong.')
    },
    checkAnyKey: () => {},
    consoleSession: () => 'no',
    isQueryOpen: () => false,
    admitResearcher: () => null,
    countRead: () => ({}),
    countRows: () => {},
    admitRows: () => {},
    trustedProxies: new TrustedProxies(['127.0.0.1']),
    approximate: null,
    reuseMs: 0,
    bodyMsMax: BODY_MS_MAX,
    observe: () => {},
    observeError: () => {},
    onFault: (error) => console.error(error),
  } as Parameters<typeof startServer>[2])
  const url = `http://127.0.0.1:${http.port}`
  return {
    ...{ client: new Client(url), url, http, forward, positions },
    close: async () => {
      await http.close()
      await bus.close()
    },
  }
}

export interface Target {
  server: ForwardServer
  close(): Promise<void>
}

/** What a server of this process carries out for others. */
export async function startTarget(
  busUrl: string,
  app: TestServer,
  changed: Partial<ConstructorParameters<typeof ForwardServer>[0]> = {},
): Promise<Target> {
  const bus = await connectBus(busSettings(busUrl), 'target')
  const server = new ForwardServer({
    ...{ connection: bus.connection, names: bus.names, nodeId: 'target', isWriter: true, log },
    ...{ relay: app.http.relay, makeCheckpoint: null },
    position: async () => ({ eventNo: 7, accounts: 3 }),
    ...changed,
  })
  await bus.connection.flush()
  return {
    server,
    close: async () => {
      await server.stop()
      // The bus knows it before anything is sent that nobody is to get.
      await bus.connection.flush().catch(() => undefined)
      await bus.close()
    },
  }
}

export { ADMIN_KEY, FEED_KEY }
