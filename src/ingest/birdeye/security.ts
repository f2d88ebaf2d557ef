// In: mints that are traded. Out: patches with their nine enriched fields, as the security provider (Birdeye) gives them.
// What the provider does not say is null. Each mint is asked for once at a time and not again while its answer is fresh; what
// the plan's rate does not allow yet waits, the latest traded first. Never from inside a submission.
import { assert } from '../../lib/assert.ts'
import { BoundedMap } from '../../lib/bounded-map.ts'
import type { Clock } from '../../lib/clock.ts'
import { safeParse } from '../../lib/safe-parse.ts'
import { amount, count } from '../../schema/bounds.ts'
import type { Enriched } from '../../schema/datapoint.ts'
import type { EventSink } from '../../schema/event.ts'
import { EventCounters } from '../event-counters.ts'
import {
  PROVIDER_FRESH_MAX,
  PROVIDER_LOG_EVERY_MS,
  PROVIDER_TTL_MS_MIN,
  PROVIDER_WAITING_MAX,
} from '../limits.ts'
import { LogThrottle } from '../log-throttle.ts'
import { RecencyQueue } from '../recency-queue.ts'
import type { Feed, FeedLog, FeedStatus } from '../types.ts'
import type { Birdeye, BirdeyeAnswer } from './birdeye.ts'

export interface SecurityOptions {
  birdeye: Birdeye
  /** How long an answer is good for: at least a minute. */
  ttlMs?: number
  waitingMax?: number
}

export interface SecurityFeed extends Feed {
  /** Says that a mint's fields are wanted. Returns at once; asking again while the answer is fresh costs nothing. */
  want(mint: string): void
  /** As `want`, and resolves when the answer is in the market, there is none, or the mint gave way to others. */
  resolve(mint: string): Promise<void>
  /** A sink that passes everything on and wants the fields of what is launched or traded. */
  watch(sink: EventSink): EventSink
}

export const SECURITY_TTL_MS = 300_000
const SOURCE = 'birdeye'

/** Starts the provider. It asks for nothing until a mint is wanted. */
export function startSecurity(
  options: SecurityOptions,
  sink: EventSink,
  clock: Clock,
  log: FeedLog,
): SecurityFeed {
  return new Security(options, sink, clock, log)
}

type Data = Record<string, unknown>
const NOTHING: Data = {}
/** undefined (not said) and null (said to be none) differ only for authorities. */
const flagOf = (value: unknown): boolean | null => (typeof value === 'boolean' ? value : null)
const amountOf = (value: unknown): number | null => safeParse(amount, value).data ?? null
const countOf = (value: unknown): number | null => safeParse(count, value).data ?? null
const isThere = (data: Data, field: string): boolean | null => (field in data ? data[field] != null : null)

function transferFeeOf({ transferFeeEnable, isToken2022 }: Data): boolean | null {
  if (typeof transferFeeEnable === 'boolean') return transferFeeEnable
  return transferFeeEnable == null && isToken2022 === false ? false : null
}

/** The provider's share is a fraction; what leaves 0-100 is not believed. */
export function top10PercentOf(fraction: unknown): { percent: number | null; isOutside: boolean } {
  const percent = typeof fraction === 'number' ? 100 * fraction : Number.NaN
  if (Number.isNaN(percent)) return { percent: null, isOutside: false }
  const isOutside = percent < 0 || percent > 100
  return { percent: isOutside ? null : percent, isOutside }
}

/** The nine fields from the provider's two answers; an answer that is missing leaves its fields null. */
export function enrichedOf(security: Data | null, overview: Data | null): Enriched {
  const safety = security ?? NOTHING
  const trading = overview ?? NOTHING
  return {
    has_freeze_authority: isThere(safety, 'freezeAuthority'),
    has_mint_authority: isThere(safety, 'ownerAddress'),
    transfer_fee_enabled: transferFeeOf(safety),
    is_mutable_metadata: flagOf(safety.mutableMetadata),
    top10_holder_pct_onchain: top10PercentOf(safety.top10HolderPercent).percent,
    unique_wallet_24h: countOf(trading.uniqueWallet24h),
    unique_wallet_1h: countOf(trading.uniqueWallet1h),
    buy_volume_24h_usd: amountOf(trading.vBuy24hUSD),
    sell_volume_24h_usd: amountOf(trading.vSell24hUSD),
  }
}

/** Tokens asked for at once, two requests each: as many as keep the plan busy at half a second an answer. The rest wait where
 *  the latest trade still decides who is next. */
const asksMaxOf = (requestsPerSecond: number): number => Math.max(1, Math.ceil(requestsPerSecond / 4))

interface Ask {
  done: Promise<void>
  settle(): void
}

class Security implements SecurityFeed {
  readonly ready = Promise.resolve()
  /** By mint: those that wait, and those that are being asked for. */
  private readonly asks = new Map<string, Ask>()
  private readonly waiting: RecencyQueue
  /** By mint, monotonic. */
  private readonly freshUntilMs = new BoundedMap<string, number>({ entriesMax: PROVIDER_FRESH_MAX })
  private readonly faults: Record<string, number> = {}
  private asking = 0
  private displaced = 0
  private top10Outside = 0
  private latestAnswerAtMs: number | null = null
  private latestError: { message: string; atMs: number } | null = null
  private readonly lines = {
    fault: new LogThrottle(PROVIDER_LOG_EVERY_MS),
    displaced: new LogThrottle(PROVIDER_LOG_EVERY_MS),
  }
  private readonly ttlMs: number
  private readonly asksMax: number
  private readonly birdeye: Birdeye
  private readonly counters: EventCounters
  private readonly clock: Clock
  private readonly log: FeedLog
  private readonly stopping = new AbortController()

  constructor(options: SecurityOptions, sink: EventSink, clock: Clock, log: FeedLog) {
    const { birdeye, ttlMs = SECURITY_TTL_MS, waitingMax = PROVIDER_WAITING_MAX } = options
    assert(ttlMs >= PROVIDER_TTL_MS_MIN, `an answer is kept for at least ${PROVIDER_TTL_MS_MIN} ms`)
    this.ttlMs = ttlMs
    this.birdeye = birdeye
    this.asksMax = asksMaxOf(birdeye.requestsPerSecond)
    this.waiting = new RecencyQueue(waitingMax)
    this.counters = new EventCounters(sink)
    this.clock = clock
    this.log = log
  }

  want(mint: string): void {
    if (this.asks.has(mint)) {
      if (this.waiting.has(mint)) this.waiting.want(mint)
      return
    }
    if (this.stopping.signal.aborted || this.isFresh(mint)) return
    const { promise, resolve } = Promise.withResolvers<void>()
    this.asks.set(mint, { done: promise, settle: resolve })
    this.wait(mint)
    this.proceed()
  }

  resolve(mint: string): Promise<void> {
    this.want(mint)
    return this.asks.get(mint)?.done ?? Promise.resolve()
  }

  private isFresh(mint: string): boolean {
    return this.clock.monotonicMs() < (this.freshUntilMs.renew(mint) ?? Number.NEGATIVE_INFINITY)
  }

  private wait(mint: string): void {
    const displaced = this.waiting.want(mint)
    if (displaced === null) return
    this.displaced++
    this.settle(displaced)
    const unsaid = this.lines.displaced.due(this.clock.monotonicMs())
    if (unsaid !== null)
      this.log.warn(
        { feed: 'security', displaced: this.displaced, unsaid },
        'more tokens are traded than the plan of the provider allows to ask for: those traded longest ago give way',
      )
  }

  private settle(mint: string): void {
    this.asks.get(mint)?.settle()
    this.asks.delete(mint)
  }

  /** Asks for as many of those that wait as may be asked for now. */
  private proceed(): void {
    while (this.asking < this.asksMax && !this.stopping.signal.aborted) {
      const mint = this.waiting.take()
      if (mint === null) return
      this.asking++
      void this.ask(mint).finally(() => {
        this.asking--
        this.proceed()
      })
    }
  }

  /** Never rejects. */
  private async ask(mint: string): Promise<void> {
    try {
      const { signal } = this.stopping
      const [security, overview] = await Promise.all([
        this.birdeye.get('/defi/token_security', mint, signal),
        this.birdeye.get('/defi/token_overview', mint, signal),
      ])
      if (signal.aborted) return
      this.count(security)
      this.count(overview)
      const isLimited = security.fault === 'rate_limited' || overview.fault === 'rate_limited'
      // Asked too early, not answered: it waits again, and the client pauses.
      if (isLimited) this.wait(mint)
      else this.take(mint, security, overview)
    } catch (error) {
      this.log.error({ feed: 'security', err: error }, 'an answer of the provider could not be taken')
    } finally {
      if (!this.waiting.has(mint)) this.settle(mint)
    }
  }

  private take(mint: string, security: BirdeyeAnswer, overview: BirdeyeAnswer): void {
    const isMissing = security.data === null && overview.data === null
    this.freshUntilMs.set(mint, this.clock.monotonicMs() + (isMissing ? PROVIDER_TTL_MS_MIN : this.ttlMs))
    // With both answers missing there is nothing to say: what was known keeps its date, what was not stays null.
    if (isMissing) return
    const nowMs = this.clock.now()
    this.latestAnswerAtMs = nowMs
    if (top10PercentOf(security.data?.top10HolderPercent).isOutside) this.top10Outside++
    const fields = {
      ...enrichedOf(security.data, overview.data),
      enriched_at: nowMs,
      enriched_source: SOURCE,
    }
    this.counters.apply({ type: 'patch', mint, ts: nowMs, fields }, nowMs)
  }

  private count({ fault }: BirdeyeAnswer): void {
    if (fault === null) return
    this.faults[fault] = (this.faults[fault] ?? 0) + 1
    this.latestError = { message: fault, atMs: this.clock.now() }
    const unsaid = this.lines.fault.due(this.clock.monotonicMs())
    if (unsaid !== null) this.log.warn({ feed: 'security', fault, unsaid }, 'the provider gave no answer')
  }

  watch(sink: EventSink): EventSink {
    return {
      apply: (event, receivedAtMs) => {
        const rejection = sink.apply(event, receivedAtMs)
        if (rejection === null && (event.type === 'trade' || event.type === 'token')) this.want(event.mint)
        return rejection
      },
    }
  }

  async stop(): Promise<void> {
    this.stopping.abort()
    const open = [...this.asks]
    for (const [mint] of open) if (this.waiting.has(mint)) this.settle(mint)
    await Promise.all(open.map(([, { done }]) => done))
  }

  describe(): FeedStatus {
    return {
      feed: 'security',
      state: this.stopping.signal.aborted ? 'stopped' : 'running',
      simulated: false,
      source: SOURCE,
      requestsPerSecond: this.birdeye.requestsPerSecond,
      asking: this.asking,
      waiting: this.waiting.size,
      displaced: this.displaced,
      latestAnswerAtMs: this.latestAnswerAtMs,
      latestError: this.latestError,
      faults: { ...this.faults },
      top10Outside: this.top10Outside,
      accepted: this.counters.accepted,
      rejected: { ...this.counters.rejected },
    }
  }
}
