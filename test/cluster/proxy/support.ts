// A node that passes requests on, in the test's own process: an HTTP server whose routes are carried out by a writer that the real bus
// tells of.
import { vi } from 'vitest'
import { busNames, connectBus } from '../../../src/cluster/bus.ts'
import { passedRoute } from '../../../src/cluster/proxy/passed-route.ts'
import { PassingOn, type PassingOnOptions } from '../../../src/cluster/proxy/passing-on.ts'
import type { Position } from '../../../src/cluster/proxy/position.ts'
import { answerAt, ask } from '../../../src/cluster/proxy/questions.ts'
import { readConfig } from '../../../src/config/config.ts'
import { BODY_MS_MAX } from '../../../src/http/limits.ts'
import { singleNode } from '../../../src/http/node.ts'
import { TrustedProxies } from '../../../src/http/request/addresses.ts'
import type { Route } from '../../../src/http/route.ts'
import { allRoutes } from '../../../src/http/routes/all-routes.ts'
import type { RouteParts } from '../../../src/http/routes/route-parts.ts'
import { type HttpServer, type ServerDeps, startServer } from '../../../src/http/server.ts'
import type { StreamSources } from '../../../src/http/stream/stream-session.ts'
import { createLog } from '../../../src/lib/log.ts'
import { ServiceError } from '../../../src/schema/errors.ts'
import { ADMIN_KEY, Client, FEED_KEY } from '../../support/test-server.ts'

const log = createLog('warn')

const settingsOf = (url: string) => readConfig(['--role', 'reader', '--bus', url], {})
export const busSettings = (url: string) => settingsOf(url).bus

export interface Forwarder {
  client: Client
  url: string
  http: HttpServer
  passingOn: PassingOn
  /** Positions that an answer waited for. */
  positions: Position[]
  close(): Promise<void>
}

/** Every route of the server; only their handlers use what they are made of. */
export const routesOf = (url: string): Route[] =>
  allRoutes({
    settings: settingsOf(url),
    node: singleNode(),
    market: { seq: 0 },
    metrics: {},
    health: {},
  } as unknown as RouteParts)

/** A node behind a trusted proxy, so that tests choose the addresses of clients (X-Forwarded-For). */
export async function startForwarder(
  busUrl: string,
  { writerUrl = '', stream = null }: Partial<Pick<PassingOnOptions, 'writerUrl' | 'stream'>> = {},
): Promise<Forwarder> {
  const bus = await connectBus(busSettings(busUrl), 'forwarder')
  const positions: Position[] = []
  const untilApplied = async (position: Position) => void positions.push(position)
  const passingOn = new PassingOn({ bus, untilApplied, log, writerUrl, stream })
  const routes = routesOf(busUrl).map((route) => passedRoute(route, () => passingOn))
  const http = await startServer('127.0.0.1', 0, {
    node: singleNode(),
    routes,
    ingestFrame: null,
    health: { admit: () => {}, warmingUp: () => null },
    agents: {
      authenticate: () => {
        throw new Error('not asked for')
      },
    },
    keys: {
      checkOperator: (_access, key) => {
        if (key !== FEED_KEY) throw new ServiceError('invalid_key', 'The feed key is wrong.')
      },
      isAdmin: () => false,
      checkAnyKey: () => {},
      isQueryOpen: () => false,
      admitResearcher: () => null,
    },
    sessions: { check: () => 'no' },
    overload: { refusal: () => null },
    limits: { countRead: () => ({}), countRows: () => {}, admitRows: () => {} },
    metrics: { observeRequest: () => {}, observeError: () => {} },
    trustedProxies: new TrustedProxies(['127.0.0.1']),
    approximate: null,
    keyHint: '',
    reuseMs: 0,
    bodyMsMax: BODY_MS_MAX,
    onFault: (error) => console.error(error),
  } satisfies Omit<ServerDeps, keyof StreamSources> as unknown as ServerDeps)
  const url = `http://127.0.0.1:${http.port}`
  return {
    ...{ client: new Client(url), url, http, passingOn, positions },
    close: async () => {
      passingOn.close()
      await http.close()
      await bus.close()
    },
  }
}

export interface Target {
  close(): Promise<void>
}

/** Tells the bus that a server of this process is the writer. @param url at which it is reached, unless that is its own */
export async function startTarget(
  busUrl: string,
  { busName, url }: { busName: string; url?: string },
): Promise<Target> {
  const bus = await connectBus(busSettings(busUrl), 'target')
  const { connection, names } = bus
  const own = await vi.waitFor(() => ask(bus, busNames(busName).writer, 'address', 1_000), 10_000)
  const answering = answerAt(connection, names.writer, () => ({ ...own, ...(url !== undefined && { url }) }))
  await connection.flush()
  return {
    close: async () => {
      answering.unsubscribe()
      // The bus knows it before anything is sent that nobody is to get.
      await connection.flush().catch(() => undefined)
      await bus.close()
    },
  }
}

export { ADMIN_KEY, FEED_KEY }
