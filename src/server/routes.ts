import { realpathSync } from 'node:fs'
import type { Route } from '../http/route.ts'
import { allRoutes } from '../http/routes/all-routes.ts'
import type { RouteParts } from '../http/routes/route-parts.ts'
import type { PushFeed } from '../ingest/push/push-feed.ts'
import type { Metrics } from '../lib/metrics/metrics.ts'
import { SingleFlight } from '../lib/single-flight.ts'
import { ServiceError } from '../schema/errors.ts'
import type { LakeJobs } from '../store/lake-jobs.ts'
import type { Store } from '../store/store.ts'
import type { LakeDownloads } from '../store/types.ts'
import type { AgentRegistry } from '../submissions/accounts/agent-registry.ts'
import type { SubmissionService } from '../submissions/submission-service.ts'
import type { Health } from './health.ts'

/** How long one text of /metrics serves all who ask, since anybody may ask as often as they like. */
const METRICS_TTL_MS = 1_000

export interface RouteDeps extends Omit<RouteParts, keyof OfWriter | 'health' | 'metrics'> {
  health: Health
  metrics: Metrics
  /** Null: another process carries out what needs them. */
  writer: WriterParts | null
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
  store: Store
  push: PushFeed
}

/** Every route of the server, with those that describe the others. */
export function createRoutes({ writer, ...deps }: RouteDeps): Route[] {
  const { health, metrics, nowMs } = deps
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
    metrics: async () => ({ text: await metricsText.get(), contentType: metrics.contentType }),
    ...(writer === null ? PASSED_ON : ofWriter(writer)),
  })
}

/** Where another process has them, no route here asks for them. */
const PASSED_ON = {} as OfWriter

type OfWriter = ReturnType<typeof ofWriter>

const ofWriter = ({ dataDir, agents, submissions, lakeJobs, store, push, ...parts }: WriterParts) => ({
  agents,
  submissions,
  ...parts,
  exports: lakeJobs.exports,
  queries: lakeJobs.queries,
  lostFiles: () => store.lostFiles,
  calibration: () => store.calibration(submissions.shownLabels()),
  agentRecord: async (agentId: string) => {
    const record = await store.agentRecord(agentId, submissions.shownLabels())
    return { ...record, name: agents.name(agentId) }
  },
  agentHits: (agentIds: readonly string[]) => store.agentHits(agentIds, submissions.shownLabels()),
  repairLake: async (named: string | null) => {
    checkDataDir(dataDir, named)
    return store.repairLake()
  },
  stageBackup: async (named: string | null, gone: AbortSignal) => {
    checkDataDir(dataDir, named)
    return store.stageBackup(gone)
  },
  retireLake: () => store.retireLake(),
  ingest: (body: Uint8Array, contentType: string) => push.ingest(body, contentType),
})

/** A request that names a data folder may have reached the wrong server. @throws ServiceError `invalid_parameter`. */
function checkDataDir(ownDataDir: string, namedDataDir: string | null): void {
  const own = realpathSync(ownDataDir)
  if (namedDataDir !== null && namedDataDir !== own)
    throw new ServiceError(
      'invalid_parameter',
      `This server has the data folder ${own}, not ${namedDataDir}.`,
    )
}
