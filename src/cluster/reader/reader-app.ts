// Builds a reader from its configuration: a replica of the market with the routes of a server, and nothing that is stored.
import { setTimeout as sleep } from 'node:timers/promises'
import type { ReaderConfig } from '../../config/reader-settings.ts'
import { ConsoleSessions } from '../../http/console-sessions.ts'
import { KeyChecks } from '../../http/key-checks.ts'
import { BODY_MS_MAX } from '../../http/limits.ts'
import type { HttpNode } from '../../http/node.ts'
import { authorityOf, TrustedProxies } from '../../http/request/addresses.ts'
import { ClientLimits } from '../../http/request/client-limits.ts'
import { keyHint } from '../../http/request/key-hint.ts'
import { Cursors } from '../../http/response/cursors.ts'
import { allRoutes } from '../../http/routes/all-routes.ts'
import { PASSED_ON } from '../../http/routes/route-parts.ts'
import { type HttpServer, startServer } from '../../http/server.ts'
import { Broadcaster } from '../../http/stream/broadcaster.ts'
import { SubmissionLog } from '../../http/stream/submission-log.ts'
import { TimeWaits } from '../../http/time-waits.ts'
import { type Clock, systemClock } from '../../lib/clock.ts'
import { BoundedMap } from '../../lib/collections/bounded-map.ts'
import { createLog, type Log } from '../../lib/log.ts'
import { Metrics } from '../../lib/metrics/metrics.ts'
import { Market } from '../../market/market.ts'
import { ERRORS } from '../../schema/errors.ts'
import { Health } from '../../server/health.ts'
import { ServerHistory } from '../../server/history.ts'
import {
  addMarketMetrics,
  addServerMetrics,
  addStateMetrics,
  addStreamMetrics,
} from '../../server/metrics.ts'
import { closeHttp, finishRequests } from '../../server/shutdown.ts'
import { OverloadWatch } from '../../server/watch/overload-watch.ts'
import { SubmissionError } from '../../submissions/errors.ts'
import type { Caller } from '../../submissions/types.ts'
import type { ToldSubmission } from '../messages.ts'
import { REACH_MS_MAX, SUBMISSIONS_REMEMBERED_MAX } from './limits.ts'
import { ReaderHealth } from './reader-health.ts'
import { ReaderLink } from './reader-link.ts'
import { addReaderMetrics } from './reader-metrics.ts'
import { readerRoutes } from './reader-routes.ts'

export type ReaderApp = Awaited<ReturnType<typeof startReader>>

export interface ReaderOptions {
  clock?: Clock
  log?: Log
  /** As in AppOptions. */
  startServer?: typeof startServer
}

/** Documents are for everybody: only the writer knows all keys. */
class ReaderKeys extends KeyChecks {
  override checkAnyKey(): void {}
}

/** Everything that the parts of a reader share. */
type Shared = ReturnType<typeof createShared>

const NO_STORE = { healthy: true, reasons: [] }

/** Starts a reader. It listens when this resolves, and tells requests that it warms up until it has the market. */
export async function startReader(config: ReaderConfig, options: ReaderOptions = {}) {
  const { promise: ready, resolve: onReady } = Promise.withResolvers<void>()
  const shared = createShared(config, options, onReady)
  const { nodeId, market, link } = shared
  const http = await listen(shared, options.startServer ?? startServer).catch(async (error: unknown) => {
    shared.readerHealth.stop()
    await link.stop()
    throw error
  })
  const serving = link.serve(http)
  let stopping: Promise<void> | null = null
  return {
    port: http.port,
    market,
    nodeId,
    ready,
    url: `http://${authorityOf(config.host, http.port)}`,
    stop: () => {
      // It serves once the bus is reached, which may never happen.
      stopping ??= stop(shared, http).then(() => serving)
      return stopping
    },
  }
}

function createShared(config: ReaderConfig, options: ReaderOptions, onReady: () => void) {
  const { clock = systemClock } = options
  const log = options.log ?? createLog(config.logLevel)
  // Until there is one from the bus.
  const market = new Market({ tokensMax: 1 })
  const broadcaster = new Broadcaster(market)
  const nameOf = (agentId: string): string => link.parts?.accounts.name(agentId) ?? agentId
  const submissionLog = new SubmissionLog(market, nameOf)
  const link: ReaderLink = new ReaderLink({
    settings: config,
    market,
    clock,
    log,
    onSubmission: tellOnce(submissionLog, broadcaster),
  })
  /** See HttpNode. */
  const run = () => link.parts?.replica.runId ?? ''
  const cursors = new Cursors({ market, run, watcher: link.lists })
  const readerHealth = new ReaderHealth({
    link,
    clock,
    log,
    lagMaxMs: config.bus.reader.lagMaxMs,
    onReady: () => {
      health.markReady()
      overloadWatch.start()
      onReady()
    },
    onBehind: () => broadcaster.close('behind'),
  })
  const overloadWatch = new OverloadWatch(broadcaster, clock, log)
  // A reader has no feeds and no store: their state is told by the writer.
  const health: Health = new Health({
    market,
    store: { status: () => Promise.resolve(NO_STORE) },
    feeds: [],
    recording: () => ({ isOn: false, reasons: [], journal: null, checkpoints: null, restored: null }),
    ownReasons: () => overloadWatch.reasons(),
    pushIngest: config.feedKey !== '',
    isSimulated: () => link.parts?.replica.simulated ?? false,
    cluster: () => readerHealth.health(),
  })
  return {
    overloadWatch,
    config,
    clock,
    log,
    nodeId: link.gate.nodeId,
    market,
    run,
    broadcaster,
    timeWaits: new TimeWaits(market),
    cursors,
    submissionLog,
    link,
    readerHealth,
    health,
  }
}

/** A message may come twice. */
function tellOnce(log: SubmissionLog, broadcaster: Broadcaster): (submission: ToldSubmission) => void {
  const told = new BoundedMap<string, true>({ entriesMax: SUBMISSIONS_REMEMBERED_MAX })
  return ({ seq, ...submission }) => {
    if (told.get(submission.analysisId) !== undefined) return
    told.set(submission.analysisId, true)
    log.add(submission, seq)
    broadcaster.wake()
  }
}

function listen(shared: Shared, start: typeof startServer): Promise<HttpServer> {
  const { config, clock, log, market, broadcaster, timeWaits, submissionLog, link, readerHealth, health } =
    shared
  const limits = new ClientLimits(config, clock)
  const metrics = createMetrics(shared)
  const node: HttpNode = {
    run: shared.run,
    lagMs: () => readerHealth.lagMs(),
    gate: link.gate,
    reach: (seq) => link.parts?.replica.reachedPosition(seq, REACH_MS_MAX) ?? Promise.resolve(false),
  }
  const sessions = new ConsoleSessions(clock)
  const history = new ServerHistory(metrics, clock, 0, 0)
  history.start()
  const authenticate = (key: string): Caller => {
    if (link.parts !== null) return link.parts.accounts.authenticate(key)
    throw new SubmissionError('invalid_key', 'The API key is not known yet.')
  }
  // The operator's key is checked by the writer, which alone knows those of researchers and has the lake.
  const keys = new ReaderKeys({ ...config, adminKey: '' }, { authenticate, hasResearcher: () => true })
  const routes = allRoutes({
    ...PASSED_ON,
    settings: config,
    node,
    market,
    broadcaster,
    cursors: shared.cursors,
    health,
    metrics,
    limits,
    history,
    sessions,
    keys,
    lakeFolder: null,
    timeWaits,
    nowMs: () => clock.monotonicMs(),
  })
  const started = start(config.host, config.port, {
    node,
    routes: readerRoutes(routes, shared.cursors, link),
    market,
    broadcaster,
    submissionLog,
    overload: shared.overloadWatch.overload,
    ingestFrame: null,
    isPortShared: config.bus.reader.sharePort,
    health,
    keys,
    limits,
    metrics,
    sessions,
    agents: { authenticate },
    keyHint: keyHint(config),
    reuseMs: config.pageAgeMs,
    approximate: null,
    bodyMsMax: BODY_MS_MAX,
    trustedProxies: new TrustedProxies(config.trustedProxies),
    onFault: (error, requestId) => log.error({ err: error, requestId }, 'a request failed'),
  })
  void started.then((server) => addServerMetrics(metrics, server)).catch(() => undefined)
  return started
}

function createMetrics({ market, health, broadcaster, readerHealth, link, overloadWatch }: Shared): Metrics {
  const metrics = new Metrics(Object.keys(ERRORS))
  addMarketMetrics(metrics, market)
  addStateMetrics(metrics, health, [])
  addStreamMetrics(metrics, broadcaster)
  addReaderMetrics(metrics, readerHealth, link)
  overloadWatch.addMetrics(metrics)
  return metrics
}

/** Clients are told that it stops, requests in flight are answered, then the bus is left. */
async function stop(
  { config, health, readerHealth, broadcaster, timeWaits, link, overloadWatch }: Shared,
  server: HttpServer,
): Promise<void> {
  const wasReady = health.isReady
  overloadWatch.stop()
  health.markDraining()
  server.drain()
  // Clients learn from an answer that the server is draining, before connections are refused.
  if (wasReady) await sleep(config.drainNoticeMs)
  await finishRequests({ server, broadcaster, timeWaits })
  await closeHttp({ server, drainNoticeMs: config.drainNoticeMs })
  readerHealth.stop()
  await link.stop()
}
