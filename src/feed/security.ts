// In: mints that are traded. Out: patches with their nine enriched fields, as the security provider (Birdeye) gives them.
// What the provider does not say is null. Each mint is asked for once at a time and not again while its answer is fresh;
// never from inside a submission.
import { assert } from '../lib/assert.ts'
import type { Clock } from '../lib/clock.ts'
import type { Enriched } from '../schema/datapoint.ts'
import type { EventSink } from '../schema/event.ts'
import { Birdeye, type BirdeyeAnswer, type BirdeyeOptions } from './birdeye.ts'
import { PROVIDER_FRESH_MAX, PROVIDER_TTL_MS_MIN, PROVIDER_WAITING_MAX } from './limits.ts'
import { RecentMap } from './recent-map.ts'
import { Tally } from './tally.ts'
import type { Feed, FeedLog, FeedStatus } from './types.ts'

export interface SecurityOptions extends BirdeyeOptions {
  /** How long an answer is good for: at least a minute. */
  ttlMs?: number
  waitingMax?: number
}

export interface SecurityFeed extends Feed {
  /** Says that a mint's fields are wanted. Returns at once; asking again while the answer is fresh costs nothing. */
  want(mint: string): void
  /** As `want`, and resolves when the answer is in the market, or there is none. */
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
const amountOf = (value: unknown): number | null =>
  typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : null
const countOf = (value: unknown): number | null =>
  Number.isSafeInteger(amountOf(value)) ? (value as number) : null
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

class Security implements SecurityFeed {
  readonly ready = Promise.resolve()
  private readonly open = new Map<string, Promise<void>>()
  private readonly askedAtMs = new RecentMap<number>(PROVIDER_FRESH_MAX)
  private readonly faults: Record<string, number> = {}
  private notTaken = 0
  private top10Outside = 0
  private readonly ttlMs: number
  private readonly waitingMax: number
  private readonly birdeye: Birdeye
  private readonly tally: Tally
  private readonly clock: Clock
  private readonly log: FeedLog
  private readonly stopping = new AbortController()

  constructor(options: SecurityOptions, sink: EventSink, clock: Clock, log: FeedLog) {
    this.ttlMs = options.ttlMs ?? SECURITY_TTL_MS
    assert(this.ttlMs >= PROVIDER_TTL_MS_MIN, `an answer is kept for at least ${PROVIDER_TTL_MS_MIN} ms`)
    this.waitingMax = options.waitingMax ?? PROVIDER_WAITING_MAX
    this.birdeye = new Birdeye(options, this.stopping.signal)
    this.tally = new Tally(sink)
    this.clock = clock
    this.log = log
  }

  want(mint: string): void {
    void this.resolve(mint)
  }

  resolve(mint: string): Promise<void> {
    const open = this.open.get(mint)
    if (open !== undefined) return open
    const askedAtMs = this.askedAtMs.get(mint)
    const isFresh = askedAtMs !== undefined && this.clock.now() - askedAtMs < this.ttlMs
    if (isFresh || this.stopping.signal.aborted) return Promise.resolve()
    if (this.open.size >= this.waitingMax) {
      this.notTaken++
      return Promise.resolve()
    }
    const asking = this.ask(mint).finally(() => this.open.delete(mint))
    this.open.set(mint, asking)
    return asking
  }

  private async ask(mint: string): Promise<void> {
    const [security, overview] = await Promise.all([
      this.birdeye.get('/defi/token_security', mint),
      this.birdeye.get('/defi/token_overview', mint),
    ])
    if (this.stopping.signal.aborted) return
    const nowMs = this.clock.now()
    this.askedAtMs.set(mint, nowMs)
    this.count(security)
    this.count(overview)
    // With both answers missing there is nothing to say: what was known keeps its date, what was not stays null.
    if (security.data === null && overview.data === null) return
    if (top10PercentOf(security.data?.top10HolderPercent).isOutside) this.top10Outside++
    const fields = {
      ...enrichedOf(security.data, overview.data),
      enriched_at: nowMs,
      enriched_source: SOURCE,
    }
    this.tally.apply({ type: 'patch', mint, ts: nowMs, fields }, nowMs)
  }

  private count({ fault }: BirdeyeAnswer): void {
    if (fault === null) return
    if (this.faults[fault] === undefined)
      this.log.warn({ feed: 'security', fault }, 'the provider gave no answer')
    this.faults[fault] = (this.faults[fault] ?? 0) + 1
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
    await Promise.all(this.open.values())
  }

  describe(): FeedStatus {
    return {
      feed: 'security',
      state: this.stopping.signal.aborted ? 'stopped' : 'running',
      simulated: false,
      source: SOURCE,
      waiting: this.open.size,
      notTaken: this.notTaken,
      faults: { ...this.faults },
      top10Outside: this.top10Outside,
      accepted: this.tally.accepted,
      rejected: { ...this.tally.rejected },
    }
  }
}
