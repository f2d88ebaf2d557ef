import type { Clock } from '../../lib/clock.ts'
import { BoundedMap } from '../../lib/collections/bounded-map.ts'
import { ENRICHED_SOURCES } from '../../schema/enrichment.ts'
import type { EventSink } from '../../schema/event.ts'
import { FeedParts } from '../feed-parts.ts'
import { PROVIDER_FAILED_MS, PROVIDER_FRESH_MAX, PROVIDER_WAITING_MAX } from '../limits.ts'
import { RecencyQueue } from '../recency-queue.ts'
import type { Feed, FeedLog, FeedStatus } from '../types.ts'
import { type BirdeyeAnswer, type BirdeyeClient, isAnswered } from './birdeye-client.ts'
import { toEnrichedFields, toTop10Percent } from './enriched-fields.ts'

export interface SecurityOptions {
  birdeye: BirdeyeClient
  /** Whether the market holds a token: no other is made by what Birdeye says of it. */
  holds(mint: string): boolean
  /** How long an answer stays fresh. */
  ttlMs?: number
  waitingMax?: number
}

const SECURITY_TTL_MS = 300_000
export const SECURITY_FEED = 'security'
const SOURCE = ENRICHED_SOURCES.birdeye

/**
 * How many mints are asked for at once, with two requests each: enough to use the plan's rate when an answer takes half a second.
 * The others stay in the queue, where a trade can still move them to the front.
 */
const concurrentMintsMax = (requestsPerSecond: number): number =>
  Math.max(1, Math.ceil(requestsPerSecond / 4))

/**
 * The feed of security fields. It asks Birdeye once at a time for each mint, not again while its answer is fresh, and never
 * as part of a submission. Mints that the plan's rate does not allow yet wait in a queue, the most recently traded first.
 */
export class SecurityFeed implements Feed {
  readonly ready = Promise.resolve()
  readonly #queue: RecencyQueue
  /** By mint: those that are asked for at present. */
  readonly #asking = new Map<string, Promise<void>>()
  /** By mint, on the monotonic clock. */
  readonly #freshUntilMs = new BoundedMap<string, number>({ entriesMax: PROVIDER_FRESH_MAX })
  readonly #faults: Record<string, number> = {}
  #droppedCount = 0
  #top10Outside = 0
  #latestAnswerAtMs: number | null = null
  #latestError: { message: string; atMs: number } | null = null
  readonly #options: SecurityOptions
  readonly #parts: FeedParts

  constructor(options: SecurityOptions, sink: EventSink, clock: Clock, log: FeedLog) {
    this.#options = options
    this.#queue = new RecencyQueue(options.waitingMax ?? PROVIDER_WAITING_MAX)
    // It has nothing to do until a token is launched or traded.
    this.#parts = new FeedParts(SECURITY_FEED, sink, clock, log, 'running')
  }

  /** Asks for a mint's fields, unless its answer is fresh. Returns at once. */
  request(mint: string): void {
    if (this.#parts.stopping.signal.aborted || this.#asking.has(mint) || this.#isFresh(mint)) return
    this.#enqueue(mint)
    this.#askNext()
  }

  #isFresh(mint: string): boolean {
    return this.#parts.clock.monotonicMs() < (this.#freshUntilMs.renew(mint) ?? Number.NEGATIVE_INFINITY)
  }

  #enqueue(mint: string): void {
    const dropped = this.#queue.add(mint)
    if (dropped === null) return
    this.#droppedCount++
    this.#parts.logSeldom(
      'warn',
      { dropped: this.#droppedCount },
      'more tokens are traded than the Birdeye plan allows to ask for: the least recently traded are dropped',
    )
  }

  /** Asks for as many queued mints as may be asked for at once. */
  #askNext(): void {
    const concurrentMax = concurrentMintsMax(this.#options.birdeye.requestsPerSecond)
    while (this.#asking.size < concurrentMax && !this.#parts.stopping.signal.aborted) {
      const mint = this.#queue.take()
      if (mint === null) return
      const asking = this.#ask(mint).then((isLimited) => {
        this.#asking.delete(mint)
        if (isLimited) this.#enqueue(mint)
        this.#askNext()
      })
      this.#asking.set(mint, asking)
    }
  }

  /** Asks for one mint. Does not reject. @returns whether it is to be asked for again: the client pauses before that */
  async #ask(mint: string): Promise<boolean> {
    try {
      const { birdeye } = this.#options
      const { signal } = this.#parts.stopping
      const [security, overview] = await Promise.all([
        birdeye.get('/defi/token_security', mint, signal),
        birdeye.get('/defi/token_overview', mint, signal),
      ])
      if (signal.aborted) return false
      this.#parts.state.set(isAnswered(security) || isAnswered(overview) ? 'running' : 'reconnecting')
      this.#countFault(security)
      this.#countFault(overview)
      if (security.fault === 'rate_limited' || overview.fault === 'rate_limited') return true
      this.#applyAnswers(mint, security, overview)
    } catch (error) {
      this.#parts.noteFault(error)
    }
    return false
  }

  #applyAnswers(mint: string, security: BirdeyeAnswer, overview: BirdeyeAnswer): void {
    const { ttlMs = SECURITY_TTL_MS } = this.#options
    // One that has given way to others meanwhile is asked for again when it comes back.
    if (!this.#options.holds(mint)) return
    const isMissing = security.data === null && overview.data === null
    const freshMs = isMissing ? PROVIDER_FAILED_MS : ttlMs
    this.#freshUntilMs.set(mint, this.#parts.clock.monotonicMs() + freshMs)
    // Without any answer no patch is sent: known fields keep their values and their date.
    if (isMissing) return
    const nowMs = this.#parts.clock.now()
    this.#latestAnswerAtMs = nowMs
    if (toTop10Percent(security.data?.top10HolderPercent).isOutside) this.#top10Outside++
    const fields = {
      ...toEnrichedFields(security.data, overview.data),
      enriched_at: nowMs,
      enriched_source: SOURCE,
    }
    this.#parts.counters.apply({ type: 'patch', mint, ts: nowMs, fields }, nowMs)
  }

  #countFault({ fault }: BirdeyeAnswer): void {
    if (fault === null) return
    this.#faults[fault] = (this.#faults[fault] ?? 0) + 1
    if (fault === 'malformed') this.#parts.counters.countRejected(fault, () => 'an answer of another form')
    this.#latestError = { message: fault, atMs: this.#parts.clock.now() }
    this.#parts.logSeldom('warn', { fault }, 'Birdeye gave no usable answer')
  }

  /** A sink that passes all events on to `sink` and requests the fields of each token that is launched or traded. */
  watch(sink: EventSink): EventSink {
    return {
      prefetch: (mints) => sink.prefetch?.(mints),
      apply: (event, receivedAtMs) => {
        const rejection = sink.apply(event, receivedAtMs)
        if (rejection === null && (event.type === 'trade' || event.type === 'token')) this.request(event.mint)
        return rejection
      },
    }
  }

  async stop(): Promise<void> {
    this.#parts.stopping.abort()
    await Promise.all(this.#asking.values())
    this.#parts.state.set('stopped')
  }

  describe(): FeedStatus {
    return this.#parts.status({
      source: SOURCE,
      requestsPerSecond: this.#options.birdeye.requestsPerSecond,
      asking: this.#asking.size,
      waiting: this.#queue.size,
      displaced: this.#droppedCount,
      latestAnswerAtMs: this.#latestAnswerAtMs,
      latestError: this.#latestError,
      faults: { ...this.#faults },
      top10Outside: this.#top10Outside,
    })
  }
}
