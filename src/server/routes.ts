import type { Route } from '../http/route.ts'
import { allRoutes } from '../http/routes/all-routes.ts'
import type { RouteParts } from '../http/routes/route-parts.ts'
import type { Metrics } from '../lib/metrics/metrics.ts'
import { SingleFlight } from '../lib/single-flight.ts'
import type { Health } from './health.ts'

/** How long one text of /metrics serves all who ask, since anybody may ask as often as they like. */
const METRICS_TTL_MS = 1_000

export interface RouteDeps extends Omit<RouteParts, keyof WriterParts | 'health' | 'metrics'> {
  health: Health
  metrics: Metrics
  /** Null: another process carries out what needs them. */
  writer: WriterParts | null
}

/** What only the process has that takes events and submissions. */
export type WriterParts = Pick<
  RouteParts,
  | ('agents' | 'submissions' | 'dataDir' | 'store' | 'exports' | 'queries' | 'downloads' | 'downloadMsMax')
  | ('push' | 'trustClock')
>

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
    ...(writer ?? PASSED_ON),
  })
}

/** Where another process has them, no route here asks for them. */
const PASSED_ON = {} as WriterParts
