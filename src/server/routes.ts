import { realpathSync } from 'node:fs'
import type { HttpNode } from '../http/node.ts'
import type { Cursors } from '../http/response/cursors.ts'
import type { Route } from '../http/route.ts'
import { type AllRouteDeps, allRoutes } from '../http/routes/all-routes.ts'
import type { Broadcaster } from '../http/stream/broadcaster.ts'
import type { TimeWaits } from '../http/time-waits.ts'
import type { PushFeed } from '../ingest/push/push-feed.ts'
import type { Metrics } from '../lib/metrics/metrics.ts'
import { SingleFlight } from '../lib/single-flight.ts'
import type { Market } from '../market/market.ts'
import { ServiceError } from '../schema/errors.ts'
import type { LakeJobs } from '../store/lake-jobs.ts'
import type { Store } from '../store/store.ts'
import type { LakeDownloads } from '../store/types.ts'
import type { AgentRegistry } from '../submissions/accounts/agent-registry.ts'
import type { SubmissionService } from '../submissions/submission-service.ts'
import type { ClientLimits } from './client-limits.ts'
import type { ConsoleSessions } from './console-sessions.ts'
import type { Health } from './health.ts'
import type { ServerHistory } from './history.ts'
import type { KeyChecks } from './key-checks.ts'

/** How long one text of /metrics serves all who ask, since anybody may ask as often as they like. */
const METRICS_TTL_MS = 1_000

export interface RouteDeps {
  settings: AllRouteDeps['settings']
  node: HttpNode
  market: Market
  broadcaster: Broadcaster
  cursors: Cursors
  health: Health
  metrics: Metrics
  limits: ClientLimits
  history: ServerHistory
  sessions: ConsoleSessions
  keys: KeyChecks
  /** The data folder where commands do not find it by themselves, else null. */
  lakeFolder: string | null
  timeWaits: TimeWaits
  /** By which the age of shared answers is measured, ms. */
  nowMs(): number
  /** Told of each token whose DataPoint is answered; default: nobody is. */
  onDataPoint?(mint: string): void
  /** Asked for by requests alone: where another process carries them out it may throw. */
  writerParts(): WriterParts
}

/** What only the process has that takes events and submissions. */
export interface WriterParts {
  dataDir: string
  agents: AgentRegistry
  submissions: SubmissionService
  lakeJobs: LakeJobs
  downloads: LakeDownloads
  downloadMsMax?: number | undefined
  /** Believes the machine's clock. */
  trustClock(): Promise<{ movedMs: number; marketTimeMs: number }>
  store: Pick<
    Store,
    'agentHits' | 'agentRecord' | 'calibration' | 'repairLake' | 'retireLake' | 'stageBackup'
  >
  push: PushFeed
}

/** Every route of the server, with those that describe the others. */
export function createRoutes(deps: RouteDeps): Route[] {
  const { market, health, metrics, limits, history, nowMs, writerParts } = deps
  const metricsText = new SingleFlight(
    async () => {
      await health.refreshStore()
      return metrics.text()
    },
    METRICS_TTL_MS,
    nowMs,
  )
  return allRoutes({
    ...deps,
    countRegistration: (ip) => limits.countRegistration(ip),
    readQuota: (caller) => limits.readQuota(caller),
    health: () => health.report(),
    history: (sinceMs) => history.since(sinceMs),
    notReady: () => health.notReady(),
    feedStates: () => health.feedStates(),
    metrics: async () => ({ text: await metricsText.get(), contentType: metrics.contentType }),
    get agents() {
      return writerParts().agents
    },
    get submissions() {
      return writerParts().submissions
    },
    get exports() {
      return writerParts().lakeJobs.exports
    },
    get downloads() {
      return writerParts().downloads
    },
    get downloadMsMax() {
      return writerParts().downloadMsMax
    },
    get queries() {
      return writerParts().lakeJobs.queries
    },
    calibration: () => {
      const { store, submissions } = writerParts()
      return store.calibration(submissions.labelsShownToMs())
    },
    hasAgent: (agentId) => writerParts().agents.has(agentId),
    agentRecord: async (agentId) => {
      const { store, submissions, agents } = writerParts()
      const record = await store.agentRecord(agentId, submissions.labelsShownToMs())
      return { ...record, name: agents.name(agentId) }
    },
    agentHits: (agentIds) => {
      const { store, submissions } = writerParts()
      return store.agentHits(agentIds, submissions.labelsShownToMs())
    },
    agentName: (agentId) => writerParts().agents.name(agentId),
    symbolOf: (mint) => market.profile(mint)?.symbol ?? null,
    repairLake: async (dataDir) => {
      checkDataDir(writerParts().dataDir, dataDir)
      return writerParts().store.repairLake()
    },
    stageBackup: async (dataDir) => {
      checkDataDir(writerParts().dataDir, dataDir)
      return writerParts().store.stageBackup()
    },
    retireLake: () => writerParts().store.retireLake(),
    trustClock: () => writerParts().trustClock(),
    ingest: (body, contentType) => writerParts().push.ingest(body, contentType),
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
