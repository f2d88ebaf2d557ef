import type { Metrics } from '../../lib/metrics/metrics.ts'
import type { Market } from '../../market/market.ts'
import type { History } from '../../schema/api/status.ts'
import type { LakeFileServer } from '../../store/download/downloads.ts'
import type { LakeJobs } from '../../store/lake-jobs.ts'
import type { Store } from '../../store/store.ts'
import type { AgentRegistry } from '../../submissions/accounts/agent-registry.ts'
import type { SubmissionService } from '../../submissions/submission-service.ts'
import type { ConsoleSessions } from '../console-sessions.ts'
import type { DocumentSettings } from '../docs/texts/limits-text.ts'
import type { KeyChecks } from '../key-checks.ts'
import type { HttpNode } from '../node.ts'
import type { ClientLimits } from '../request/client-limits.ts'
import type { Cursors } from '../response/cursors.ts'
import type { Broadcaster } from '../stream/broadcaster.ts'
import type { TimeWaits } from '../time-waits.ts'

/** Everything that routes ask. */
export interface RouteParts {
  market: Market
  node: HttpNode
  broadcaster: Broadcaster
  cursors: Cursors
  /** Told of each token whose DataPoint is answered. */
  onDataPoint?: ((mint: string) => void) | undefined
  timeWaits: TimeWaits
  agents: AgentRegistry
  submissions: SubmissionService
  /** The folder of the store. */
  dataDir: string
  store: Pick<
    Store,
    'agentHits' | 'agentRecord' | 'calibration' | 'lostFiles' | 'repairLake' | 'retireLake' | 'stageBackup'
  >
  /** Believes the machine's clock, and brings market time to it. */
  trustClock(): Promise<{ movedMs: number; marketTimeMs: number }>
  limits: Pick<ClientLimits, 'countRegistration' | 'readQuota'>
  /** A monotonic clock, ms. */
  nowMs(): number
  lakeJobs: Pick<LakeJobs, 'exports' | 'queries'>
  downloads: Pick<LakeFileServer, 'begin' | 'find' | 'list'>
  /** How long one download may take; LAKE_DOWNLOAD_MS_MAX unless set. */
  downloadMsMax?: number | undefined
  sessions: Pick<ConsoleSessions, 'open' | 'revoke' | 'revokeAll'>
  keys: Pick<KeyChecks, 'isQueryOpen'>
  /** The folder of the lake; null: the default, or there is none here. */
  lakeFolder: string | null
  health: {
    /** The body of /health. */
    report(): Promise<Record<string, unknown>>
    /** Null if the server is ready, otherwise why not. */
    notReady(): { code: 'warming_up' | 'draining'; sentence: string } | null
    /** The state of each feed, for /readyz. */
    feedStates(): Record<string, unknown>[]
    /** Has the store tell its figures, which some metrics are. */
    refreshStore(): Promise<void>
  }
  /** Samples of the last hour that were taken after a time. */
  history: { since(timeMs: number): History }
  metrics: Pick<Metrics, 'contentType' | 'text'>
  push: {
    /** Applies pushed records. @returns how many were taken, and what was wrong with the others. */
    ingest(body: Uint8Array, contentType: string): Promise<object>
  }
  settings: DocumentSettings & {
    /** Hosts whose images the console may show. */
    imageHosts: readonly string[]
  }
}

/** Of a reader of a cluster: requests that ask what only the writer has are passed on to that. */
export const PASSED_ON = {} as Pick<
  RouteParts,
  | ('agents' | 'submissions' | 'dataDir' | 'store' | 'lakeJobs' | 'downloads' | 'downloadMsMax')
  | ('push' | 'trustClock')
>
