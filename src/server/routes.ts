import { realpathSync } from 'node:fs'
import type { Config } from '../config/settings.ts'
import type { HttpNode } from '../http/node.ts'
import { Cursors } from '../http/response/cursors.ts'
import type { Route } from '../http/route.ts'
import { allRoutes } from '../http/routes/all-routes.ts'
import type { Broadcaster } from '../http/stream/broadcaster.ts'
import type { PushFeed } from '../ingest/push/push-feed.ts'
import type { Metrics } from '../lib/metrics/metrics.ts'
import { SingleFlight } from '../lib/single-flight.ts'
import type { Market } from '../market/market.ts'
import { ServiceError } from '../schema/errors.ts'
import type { Exporter, LakeDownloads, LakeQueries, Store } from '../store/types.ts'
import type { Agents, Submissions } from '../submissions/types.ts'
import type { ClientLimits } from './client-limits.ts'
import type { Health } from './health.ts'

/** How long one text of /metrics serves all who ask, since anybody may ask as often as they like. */
const METRICS_TTL_MS = 1_000

export interface RouteDeps {
  config: Config
  node: HttpNode
  market: Market
  broadcaster: Broadcaster
  /** A new one unless given. */
  cursors?: Cursors
  agents: Agents
  submissions: Submissions
  exporter: Exporter
  downloads: LakeDownloads
  queries: LakeQueries
  downloadMsMax?: number | undefined
  store: Pick<Store, 'calibration' | 'repairLake' | 'retireLake' | 'stageBackup'>
  health: Health
  metrics: Metrics
  limits: ClientLimits
  push: PushFeed
}

/** Every route of the server, with those that describe the others. */
export function createRoutes(deps: RouteDeps): Route[] {
  const { cursors = new Cursors(deps.market, deps.node.id) } = deps
  const { config, node, market, broadcaster, agents, submissions, health, metrics, limits } = deps
  const metricsText = new SingleFlight(async () => {
    await health.refreshStore()
    return metrics.text()
  }, METRICS_TTL_MS)
  return allRoutes({
    node,
    market,
    broadcaster,
    cursors,
    agents,
    submissions,
    countRegistration: (ip) => limits.countRegistration(ip),
    readQuota: (caller) => limits.readQuota(caller),
    calibration: () => deps.store.calibration(),
    exports: deps.exporter,
    downloads: deps.downloads,
    queries: deps.queries,
    downloadMsMax: deps.downloadMsMax,
    health: () => health.report(),
    notReady: () => health.notReady(),
    feedStates: () => health.feedStates(),
    repairLake: async (dataDir) => {
      checkDataDir(config.dataDir, dataDir)
      return deps.store.repairLake()
    },
    stageBackup: async (dataDir) => {
      checkDataDir(config.dataDir, dataDir)
      return deps.store.stageBackup()
    },
    retireLake: () => deps.store.retireLake(),
    metrics: async () => ({ text: await metricsText.get(), contentType: metrics.contentType }),
    ingest: async (body, contentType) => ({
      ...(await deps.push.ingest(body, contentType)),
    }),
    settings: config,
  })
}

/** A request that names a data folder may have reached the wrong server. @throws ServiceError `invalid_parameter`. */
function checkDataDir(ownDataDir: string, namedDataDir: string | null): void {
  const own = realpathSync(ownDataDir)
  if (namedDataDir !== null && namedDataDir !== own)
    throw new ServiceError(
      'invalid_parameter',
      `This server has the data folder ${own}, not ${namedDataDir}.`,
    )
}
