import type { DocumentSettings } from '../docs/texts/limits-text.ts'
import type { Route } from '../route.ts'
import { type AgentDeps, agentRoutes } from './agents.ts'
import { barRoute } from './bars.ts'
import { agentRecordRoute, type CalibrationDeps, calibrationRoute } from './calibration.ts'
import { type ConsoleDeps, type ConsoleSettings, consoleRoutes } from './console.ts'
import { documentRoutes } from './documents.ts'
import { type ExportDeps, exportRoutes } from './export.ts'
import { type LakeDeps, lakeRoutes } from './lake.ts'
import { type MarketDeps, marketRoutes } from './market.ts'
import { type OperationDeps, operationRoutes } from './operation.ts'
import { type QueryDeps, queryRoute } from './query.ts'
import { type SessionDeps, sessionRoutes } from './sessions.ts'

export interface AllRouteDeps
  extends MarketDeps,
    AgentDeps,
    CalibrationDeps,
    ConsoleDeps,
    ExportDeps,
    LakeDeps,
    QueryDeps,
    SessionDeps,
    OperationDeps {
  settings: DocumentSettings & ConsoleSettings
}

/** Every route of the server, with those that describe the others. Only requests read what `deps` has of submissions and the lake. */
export function allRoutes(deps: AllRouteDeps): Route[] {
  const routes = [
    ...marketRoutes(deps),
    barRoute(deps),
    ...agentRoutes(deps),
    calibrationRoute(deps),
    agentRecordRoute(deps),
    ...exportRoutes(deps),
    ...lakeRoutes(deps),
    queryRoute(deps),
    ...sessionRoutes(deps),
    ...operationRoutes(deps),
    ...consoleRoutes(deps),
  ]
  return [...routes, ...documentRoutes(routes, deps.settings)]
}
