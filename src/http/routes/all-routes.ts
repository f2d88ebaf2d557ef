import type { Route } from '../route.ts'
import { agentRoutes } from './agents.ts'
import { barRoute } from './bars.ts'
import { agentRecordRoute, calibrationRoute } from './calibration.ts'
import { consoleRoutes } from './console.ts'
import { documentRoutes } from './documents.ts'
import { exportRoute } from './export.ts'
import { lakeRoutes } from './lake.ts'
import { marketRoutes } from './market.ts'
import { operationRoutes } from './operation.ts'
import { queryRoute } from './query.ts'
import type { RouteParts } from './route-parts.ts'
import { sessionRoutes } from './sessions.ts'
import { submissionRoutes } from './submissions.ts'
import { timeRoute } from './time.ts'

/** Every route of the server, with those that describe the others. */
export function allRoutes(deps: RouteParts): Route[] {
  const routes = [
    ...marketRoutes(deps),
    barRoute(deps),
    timeRoute(deps),
    ...submissionRoutes(deps),
    ...agentRoutes(deps),
    calibrationRoute(deps),
    agentRecordRoute(deps),
    exportRoute(deps),
    ...lakeRoutes(deps),
    queryRoute(deps),
    ...sessionRoutes(deps),
    ...operationRoutes(deps),
    ...consoleRoutes(deps),
  ]
  return [...routes, ...documentRoutes(routes, deps.settings)]
}
