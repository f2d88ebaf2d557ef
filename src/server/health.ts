import type { Route } from '../http/route.ts'
import { tellRefusals } from '../ingest/refusals.ts'
import { feedStates, whyNotWarm, whyWarming } from '../ingest/start-feeds.ts'
import type { Feed, FeedStatus } from '../ingest/types.ts'
import { SingleFlight } from '../lib/single-flight.ts'
import { unlessLate } from '../lib/wait.ts'
import type { Market } from '../market/market.ts'
import { ServiceError } from '../schema/errors.ts'
import { type ToldGap, tellGap } from '../schema/event.ts'
import type { StoreStatus } from '../store/types.ts'
import type { ClusterHealth } from './market-publisher.ts'
import type { RecordingStatus } from './recording-status.ts'

/** How long /health waits for the store's status. */
const STORE_STATUS_MS_MAX = 1_000
/** How long one status serves all who ask, since anybody may ask as often as they like. */
const STORE_STATUS_TTL_MS = 1_000

/** Gaps that have ended which /health shows. */
const GAPS_SHOWN_MAX = 10

type StoreHealth = Pick<StoreStatus, 'healthy' | 'reasons'>
const NO_ANSWER: StoreHealth = { healthy: false, reasons: ['the store does not answer'] }

const SENTENCES = {
  draining: 'The server is shutting down.',
  warming_up: 'The server is warming up.',
} as const

export interface HealthDeps {
  market: Market
  store: { status(): Promise<StoreHealth> }
  feeds: readonly Feed[]
  recording(): RecordingStatus
  /** Sentences while this process refuses requests, since it has too much to do, or may open no more files, and where its clock and
   *  market time do not agree. */
  ownReasons(): string[]
  /** Whether feeds may push. */
  pushIngest: boolean
  /** Whether the market is made up, where no feed of this process says so. */
  isSimulated?: () => boolean
  /** What this process is within a cluster. */
  cluster?: () => ClusterHealth
}

/** What is wrong with a feed, as a sentence; a list of none or one. */
function tellProblem({ feed, state, problem, error, latestError }: FeedStatus): string[] {
  if (typeof problem === 'string') return [problem]
  if (state !== 'failed') return []
  const why = typeof error === 'string' ? error : (latestError?.message ?? 'see the log')
  return [`The feed ${feed} has failed: ${why}`]
}

/** Knows which phase of its life the server is in, admits requests accordingly, and reports for /health and /readyz. */
export class Health {
  #phase: 'warming_up' | 'ready' | 'draining' = 'warming_up'
  #isLeaving = false
  /** Whether the market is served until the end. */
  #keepsMarket = false
  readonly #deps: HealthDeps
  readonly #storeHealth: SingleFlight<StoreHealth>

  constructor(deps: HealthDeps) {
    this.#deps = deps
    // One call at a time also when the store answers later than the reports wait for it.
    const status = new SingleFlight<StoreHealth>(() => deps.store.status(), 0)
    this.#storeHealth = new SingleFlight(
      () =>
        unlessLate(
          STORE_STATUS_MS_MAX,
          status.get().catch(() => NO_ANSWER),
          () => NO_ANSWER,
        ),
      STORE_STATUS_TTL_MS,
    )
  }

  get isReady(): boolean {
    return this.#phase === 'ready'
  }

  /** Called when all feeds are ready. Has no effect on a server that is already draining. */
  markReady(): void {
    if (this.#phase === 'warming_up') this.#phase = 'ready'
  }

  /** From now on /readyz says that the server is draining. Requests are still answered. */
  markLeaving(): void {
    this.#isLeaving = true
  }

  /** From now on requests are refused, but for those of the market, if it was served: it stands still, in memory. */
  markDraining(): void {
    this.#keepsMarket = this.isReady
    this.#phase = 'draining'
  }

  /** @throws ServiceError `warming_up` or `draining` for API routes. Feeds may push while the server warms up. */
  admit(route: Route): void {
    const phase = this.#phase
    if (!route.path.startsWith('/api/')) return
    const isServed = phase === 'ready' || (this.#keepsMarket && route.answersMarket === true)
    const sentence = isServed ? this.#notServing(route) : this.#whyNot(phase)
    if (sentence === null || (phase === 'warming_up' && route.access === 'feed')) return
    throw new ServiceError(phase === 'draining' ? phase : 'warming_up', sentence, {}, { 'Retry-After': '1' })
  }

  #whyNot(phase: keyof typeof SENTENCES): string {
    const own = phase === 'warming_up' ? this.#deps.cluster?.().notServing : null
    return own ?? SENTENCES[phase]
  }

  /** Other routes than those of the market do not depend on whether a reader keeps up. */
  #notServing({ answersMarket }: Route): string | null {
    const { cluster } = this.#deps
    return answersMarket === true ? (cluster?.().notServing ?? null) : null
  }

  /**
   * For /readyz: why no requests should be sent here, or null. A feed that was connected once and lost its source is no such
   * reason: the market is still served, and /health shows the feed's state.
   */
  notReady(): { code: 'warming_up' | 'draining'; sentence: string } | null {
    const phase = this.#isLeaving ? 'draining' : this.#phase
    if (phase !== 'ready') return { code: phase, sentence: this.#whyNot(phase) }
    const { cluster, feeds } = this.#deps
    const health = cluster?.()
    const sentence = whyNotWarm(feeds) ?? health?.notServing ?? health?.notReachable ?? null
    return sentence === null ? null : { code: 'warming_up', sentence }
  }

  /** For answers of the market: why it does not have all yet that it begins with; null: it does. */
  warmingUp(): string | null {
    return whyWarming(this.#deps.feeds)
  }

  /** Refreshes the store's figures, for at most a second. */
  async refreshStore(): Promise<void> {
    await this.#storeHealth.get()
  }

  feedStates(): Record<string, unknown>[] {
    return feedStates(this.#deps.feeds)
  }

  /** The body of /health. */
  async report(): Promise<Record<string, unknown>> {
    const { market, pushIngest } = this.#deps
    const cluster = this.#deps.cluster?.() ?? null
    const feeds = this.#deps.feeds.map((feed) => feed.describe())
    const store = await this.#storeHealth.get()
    const recording = this.#deps.recording()
    const problems = feeds.flatMap(tellProblem)
    const refusals = feeds.flatMap(({ feed, refusals }) => tellRefusals(feed, refusals) ?? [])
    const notWarm = this.isReady ? whyNotWarm(this.#deps.feeds) : null
    const reasons = [
      ...this.#deps.ownReasons(),
      ...store.reasons,
      ...recording.reasons,
      ...(cluster?.reasons ?? []),
      ...problems,
      ...(notWarm === null ? [] : [notWarm]),
      ...refusals,
    ]
    return {
      status: this.isReady && reasons.length > 0 ? 'degraded' : this.#phase,
      reasons,
      simulated: feeds.some((feed) => feed.simulated) || (this.#deps.isSimulated?.() ?? false),
      feeds,
      pushIngest,
      solPrice: market.solPrice && { ...market.solPrice, ageMs: market.timeMs - market.solPrice.atMs },
      market: { timeMs: market.timeMs, seq: market.seq, ...market.stats() },
      gaps: describeGaps(market),
      recording,
      store,
      ...(cluster !== null && { cluster: cluster.report }),
    }
  }
}

function describeGaps(market: Market): { open: ToldGap[]; recent: ToldGap[] } {
  const { open, ended } = market.gaps(GAPS_SHOWN_MAX)
  return { open: open.map(tellGap), recent: ended.map(tellGap) }
}
