import { randomBytes } from 'node:crypto'
import { resolve } from 'node:path'
import { type Config, isWriter, SETTINGS } from './config/settings.ts'
import { ConsoleSessions } from './http/console-sessions.ts'
import { KeyChecks } from './http/key-checks.ts'
import { BODY_MS_MAX } from './http/limits.ts'
import { type HttpNode, singleNode } from './http/node.ts'
import { authorityOf, TrustedProxies } from './http/request/addresses.ts'
import { ClientLimits } from './http/request/client-limits.ts'
import { keyHint } from './http/request/key-hint.ts'
import { Cursors } from './http/response/cursors.ts'
import { allRoutes } from './http/routes/all-routes.ts'
import { type HttpServer, type ServerDeps, startServer } from './http/server.ts'
import { Broadcaster } from './http/stream/broadcaster.ts'
import { SubmissionLog } from './http/stream/submission-log.ts'
import { TimeWaits } from './http/time-waits.ts'
import { followsRecordedTime, isReplay } from './ingest/feed-settings.ts'
import { type Feeds, prepareFeeds } from './ingest/start-feeds.ts'
import type { Feed } from './ingest/types.ts'
import type { Log } from './lib/log.ts'
import { Metrics } from './lib/metrics/metrics.ts'
import { machineRandom } from './lib/random.ts'
import { requirePort } from './lib/why-not-listening.ts'
import type { Market } from './market/market.ts'
import { readRecorderMetrics } from './recording/market-recorder.ts'
import { ERRORS, ServiceError } from './schema/errors.ts'
import { confirmedStore } from './server/confirmed-store.ts'
import { type Foundation, type FoundationOptions, layFoundation } from './server/foundation.ts'
import { Health } from './server/health.ts'
import { ServerHistory } from './server/history.ts'
import type { MarketPublisher } from './server/market-publisher.ts'
import {
  addDownloadMetrics,
  addLakeJobMetrics,
  addMarketMetrics,
  addRecordingMetrics,
  addServerMetrics,
  addStateMetrics,
  addStoreMetrics,
  addStreamMetrics,
  countForgotten,
  countSubmissions,
} from './server/metrics.ts'
import { refusalLog } from './server/refusal-log.ts'
import { openRunningMarket, type RunningMarket } from './server/running-market.ts'
import { type RunningParts, shutDown } from './server/shutdown.ts'
import type { Tuning } from './server/tuning.ts'
import { OverloadWatch } from './server/watch/overload-watch.ts'
import type { ClockFile } from './store/data-folder/clock-file.ts'
import { openPositions, type Positions } from './store/data-folder/positions.ts'
import { LakeFileServer } from './store/download/downloads.ts'
import { LakeJobs } from './store/lake-jobs.ts'
import { simulatedMarketPath } from './store/paths.ts'
import { AgentRegistry } from './submissions/accounts/agent-registry.ts'
import { SubmissionService, type SubmissionServiceOptions } from './submissions/submission-service.ts'
import type { EvaluatedSubmission, SnapshotStamps, SubmissionStore } from './submissions/types.ts'

/** A server that runs: see `shownOf`, `becomeReady` and `stopOnce`. */
export type App = Awaited<ReturnType<typeof startParts>>

export interface AppOptions extends FoundationOptions {
  tuning?: Tuning
  /** Another writer took this one's place on the bus: nothing may be acknowledged any more. By default the process ends at once. */
  onFenced?(sentence: string): void
  /** Told of the DataPoints that are served, and asked for the market time of a client's own clock. */
  stamps?: SnapshotStamps & { noteServed(mint: string): void }
  /** Told of each submission that is refused. */
  onRefused?: SubmissionServiceOptions['onRefused']
  /** For identities: uniform in [0, 1). */
  random?: () => number
  /** Takes the place of the HTTP engine, below which requests may enter at the pipeline too. */
  startServer?: typeof startServer
}

/** What every part of the server is built on. */
interface Base extends Foundation {
  config: Config
  options: AppOptions
  lakeJobs: LakeJobs
  positions: Positions
}

/**
 * Starts a server. It listens when this resolves; see `ready` for its data.
 * @param laid its foundation, where that is being laid already
 */
export async function startApp(
  config: Config,
  options: AppOptions = {},
  laid: Promise<Foundation> = layFoundation(config, options),
): Promise<App> {
  const foundation = await laid
  const { rulesClock, log, store, clockFile } = foundation
  try {
    await requirePort(config.host, config.port)
    const { dataDir } = config
    const { diskReserveMb } = config.store
    const ofLake = { dataDir, log, diskReserveMb, onUnreadable: store.checkLake }
    const lakeJobs = new LakeJobs(ofLake, options.tuning)
    const positions = await openPositions(dataDir, rulesClock.now(), log)
    return await startParts({ ...foundation, config, options, lakeJobs, positions })
  } catch (error) {
    await clockFile.close()
    await store.close()
    throw error
  }
}

async function startParts(base: Base) {
  const { config, options, log, rulesClock, store, lakeJobs, clockFile } = base
  const publisher = await createPublisher(base)
  const service = publisher?.service
  const running = await openRunningMarket({ ...options, ...base, publisher })
  const { market } = running
  base.followMarket(market)
  const metrics = new Metrics(Object.keys(ERRORS))
  const broadcaster = createBroadcaster(base, market)
  const countSubmission = countSubmissions(metrics)
  const confirmed = publisher === null ? store : confirmedStore(store, publisher)
  const onEvaluated = (evaluated: EvaluatedSubmission) => {
    countSubmission(evaluated.outcome)
    submissionLog.add(evaluated, market.seq)
    sources.want(evaluated.mint)
    publisher?.tell(evaluated, market.seq)
    broadcaster.wake()
  }
  const onAccount = (agentId: string) => service?.changeAccount(agentId)
  const told = { onAccount, onEvaluated, onForgotten: countForgotten(metrics, log, rulesClock) }
  const { agents, submissions } = createSubmissions(base, running, confirmed, told)
  const submissionLog = new SubmissionLog(market, (agentId) => agents.name(agentId))
  const sources = feedsInto(running, base)
  const { feeds, push } = sources
  const overloadWatch = new OverloadWatch(broadcaster, base.clock, log, options.tuning?.overload)
  overloadWatch.addMetrics(metrics)
  const { overload } = overloadWatch
  const health = healthOf(base, running, feeds, publisher, overloadWatch)
  const clients = clientParts(base, agents, metrics)
  const downloads = new LakeFileServer(store, base.servedMs)
  addMetrics(metrics, base, running, { publisher, health, feeds, broadcaster, downloads })
  const node = nodeOf(base, running, publisher)
  const { servedMs: nowMs } = base
  const cursors = new Cursors({ market, run: node.run, watcher: service?.lists, now: nowMs })
  const timeWaits = new TimeWaits(market, options.steps !== undefined)
  const { stamps, tuning } = options
  const writer = {
    dataDir: config.dataDir,
    lakeJobs,
    downloads,
    downloadMsMax: tuning?.downloadMsMax,
    store,
    agents,
    submissions,
    push,
    trustClock: () => trustClockDurably(running, clockFile),
  }
  const onDataPoint = (mint: string) => {
    stamps?.noteServed(mint)
    sources.want(mint)
  }
  const served = { node, market, broadcaster, health, metrics, ...clients }
  const [settings, lakeFolder] = [config, folderForCommands(config)]
  const ofRoutes = { settings, cursors, timeWaits, nowMs, onDataPoint, lakeFolder }
  const ownRoutes = allRoutes({ ...served, ...ofRoutes, ...writer })
  const routes = service?.routes(ownRoutes, cursors) ?? ownRoutes
  // What takes a moment is done before the first request, so that a failure ends the start. A market that is to be applied again
  // may take longer: requests are told that the server warms up.
  if (!running.hasRedo) await beginFeeding(running, sources)
  const server = await listen(base, { ...served, overload, routes, submissionLog, agents, push })
  addServerMetrics(metrics, server)
  const feeding = running.hasRedo ? beginFeeding(running, sources) : Promise.resolve()
  // A market in steps, or a machine that is simulated, has no thread that requests wait for.
  const isReal = options.steps === undefined && options.startServer === undefined
  const watches: Watch[] = isReal ? [clients.history, overloadWatch] : [clients.history]
  const ready = becomeReady({ feeding, sources, running, health, watches, log })
  feeding.then(store.forgetRecovered, store.forgetRecovered)
  service?.serve({ accounts: agents, port: server.ownPort, ready })
  const { drainNoticeMs } = config
  const ending = { publisher, feeding, broadcaster, timeWaits, drainNoticeMs }
  const parts = { ...base, health, server, sources, running, ...ending }
  const stop = stopOnce(parts, watches)
  return { ...shownOf(parts, config.host), agents, submissions, downloads, ready, stop }
}

/** What callers see of a server that runs. */
function shownOf(
  { server, running, broadcaster, timeWaits, store, lakeJobs, replayed }: RunningParts & Base,
  host: string,
) {
  return {
    port: server.port,
    url: `http://${authorityOf(host, server.port)}`,
    market: running.market,
    store,
    exports: lakeJobs.exports,
    queries: lakeJobs.queries,
    http: server,
    broadcaster,
    timeWaits,
    recorder: running.recorder,
    /** What is played of a lake; null: none is. */
    replayed: replayed?.plan ?? null,
    /** Resolves when the token profiles that have changed so far are durable. */
    recorded: () => running.recorder.recorded(),
    /** Makes a checkpoint now. Resolves when it is there or has failed. */
    checkpoint: () => running.makeCheckpoint(),
  }
}

/** What looks at a server from the moment in which it is ready. */
interface Watch {
  start(): void
  stop(): void
}

/** Stops accepting work, finishes what is in flight, flushes and closes. May be called more than once. */
function stopOnce(parts: RunningParts, watches: readonly Watch[]): () => Promise<void> {
  let stopping: Promise<void> | null = null
  return () => {
    for (const watch of watches) watch.stop()
    stopping ??= shutDown(parts)
    return stopping
  }
}

const createBroadcaster = ({ options, servedMs }: Base, market: Market): Broadcaster => {
  const isStepped = options.steps !== undefined
  return new Broadcaster(market, { isStepped, ageNow: servedMs, ...options.tuning?.follow })
}

const nodeOf = (
  { config, options }: Base,
  { market, runId }: RunningMarket,
  publisher: MarketPublisher | null,
): HttpNode =>
  publisher === null
    ? singleNode(isReplay(config) ? () => market.timeMs : undefined, options.steps !== undefined)
    : { run: () => runId, gate: publisher.service.gate }

/** The data folder, where commands that are told none look elsewhere. */
const folderForCommands = ({ dataDir }: Config): string | null =>
  dataDir === SETTINGS.dataDir.defaultText ? null : resolve(dataDir)

/** What tells clients apart and bounds them, and what consoles ask for. */
function clientParts({ config, options, clock, rulesClock }: Base, agents: AgentRegistry, metrics: Metrics) {
  return {
    limits: new ClientLimits(config, rulesClock, options.tuning?.rowsPerRead),
    sessions: new ConsoleSessions(clock),
    history: new ServerHistory(metrics, clock, config.tokensMax, config.store.diskReserveMb),
    keys: new KeyChecks(config, agents),
  }
}

function healthOf(
  { config, store }: Base,
  running: RunningMarket,
  feeds: readonly Feed[],
  publisher: MarketPublisher | null,
  overloadWatch: OverloadWatch,
): Health {
  const { market } = running
  const cluster = publisher === null ? {} : { cluster: () => publisher.health() }
  const recording = () => running.status()
  const ownReasons = () => [...overloadWatch.reasons(), ...running.timekeeper.reasons()]
  const pushIngest = config.feedKey !== ''
  const state = { store, feeds, recording, ownReasons, pushIngest }
  return new Health({ market, ...state, ...cluster })
}

/** The feeds of the configuration, or a lake that is replayed, on their way into the market. */
function feedsInto(running: RunningMarket, { config, options, rulesClock, log, replayed }: Base): Feeds {
  const { market } = running
  const openReplay = replayed && (() => replayed.replayOptions(market, options.steps))
  const marketSide = {
    isRecorded: running.isRecorded,
    simulatedMarketPath: simulatedMarketPath(config.dataDir),
    heldSince: (mint: string) => market.heldSince(mint),
    tradedLast: (count: number) => market.first('last_trade', count),
    hottest: (count: number) => market.first('hot', count),
    room: () => running.room(),
    recordedPlaces: (feed: string) => running.recordedPlaces(feed),
    recordedTo: (feed: string) => running.recordedTo(feed),
  }
  return prepareFeeds(config, running.sinkOf, rulesClock, log, marketSide, openReplay)
}

/** What an operator has confirmed holds for the next run too. */
async function trustClockDurably(
  running: RunningMarket,
  clockFile: ClockFile,
): Promise<{ movedMs: number; marketTimeMs: number }> {
  const movedMs = running.timekeeper.trust()
  running.recorder.tellComplete()
  if (!(await clockFile.save()))
    throw new ServiceError(
      'store_unavailable',
      'The clock is believed, but this could not be stored: ask again.',
    )
  return { movedMs, marketTimeMs: running.market.timeMs }
}

/** Brings the market to readers, where this process is the writer of a cluster; else nothing of a cluster is loaded. */
async function createPublisher({ config, options, log, store }: Base): Promise<MarketPublisher | null> {
  if (!isWriter(config)) return null
  const { BusWriter } = await import('./cluster/writer/bus-writer.ts')
  const { folderId } = store
  const { tuning, onFenced = endAtOnce } = options
  return new BusWriter({ config, folderId, log, onFenced, waitingBytesMax: tuning?.busWaitingBytesMax })
}

/** What is being answered is not answered any more. */
function endAtOnce(sentence: string): never {
  console.error(`mintlake: ${sentence}`)
  process.exit(1)
}

/** Of the market and of what records it, of what is served, and of the store and what reads the lake. */
function addMetrics(
  metrics: Metrics,
  { store, lakeJobs }: Base,
  running: RunningMarket,
  served: {
    publisher: MarketPublisher | null
    health: Health
    feeds: readonly Feed[]
    broadcaster: Broadcaster
    downloads: LakeFileServer
  },
): void {
  addMarketMetrics(metrics, running.market)
  readRecorderMetrics(metrics, running.recorder)
  addRecordingMetrics(metrics, () => running.status())
  served.publisher?.addMetrics(metrics)
  addStateMetrics(metrics, served.health, served.feeds)
  addStreamMetrics(metrics, served.broadcaster)
  addStoreMetrics(metrics, store)
  addDownloadMetrics(metrics, served.downloads)
  addLakeJobMetrics(metrics, lakeJobs)
}

/** Brings the market to where it was, and starts the feeds. */
async function beginFeeding(running: RunningMarket, sources: Feeds): Promise<void> {
  try {
    if (await running.begin()) await sources.start()
  } catch (error) {
    running.halt()
    await running.stop()
    await running.leaveBus()
    throw error
  }
}

/** Who is told of what happens to agents and submissions. */
interface Told extends Pick<SubmissionServiceOptions, 'onEvaluated' | 'onForgotten'> {
  onAccount(agentId: string): void
}

function createSubmissions(
  { config, options, log, rulesClock: clock, store: { recovered } }: Base,
  running: RunningMarket,
  store: SubmissionStore,
  { onAccount, ...told }: Told,
) {
  const { market } = running
  const random = options.random ?? machineRandom()
  const limits = config.submitLimits
  const agents = new AgentRegistry({
    recovered,
    store,
    clock,
    random,
    randomBytes,
    submitRateMax: limits.rate,
    registrationOpen: config.registration === 'open',
    onChanged: onAccount,
    onSanction: (agentId, sanction) => log.warn({ agentId, ...sanction }, 'an agent was banned or unbanned'),
  })
  const submissions = new SubmissionService({
    market,
    store,
    agents,
    clock,
    random,
    marketMs: () => market.timeMs,
    recordedTime: followsRecordedTime(config),
    stamps: options.stamps,
    onRefused: options.onRefused,
    recovered,
    limits,
    labelsDelayMs: config.labelsDelayMs,
    onAccepted: (mint, count) => running.serverEvents.setAnalysisCount(mint, count),
    ...told,
  })
  return { agents, submissions }
}

/** What of the HTTP layer is made of parts that the server has. */
type HttpParts = Omit<
  ServerDeps,
  'ingestFrame' | 'keyHint' | 'reuseMs' | 'approximate' | 'bodyMsMax' | 'trustedProxies' | 'onFault'
> & { push: Feeds['push'] }

function listen(base: Base, { push, ...parts }: HttpParts): Promise<HttpServer> {
  const { config, options, log, replayed } = base
  return (options.startServer ?? startServer)(config.host, config.port, {
    ...parts,
    ingestFrame: config.feedKey === '' ? null : (frame, isBinary) => push.ingestFrame(frame, isBinary),
    keyHint: keyHint(config),
    reuseMs: config.pageAgeMs,
    approximate: replayed?.plan.approximate ?? null,
    bodyMsMax: options.tuning?.bodyMsMax ?? BODY_MS_MAX,
    trustedProxies: new TrustedProxies(config.trustedProxies),
    onRefused: refusalLog(log, base.clock),
    onFault: (error, requestId) => log.error({ err: error, requestId }, 'a request failed'),
  })
}

interface Starting extends Pick<RunningParts, 'feeding' | 'sources' | 'running' | 'health'> {
  watches: readonly Watch[]
  log: Log
}

/** Resolves when the market is where it was and every feed has delivered its initial data; rejects when one has failed. */
function becomeReady({ feeding, sources, running, health, watches, log }: Starting): Promise<void> {
  const ready = feeding
    .then(() => Promise.all(sources.feeds.map((feed) => feed.ready)))
    .then(() => {
      running.timekeeper.start()
      health.markReady()
      // What a feed begins with is no load of this hour.
      for (const watch of watches) watch.start()
    })
  // Callers that await `ready` see the failure. This handler keeps the process alive when nobody does.
  ready.catch((error) => log.error({ err: error }, 'a feed failed at the start'))
  return ready
}
