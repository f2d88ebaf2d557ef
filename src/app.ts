// In: a configuration. Out: the whole server, running: store, submissions, engine, feeds and HTTP layer, wired to one another; and
// the way to stop it without losing anything. Knows every folder; holds no rule of any.
import { randomBytes, timingSafeEqual } from 'node:crypto'
import { realpathSync } from 'node:fs'
import type { Config } from './config/config.ts'
import { BODY_MS_MAX, READ_WINDOW_MS, READERS_MAX, REGISTER_WINDOW_MS } from './http/limits.ts'
import { authorityOf, TrustedProxies } from './http/request/addresses.ts'
import { NO_LIMITS, ReadLimits, readerOf } from './http/request/read-limits.ts'
import { Cursors } from './http/response/cursors.ts'
import type { Route } from './http/route.ts'
import { agentRoutes } from './http/routes/agents.ts'
import { barRoute } from './http/routes/bars.ts'
import { documentRoutes } from './http/routes/documents.ts'
import { exportRoutes } from './http/routes/export.ts'
import { marketRoutes } from './http/routes/market.ts'
import { operationRoutes } from './http/routes/operation.ts'
import { type HttpServer, startServer } from './http/server.ts'
import { Broadcaster, type FollowOptions } from './http/stream/broadcaster.ts'
import { ingestFrame, ingestInSlices } from './ingest/push/push.ts'
import {
  feedStates,
  followsRecordedTime,
  provenanceOf,
  startFeeds,
  whyNotWarm,
} from './ingest/start-feeds.ts'
import type { Feed } from './ingest/types.ts'
import { type Clock, readClock, systemClock } from './lib/clock.ts'
import { createLog, type Log } from './lib/log.ts'
import { createMetrics, type Metrics } from './lib/metrics.ts'
import { shared } from './lib/shared.ts'
import { steadyClock } from './lib/steady-clock.ts'
import { HOUR_MS } from './lib/time.ts'
import { Market } from './market/market.ts'
import { createMarketRecorder, readRecorderMetrics } from './recording/market-recorder.ts'
import { ServiceError } from './schema/errors.ts'
import { openPositions, type Positions } from './store/data-folder/positions.ts'
import { type ExportService, type ExportServiceOptions, openExportService } from './store/export/exporter.ts'
import type { RetainedDays } from './store/lake/retention.ts'
import { openStore } from './store/store.ts'
import type { LakeRepair, Store, StoreStatus } from './store/types.ts'
import { createAgentRegistry } from './submissions/accounts/agent-registry.ts'
import { STRIKE_RULES } from './submissions/accounts/strikes.ts'
import { createSubmissionService } from './submissions/submission-service.ts'
import type { Agents, Caller } from './submissions/types.ts'

/** How often quiet tokens' windows and bars are carried forward. */
const TICK_MS = 100
/** How long requests under way may take once the server is closing. */
const DRAIN_MS_MAX = 10_000
/** Connections are closed once nobody has used one for so long, or once so much time was given to it. */
const QUIET_MS = 100
const LINGER_MS_MAX = 1_000
/** How long the last market data may take to reach the store, though the disk hang. */
const RECORDS_MS_MAX = 4_000
/** How long /health waits for the store's word. */
const STORE_STATUS_MS_MAX = 1_000
/** How long the store's word, and the text of /metrics, serve all who ask: anybody may, as often as they like. */
const STATUS_KEPT_MS = 1_000

export interface App {
  port: number
  url: string
  market: Market
  store: Store
  exports: ExportService
  http: Pick<HttpServer, 'inFlight' | 'bodyBytes'>
  /** Resolves when every feed has delivered what it has at the start, and the lake has what the log held. */
  ready: Promise<void>
  /** Resolves when what the market has said of its tokens so far is with the store. */
  recorded(): Promise<void>
  /** Refuses new work, finishes what is under way, flushes and closes. May be called more than once. */
  stop(): Promise<void>
}

export interface AppOptions {
  clock?: Clock
  log?: Log
  /** Bounds of followers that are otherwise too long to wait for. */
  follow?: Partial<FollowOptions>
  exports?: Pick<ExportServiceOptions, 'msMax' | 'drainMs'>
  bodyMsMax?: number
}

export async function startApp(config: Config, options: AppOptions = {}): Promise<App> {
  const clock = options.clock ?? systemClock
  const log = options.log ?? createLog({ format: config.logFormat, quiet: config.quiet })
  const { dataDir, lakeFlushMs, lakeTidyMs, lakeGraceMs, diskReserveMb } = config
  const retainDays = retainedDays(config)
  const store = await openStore({
    dataDir,
    lakeFlushMs,
    lakeTidyMs,
    lakeGraceMs,
    diskReserveMb,
    retainDays,
    cooldownMs: config.submitCooldownMs,
    provenance: provenanceOf(config),
    isMixed: config.mixed,
    clock,
    log,
  })
  try {
    const exporter = openExportService({
      dataDir,
      log,
      diskReserveMb,
      onUnreadable: store.checkLake,
      ...options.exports,
    })
    const positions = await openPositions({ dataDir, nowMs: clock.now(), log })
    return await compose(config, store, exporter, positions, clock, log, options)
  } catch (error) {
    await store.close()
    throw error
  }
}

async function compose(
  config: Config,
  store: Store,
  exporter: ExportService,
  positions: Positions,
  clock: Clock,
  log: Log,
  options: AppOptions,
): Promise<App> {
  const recorder = createMarketRecorder(store, log)
  const market = new Market({
    tokensMax: config.tokensMax,
    newWindowMs: config.newHours * HOUR_MS,
    firstSeq: positions.first,
    ...recorder.listeners,
  })
  recorder.of(market)
  const recordedTime = followsRecordedTime(config)
  const marketClock = steadyClock(clock, (jumpMs, isFollowed) =>
    log.warn(
      { jumpMs },
      `the clock has jumped; the market ${isFollowed ? 'follows it' : 'waits whether it stays so'}`,
    ),
  )
  if (!recordedTime) market.advanceTo(marketClock.now())
  for (const { mint, count } of store.recovered.coverage) {
    market.apply({ type: 'analysisCount', mint, ts: market.timeMs, count }, market.timeMs)
  }

  const { recovered } = store
  const agents = createAgentRegistry({
    recovered,
    store,
    clock,
    randomBytes,
    submitRateMax: config.submitRate,
    registrationOpen: config.registration === 'open',
  })
  const submissions = createSubmissionService({
    market,
    store,
    agents,
    clock,
    marketMs: () => market.timeMs,
    recordedTime,
    recovered,
    submitRateMax: config.submitRate,
    cooldownMs: config.submitCooldownMs,
    strikeRules: { ...STRIKE_RULES, strikesMax: config.strikes, suspensionsMax: config.suspensions },
    onAccepted: (mint, count) =>
      market.apply({ type: 'analysisCount', mint, ts: market.timeMs, count }, market.timeMs),
  })

  const { feeds, pushed } = await startFeeds(config, market, marketClock, log)
  let phase: Phase = 'warming_up'
  const metrics = createMetrics()
  readMetrics(metrics, market)
  readRecorderMetrics(metrics, recorder)
  readLakeMetrics(metrics, store)
  const reads = new ReadLimits({
    policy: 'read',
    code: 'read_rate_limited',
    windowMs: READ_WINDOW_MS,
    readersMax: READERS_MAX,
  })
  const registrations = new ReadLimits({
    policy: 'register',
    code: 'register_rate_limited',
    windowMs: REGISTER_WINDOW_MS,
    readersMax: READERS_MAX,
  })

  const broadcaster = new Broadcaster(market, { flushMs: config.followFlushMs, ...options.follow })
  readStreamMetrics(metrics, broadcaster)
  metrics.read('mintlake_exports', 'Exports under way', () => exporter.running)
  metrics.read(
    'mintlake_exports_held_bytes',
    'Bytes of exports that wait for their clients',
    () => exporter.held.bytes,
  )
  const storeStatus = sharedStoreStatus(store)
  const metricsText = shared(() => metrics.text(), STATUS_KEPT_MS)
  const routes: Route[] = [
    ...marketRoutes({ market, broadcaster, cursors: new Cursors(market) }),
    barRoute(market),
    ...agentRoutes({
      agents,
      submissions,
      countRegistration: (ip) => registrations.count(ip, config.registerLimit, readClock(clock)),
    }),
    ...exportRoutes({ exports: exporter }),
    ...operationRoutes({
      agents,
      submissions,
      health: () => health(config, market, storeStatus, feeds, phase),
      notReady: () => notReady(phase, feeds),
      feedStates: () => feedStates(feeds),
      repairLake: (dataDir) => repairLake(config, store, dataDir),
      retireLake: () => store.retireLake(),
      metrics: async () => ({ text: await metricsText(), contentType: metrics.contentType }),
      ingest: async (body, contentType) => ({
        ...(await ingestInSlices(body, contentType, pushed, marketClock)),
      }),
    }),
  ]
  const readLimitOf = (caller: Caller | null) =>
    caller === null ? config.readLimitAnonymous : config.readLimitKeyed
  const rowsMaxOf = (caller: Caller | null) => readLimitOf(caller) * config.rowsPerRead
  const server = await startServer(config.host, config.port, {
    routes: [...routes, ...documentRoutes(routes, config)],
    streams: { market, broadcaster },
    ingestFrame:
      config.feedKey === ''
        ? null
        : (frame, isBinary) => ({ ...ingestFrame(frame, isBinary, pushed, marketClock.now()) }),
    authenticate: (key) => agents.authenticate(key),
    countRead: (caller, ip, rows = 0) => {
      const limit = readLimitOf(caller)
      if (limit === 0) return NO_LIMITS
      const counted = { count: rows, max: rowsMaxOf(caller) }
      return reads.count(readerOf(caller, ip), limit, readClock(clock), counted)
    },
    countRows: (caller, ip, rows) => {
      const counted = { count: rows, max: rowsMaxOf(caller) }
      if (counted.max > 0 && rows > 0) reads.countRows(readerOf(caller, ip), counted, readClock(clock))
    },
    admitRows: (caller, ip) => {
      const max = rowsMaxOf(caller)
      if (max > 0) reads.admitRows(readerOf(caller, ip), max, readClock(clock))
    },
    reuseMs: config.pageAgeMs,
    bodyMsMax: options.bodyMsMax ?? BODY_MS_MAX,
    admit: (route) => admit(route, phase),
    checkOperator: (access, key) =>
      checkOperator(access === 'feed' ? config.feedKey : config.adminKey, key, access),
    checkAnyKey: (key) => {
      const isOperator = [config.feedKey, config.adminKey].some((own) => own !== '' && isSame(own, key))
      if (!isOperator) agents.authenticate(key)
    },
    admitResearcher: (key) => admitResearcher(config.adminKey, key, agents),
    trustedProxies: new TrustedProxies(config.trustedProxies),
    observe: (route, status, seconds) => metrics.observeRequest(route, status, seconds),
    onFault: (error, requestId) => log.error({ err: error, requestId }, 'a request failed'),
  })

  metrics.read('mintlake_request_bodies_bytes', 'Memory that request bodies take', () => server.bodyBytes())
  recorder.start()
  positions.keepAhead(() => market.seq)
  const timer = recordedTime ? null : setInterval(() => market.advanceTo(marketClock.now()), TICK_MS)
  const ready = Promise.all(feeds.map((feed) => feed.ready)).then(() => {
    if (phase === 'warming_up') phase = 'ready'
  })
  // Whoever waits for `ready` sees the failure; nobody waiting is no reason to crash.
  ready.catch((error) => log.error({ err: error }, 'a feed failed at the start'))

  let stopping: Promise<void> | null = null
  const stop = async () => {
    const wasReady = phase === 'ready'
    phase = 'draining'
    server.drain()
    await Promise.all(feeds.map((feed) => feed.stop()))
    if (timer !== null) clearInterval(timer)
    // Who sends us requests learns of it from an answer, not from a refused connection.
    if (wasReady) await new Promise((resolve) => setTimeout(resolve, config.drainNoticeMs))
    await server.stopListening()
    broadcaster.close('draining')
    // Whoever has a connection yet, and uses it, is answered and leaves; then nobody is left whom closing could cut off.
    await Promise.all([server.idle(0, DRAIN_MS_MAX), exporter.close()])
    await server.idle(Math.min(config.drainNoticeMs, QUIET_MS), LINGER_MS_MAX)
    await server.close()
    await Promise.race([recorder.stop().then(() => positions.close()), afterMs(RECORDS_MS_MAX, null)])
    await store.close()
  }
  const url = `http://${authorityOf(config.host, server.port)}`
  return {
    port: server.port,
    url,
    market,
    store,
    exports: exporter,
    http: server,
    ready,
    recorded: recorder.recorded,
    stop: () => {
      stopping ??= stop()
      return stopping
    },
  }
}

/** By table; 0 is for ever. */
function retainedDays(config: Config): RetainedDays {
  const { retainTrainingDays, retainRejectionsDays, retainBarsDays, retainOutcomesDays } = config
  const days: RetainedDays = {
    training: retainTrainingDays,
    rejections: retainRejectionsDays,
    bars: retainBarsDays,
    outcomes: retainOutcomesDays,
  }
  return Object.fromEntries(Object.entries(days).filter(([, retained]) => retained > 0))
}

type StoreHealth = Pick<StoreStatus, 'healthy' | 'reasons'>

/** The store's status: asked for once for all who want it, and told of in time when the store is in trouble. */
function sharedStoreStatus(store: Store): () => Promise<StoreHealth> {
  const asked = shared<StoreHealth>(() => store.status(), 0)
  const silent = { healthy: false, reasons: ['the store does not answer'] }
  return shared(
    () => Promise.race([asked().catch(() => silent), afterMs(STORE_STATUS_MS_MAX, silent)]),
    STATUS_KEPT_MS,
  )
}

async function health(
  config: Config,
  market: Market,
  storeStatus: () => Promise<StoreHealth>,
  feeds: readonly Feed[],
  phase: string,
): Promise<Record<string, unknown>> {
  const described = feeds.map((feed) => feed.describe())
  const stored = await storeStatus()
  return {
    status: phase === 'ready' && stored.reasons.length > 0 ? 'degraded' : phase,
    reasons: stored.reasons,
    simulated: described.some((feed) => feed.simulated),
    feeds: described,
    pushIngest: config.feedKey !== '',
    solPrice: market.solPrice && { ...market.solPrice, ageMs: market.timeMs - market.solPrice.atMs },
    market: { timeMs: market.timeMs, seq: market.seq, ...market.stats() },
    store: stored,
  }
}

const afterMs = <Value>(ms: number, value: Value): Promise<Value> =>
  new Promise((resolve) => setTimeout(resolve, ms, value).unref())

type Phase = 'warming_up' | 'ready' | 'draining'

const SENTENCES = {
  draining: 'The server is shutting down.',
  warming_up: 'The server is warming up.',
} as const

/** Why nobody should be sent here yet, or any more. A source that was reached and is lost is no such reason: what is held is
 *  still served, and its state is told. */
function notReady(phase: Phase, feeds: readonly Feed[]) {
  if (phase !== 'ready') return { code: phase, sentence: SENTENCES[phase] }
  const sentence = whyNotWarm(feeds)
  return sentence === null ? null : { code: 'warming_up' as const, sentence }
}

/** While warming up and draining only the server's own state is told. */
function admit(route: Route, phase: Phase): void {
  if (phase === 'ready' || !route.path.startsWith('/api/')) return
  // A feed that pushes may fill the market before the first read; agents wait until it is warm.
  if (phase === 'warming_up' && route.access === 'feed') return
  throw new ServiceError(phase, SENTENCES[phase], {}, { 'Retry-After': '1' })
}

function checkOperator(expected: string, sent: string, access: 'feed' | 'admin'): void {
  if (expected === '')
    throw new ServiceError('not_found', `This server has no ${access} key: the endpoint is off.`)
  const headers = { 'WWW-Authenticate': 'Bearer' }
  if (sent === '') throw new ServiceError('missing_key', `The ${access} key is required.`, {}, headers)
  if (!isSame(expected, sent))
    throw new ServiceError('invalid_key', `The ${access} key is wrong.`, {}, headers)
}

function isSame(expected: string, sent: string): boolean {
  const [a, b] = [Buffer.from(expected), Buffer.from(sent)]
  return a.length === b.length && timingSafeEqual(a, b)
}

/** A researcher's key, or the operator's: then nobody in particular asks. */
function admitResearcher(adminKey: string, sent: string, agents: Agents): Caller | null {
  if (adminKey !== '' && isSame(adminKey, sent)) return null
  const caller = agents.authenticate(sent)
  if (caller.agent.type === 'researcher') return caller
  throw new ServiceError('key_not_allowed', 'This needs the key of a researcher: ask the operator for one.')
}

/** Whoever names a folder means that one, and perhaps another server has it. */
async function repairLake(config: Config, store: Store, dataDir: string | null): Promise<LakeRepair> {
  const own = realpathSync(config.dataDir)
  if (dataDir !== null && dataDir !== own)
    throw new ServiceError('invalid_parameter', `This server has the data folder ${own}, not ${dataDir}.`)
  return store.repairLake()
}

function readLakeMetrics(metrics: Metrics, store: Store): void {
  metrics.read(
    'mintlake_lake_files_set_aside',
    'Files of the lake that are lost or damaged',
    () => store.lakeLosses().files,
  )
  metrics.read(
    'mintlake_lake_rows_lost',
    'Rows of the lake that were in those files and are nowhere else',
    () => store.lakeLosses().rowsLost,
  )
}

function readStreamMetrics(metrics: Metrics, broadcaster: Broadcaster): void {
  metrics.read('mintlake_streams', 'Streams that follow, over HTTP and WebSocket', () => broadcaster.size)
  metrics.read('mintlake_streams_stalled', 'Streams whose socket is full', () => broadcaster.stalled)
  metrics.read(
    'mintlake_streams_slow_total',
    'Streams ended because they were too slow',
    () => broadcaster.disconnects.slow_consumer,
  )
}

function readMetrics(metrics: Metrics, market: Market): void {
  metrics.read('mintlake_market_tokens', 'Tokens held', () => market.stats().tokens)
  metrics.read('mintlake_market_events_total', 'Events received', () => market.stats().events)
  metrics.read('mintlake_market_trades_total', 'Trades applied', () => market.stats().trades)
  metrics.read(
    'mintlake_market_late_trades_total',
    'Trades dropped because they came too late',
    () => market.stats().lateDropped,
  )
  metrics.read(
    'mintlake_market_evicted_tokens_total',
    'Tokens evicted at the maximum',
    () => market.stats().evicted,
  )
  metrics.read(
    'mintlake_market_feed_disconnects_total',
    'Feeds that lost their source',
    () => market.stats().disconnects,
  )
  metrics.read('mintlake_market_bars', 'Closed bars held', () => market.stats().barsHeld)
  metrics.read('mintlake_market_versions', 'DataPoint versions held', () => market.stats().versionsHeld)
}
