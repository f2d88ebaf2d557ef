// The feed of the chain itself: what both programs say, by subscription, from any RPC endpoint.

import type { Clock } from '../../lib/clock.ts'
import { errorMessage } from '../../lib/error-text.ts'
import { unlessAborted, within } from '../../lib/wait.ts'
import type { EventSink, MarketEvent, TradeEvent } from '../../schema/event.ts'
import { FeedParts } from '../feed-parts.ts'
import { UPSTREAM_STEADY_MS } from '../limits.ts'
import type { Feed, FeedLog, FeedStatus, RecordedPlace, RecordedTo, Room } from '../types.ts'
import { UnpricedTrades } from '../unpriced-trades.ts'
import { type Reconnects, reconnectMs, type UpstreamEnd } from '../upstream-socket.ts'
import { Accounts, Mints, readAccount } from './accounts.ts'
import { ChainEvents, type ChainEventsOptions } from './chain-events.ts'
import { ChainEnrichment } from './enrichment/chain-enrichment.ts'
import type { Urgency } from './enrichment/enrichment-queue.ts'
import { Healing } from './healing/healing.ts'
import type { ToldTransaction } from './healing/held-notifications.ts'
import { newestOf, wholeToMs } from './healing/recorded.ts'
import { ENRICH_TICK_MS, EVENT_AHEAD_MS_MAX, IN_FLIGHT_MS, PREDECESSOR_MS_MAX } from './limits.ts'
import { MAINNET_GENESIS, ORCA_SOL_USDC, PYTH_SOL_USD } from './programs.ts'
import { type Account, type ReportedPrice, readOrca, readPyth, SolPrices } from './sol-price.ts'
import type { ChainSource, Commitment } from './source.ts'
import type { LogsNotification, Silence, SubscriptionHandlers, Topic } from './subscription.ts'
import { eventsInLog } from './transaction-events.ts'
import { SeenTransactions, TransactionFetcher } from './transactions.ts'

const SOLANA_FEED = 'solana'

export interface SolanaOptions extends ChainEventsOptions, Reconnects {
  source: ChainSource
  commitment: Commitment
  /** Since when the market holds a token; null: it does not. Without it one that comes back counts as the one that went. */
  heldSince?: (mint: string) => number | null
  /** The hottest tokens of the market, at most so many, the hottest first. Without it none counts as hot. */
  hottest?: (count: number) => readonly string[]
  /** Told where a token's texts and picture are. */
  onUri?: (mint: string, uri: string) => void
  /** Trades that the runs before have recorded, oldest first: told again they do not count. */
  recorded?: readonly RecordedPlace[]
  /** Until when the market has what the runs before brought; null or not there: there were none. */
  recordedTo?: RecordedTo | null
  /** How long an outage may be that is made up for, ms; 0 or not there: none is. */
  healMs?: number
  /** For tests: how much is held back of what comes while what was missed is fetched. */
  heldBytesMax?: number
  /** What was missed comes in a burst, which waits for the disk. */
  room?: Room
}

/** How often trades that wait for the one before them are looked at. */
const EXPIRE_EVERY_MS = PREDECESSOR_MS_MAX / 4
const PRICE_EVERY_MS = 60_000
/** How long the feed connects later for a first price, without which no trade in SOL counts. */
const PRICE_WAIT_MS = 2_000

/**
 * The feed is ready after its first attempt to connect, successful or not, and tries again for as long as it runs, the
 * next endpoint each time. What the chain said while it was not connected may be missing: that is told to the market.
 */
export class SolanaFeed implements Feed {
  readonly ready: Promise<void>
  #connects = 0
  #disconnects = 0
  #notifications = 0
  #failedTransactions = 0
  #truncated = 0
  /** Trades that the market refused as late, and no gap has their time. */
  #lateUntold = 0
  #slot: number | null = null
  /** The newest slot of which something was taken. */
  #takenSlot: number | null = null
  #attempt = 0
  /** Until when nothing is missing: the time of the latest slot, at first that of the start. */
  #wholeUntilMs: number
  #isConnected = false
  /** An endpoint has answered that it is of the chain. Each other one is asked before its own first call. */
  #isOfChain = false
  #pricesAsked: Promise<void> | null = null
  #latestError: { message: string; atMs: number } | null = null
  /** Why no endpoint can be used, as a sentence. */
  #refusal: string | null = null
  readonly #refused: Partial<Record<Topic, string>> = {}
  readonly #options: SolanaOptions
  readonly #source: ChainSource
  readonly #clock: Clock
  readonly #parts: FeedParts
  readonly #healing: Healing
  readonly #priced: UnpricedTrades
  readonly #seen: SeenTransactions
  readonly #prices = new SolPrices()
  readonly #accounts: Accounts
  readonly #fetcher: TransactionFetcher
  readonly #events: ChainEvents
  readonly #enrichment: ChainEnrichment
  readonly #firstAttempt = Promise.withResolvers<void>()
  readonly #running: Promise<void>

  constructor(options: SolanaOptions, sink: EventSink, log: FeedLog) {
    const { source, commitment } = options
    this.#options = options
    this.#source = source
    this.#clock = source.clock
    this.#parts = new FeedParts(SOLANA_FEED, sink, source.clock, log)
    const { counters, stopping } = this.#parts
    const { signal } = stopping
    this.#seen = new SeenTransactions(options.recorded)
    const newest = newestOf(options.recorded)
    this.#takenSlot = newest?.slot ?? null
    this.#priced = new UnpricedTrades(counters, this.#parts.linkOf('solPrice'))
    this.#accounts = new Accounts(source.rpc, commitment, signal, source.collectMs)
    this.#fetcher = new TransactionFetcher(source.rpc, commitment, signal, {
      onEvents: (signature, slot, events) => this.#takeEvents({ signature, slot, events }, true),
      onLost: (signature, reason) => this.#onTransactionLost(signature, reason),
    })
    this.#events = new ChainEvents(this.#accounts, new Mints(this.#accounts), options, {
      apply: (event) => this.#parts.guarded(() => this.#apply(event)),
      onUnreadable: (name, place, sample) => this.#onUnreadable(name, place.signature, sample),
      // Where a clock is far behind it is all that comes: as with what the market refuses, that is told.
      onTimeInvalid: (name, { signature }) =>
        counters.countRejected('time_invalid', () => `${name} of ${signature}`),
    })
    this.#healing = this.#createHealing()
    this.#enrichment = new ChainEnrichment({
      rpc: source.rpc.spare,
      commitment,
      clock: this.#clock,
      signal,
      collectMs: source.collectMs,
      heldSince: options.heldSince ?? ((mint) => (options.holds(mint) ? 0 : null)),
      hottest: (count) => options.hottest?.(count) ?? [],
      onUri: options.onUri,
      apply: (patch) => this.#parts.guarded(() => counters.apply(patch, this.#clock.now())),
    })
    source.rpc.onMethodRefused = (...refusal) => this.#onMethodRefused(...refusal)
    const { recordedTo = null } = options
    this.#wholeUntilMs = recordedTo === null ? this.#clock.now() : wholeToMs(recordedTo, newest?.ts ?? null)
    this.ready = this.#firstAttempt.promise
    this.#running = this.#run()
  }

  #createHealing(): Healing {
    const { source, healMs = 0, heldBytesMax, room } = this.#options
    return new Healing({
      source,
      signal: this.#parts.stopping.signal,
      order: this.#events.order,
      link: this.#parts.linkOf(),
      log: this.#parts.log,
      healMs,
      heldBytesMax,
      room,
      take: (told) => this.#take(told, false),
      isTaken: (signature) => this.#seen.isTaken(signature),
      timeOf: (event) => this.#events.timeOf(event, this.#clock.now()),
      settled: () => this.#eventsSettled(),
    })
  }

  async #run(): Promise<void> {
    const { signal } = this.#parts.stopping
    this.#healing.lost(this.#wholeUntilMs, this.#takenSlot)
    const timers = this.#source.hasOwnTime
      ? []
      : [
          setInterval(() => this.#expire(), EXPIRE_EVERY_MS),
          setInterval(() => this.#askPrices(), PRICE_EVERY_MS),
          setInterval(() => this.#enrichment.tick(), ENRICH_TICK_MS),
        ]
    try {
      while (!signal.aborted) {
        const end = await this.#connectOnce().catch((error) => ({ reason: errorMessage(error) }))
        if (!signal.aborted) this.#onClose(end)
        this.#firstAttempt.resolve()
        if (this.#source.hasEnd) break
        await this.#source.wait(reconnectMs(this.#attempt++, end, this.#options), signal)
      }
    } finally {
      for (const timer of timers) clearInterval(timer)
    }
    await this.#healing.working
    this.#events.order.forget()
    this.#firstAttempt.resolve()
    this.#parts.state.set(signal.aborted ? 'stopped' : this.#refusal === null ? 'finished' : 'failed')
  }

  async #connectOnce(): Promise<UpstreamEnd & Silence> {
    const { signal } = this.#parts.stopping
    // Subscriptions may be served while calls are not: nothing is asked before them that is known.
    const refusal = this.#isOfChain ? null : await this.#checkChain()
    if (refusal !== null) return { reason: refusal }
    const pricesAsked = this.#askPrices()
    if (!this.#prices.isKnownAt(this.#clock.now())) await within(PRICE_WAIT_MS, pricesAsked)
    const openedAtMs = this.#clock.monotonicMs()
    const end = await this.#source.connect(this.#handlers(), signal, () => this.#settled())
    if (this.#clock.monotonicMs() - openedAtMs >= UPSTREAM_STEADY_MS) this.#attempt = 0
    return end
  }

  async #settled(): Promise<void> {
    for (;;) {
      await this.#eventsSettled()
      const { pending } = this.#enrichment
      if (pending === null) return
      await pending
    }
  }

  /** All that events wait for is answered. */
  async #eventsSettled(): Promise<void> {
    for (;;) {
      const pending = this.#accounts.pending ?? this.#fetcher.pending
      if (pending === null) return
      await pending
    }
  }

  /** @returns why the endpoint cannot be used: it is of another chain, or does not answer; null: it can */
  async #checkChain(): Promise<string | null> {
    const answer = await this.#source.rpc.call('getGenesisHash', [], this.#parts.stopping.signal)
    if (answer.ok && answer.result === MAINNET_GENESIS) {
      this.#refusal = null
      this.#isOfChain = true
      return null
    }
    if (answer.ok) this.#refusal = "the tape is of another chain than Solana's mainnet"
    else if (answer.fault === 'other_chain') this.#refusal = answer.message
    return answer.ok ? this.#refusal : answer.message
  }

  /** Subscriptions tell changes alone: the present prices are asked for, once at a time. */
  #askPrices(): Promise<void> {
    this.#pricesAsked ??= this.#readPrices().finally(() => {
      this.#pricesAsked = null
    })
    return this.#pricesAsked
  }

  async #readPrices(): Promise<void> {
    const read = (topic: 'pyth' | 'orca', address: string) =>
      new Promise<void>((resolve) => {
        this.#accounts.want(address, (account) => {
          if (account != null) this.#parts.guarded(() => this.#onPriceAccount(topic, account))
          resolve()
        })
      })
    // A feed that stops is told of no account any more.
    const both = Promise.all([read('pyth', PYTH_SOL_USD), read('orca', ORCA_SOL_USDC)])
    await unlessAborted(both, this.#parts.stopping.signal)
  }

  #handlers(): SubscriptionHandlers {
    return {
      onSubscribed: () => this.#onSubscribed(),
      onSlot: (slot) => this.#onSlot(slot),
      onPause: () => this.#healing.paused(this.#wholeSinceMs),
      onResume: () => this.#healing.resumed(),
      onLogs: (notification) => this.#onLogs(notification),
      onAccount: (topic, value) => {
        const account = readAccount(value)
        if (account !== undefined) this.#onPriceAccount(topic, account)
      },
      onUnknown: () => this.#parts.counters.countRejected('unknown_frame'),
      onNext: (reason) => this.#onClose({ reason }, false),
      onRefused: (topic, message) => this.#onRefused(topic, message),
      onHandlerError: (error) => this.#parts.noteFault(error),
    }
  }

  #onSubscribed(): void {
    const nowMs = this.#clock.now()
    this.#connects++
    this.#isConnected = true
    this.#wholeUntilMs = nowMs
    this.#parts.state.set('running')
    this.#firstAttempt.resolve()
    this.#parts.log.info(
      { feed: SOLANA_FEED, host: this.#source.host, connects: this.#connects },
      'connected',
    )
    this.#healing.connected()
  }

  /** Until when nothing is missing if the connection has ended: an event may have been on its way. */
  get #wholeSinceMs(): number {
    const { newestMs } = this.#events
    return newestMs === 0 ? this.#wholeUntilMs : Math.min(newestMs, this.#wholeUntilMs) - IN_FLIGHT_MS
  }

  /** What waits for its predecessor goes on without it, unless that may be among what is missing. */
  #expire(): void {
    if (!this.#healing.isHolding) this.#events.order.expire(this.#clock.monotonicMs())
  }

  #onSlot(slot: number): void {
    this.#slot = Math.max(slot, this.#slot ?? 0)
    if (this.#isConnected) this.#wholeUntilMs = this.#clock.now()
    this.#healing.onSlot(slot)
    if (this.#source.hasOwnTime) this.#expire()
  }

  #onLogs({ slot, signature, failed, lines }: LogsNotification): void {
    this.#notifications++
    if (this.#isConnected) this.#wholeUntilMs = this.#clock.now()
    if (failed) {
      this.#failedTransactions++
      return
    }
    const told = { slot, signature, ...eventsInLog(lines) }
    if (this.#healing.isHolding) this.#healing.held.add(told, this.#clock.now())
    else this.#take(told, true)
  }

  /** The road of everything that is told, now or later, once or again. @param isLive it is told now */
  #take(told: ToldTransaction, isLive: boolean): void {
    const { slot, signature, isTruncated } = told
    this.#takenSlot = Math.max(slot, this.#takenSlot ?? 0)
    this.#takeEvents(told, isLive)
    if (!isTruncated || !this.#seen.markFetched(signature)) return
    this.#truncated++
    this.#fetcher.fetch(signature, slot)
  }

  #takeEvents({ signature, slot, events }: Omit<ToldTransaction, 'isTruncated'>, isLive: boolean): void {
    const told = { slot, signature, nowMs: this.#clock.now(), monotonicMs: this.#clock.monotonicMs(), isLive }
    for (const event of this.#seen.take(signature, events))
      this.#parts.guarded(() => this.#events.take(event, told))
    if (this.#events.order.hasDue) this.#expire()
  }

  /** What is launched or traded is asked about ahead of need. */
  #apply(event: MarketEvent): void {
    const rejection = this.#priced.apply(event, this.#clock.now())
    const isActive = event.type === 'token' || event.type === 'trade'
    if (rejection === 'late' && event.type === 'trade') this.#noteLate(event)
    if (rejection === null && isActive) this.#enrichment.want([event.mint], 'traded')
  }

  /** What the market refuses as late is told where a gap has its time. Otherwise no gap tells it. */
  #noteLate({ ts, mint }: TradeEvent): void {
    if (this.#healing.tells(ts)) return
    this.#lateUntold++
    this.#parts.logSeldom(
      'warn',
      { mint, at: ts },
      'a trade came too late for the market: it is missing, and no gap tells it',
    )
  }

  /** Events that are missing although no gap tells it, by reason, and their sum. */
  #describeUntold(): Record<string, number> {
    const { pools, unreadable, timeInvalid } = this.#events
    const reasons = {
      late: this.#lateUntold,
      transactionsLost: this.#fetcher.lost,
      swapsDropped: pools.dropped,
      timeInvalid,
      unreadable: Object.values(unreadable).reduce((sum, count) => sum + count, 0),
    }
    return { sum: Object.values(reasons).reduce((sum, count) => sum + count, 0), ...reasons }
  }

  /** Asks the chain what it says of a token beside its trades, unless that is known and fresh. Returns at once. */
  want(mint: string, urgency: Urgency): void {
    this.#enrichment.want([mint], urgency)
  }

  #onPriceAccount(topic: 'pyth' | 'orca', account: Account): void {
    const nowMs = this.#clock.now()
    let believed: ReportedPrice | null = null
    if (topic === 'pyth') {
      const reported = readPyth(account)
      if (reported === null) this.#parts.counters.countRejected('sol_price_unreadable')
      else if (reported.atMs > nowMs + EVENT_AHEAD_MS_MAX) this.#parts.counters.countRejected('time_invalid')
      // A time to come would make those that follow older ones.
      else believed = this.#prices.setPyth({ ...reported, atMs: Math.min(reported.atMs, nowMs) }, nowMs)
    } else {
      const usd = readOrca(account)
      if (usd === null) this.#parts.counters.countRejected('sol_price_unreadable')
      else believed = this.#prices.setOrca(usd, nowMs)
    }
    if (believed === null) return
    this.#parts.counters.apply(
      { type: 'solPrice', ts: believed.atMs, usd: believed.usd, source: 'pyth' },
      nowMs,
    )
  }

  #onRefused(topic: Topic, message: string): void {
    const text = this.#source.masked(message)
    this.#refused[topic] = text
    this.#parts.log.warn(
      { feed: SOLANA_FEED, topic, message: text },
      'the endpoint refuses a subscription: the feed goes on without it',
    )
  }

  #onMethodRefused(method: string, host: string, message: string): void {
    this.#parts.log.warn(
      { feed: SOLANA_FEED, method, host, message: this.#source.masked(message) },
      'the endpoint does not serve this method: what it would say of tokens is unknown, unless another endpoint does',
    )
  }

  #onUnreadable(name: string, signature: string, sample: string): void {
    this.#parts.logSeldom(
      'error',
      { event: name, signature, sample },
      'an event of the chain could not be read: its layout may have changed',
    )
  }

  #onTransactionLost(signature: string, reason: string): void {
    this.#parts.counters.countRejected('transaction_lost')
    this.#parts.logSeldom(
      'warn',
      { signature, reason: this.#source.masked(reason) },
      'a transaction with a truncated log could not be fetched: its trades are missing',
    )
  }

  /** @param isEnd nothing more comes */
  #onClose(
    { reason, silentMs = 0, silentSlot = null }: UpstreamEnd & Silence,
    isEnd = this.#source.hasEnd,
  ): void {
    if (isEnd && this.#connects === 0)
      this.#refusal ??= `the tape has no connection with all that is needed: ${this.#latestError?.message ?? reason}`
    const nowMs = this.#clock.now()
    const wasConnected = this.#isConnected
    this.#isConnected = false
    this.#parts.state.set(this.#refusal === null ? 'reconnecting' : 'failed')
    this.#latestError = { message: this.#source.masked(reason), atMs: nowMs }
    // A tape loses nothing by its end: its time ends there too.
    if (wasConnected && !isEnd) {
      this.#disconnects++
      // Of the program that was silent the longest nothing later was taken.
      this.#wholeUntilMs = Math.min(this.#wholeUntilMs, nowMs - silentMs)
      const takenSlot = this.#takenSlot
      const lastSlot = takenSlot === null ? null : Math.min(takenSlot, silentSlot ?? takenSlot)
      this.#healing.lost(this.#wholeSinceMs, lastSlot)
    }
    if (isEnd) return
    this.#parts.logSeldom(
      'warn',
      { error: this.#latestError.message, disconnects: this.#disconnects },
      wasConnected ? 'disconnected: data may be missing; trying again' : 'not connected: trying again',
      'lost',
    )
  }

  async stop(): Promise<void> {
    this.#parts.stopping.abort()
    await this.#running
  }

  describe(): FeedStatus {
    const { rpc, host } = this.#source
    return this.#parts.status({
      problem: this.#refusal ?? this.#events.problem,
      isConnected: this.#isConnected,
      host,
      latestError: this.#latestError,
      slot: this.#slot,
      connects: this.#connects,
      disconnects: this.#disconnects,
      notifications: this.#notifications,
      failedTransactions: this.#failedTransactions,
      duplicates: this.#seen.duplicates,
      truncated: { transactions: this.#truncated, fetched: this.#fetcher.fetched, lost: this.#fetcher.lost },
      ...this.#events.describe(),
      healing: this.#healing.describe(),
      untold: this.#describeUntold(),
      enrichment: this.#enrichment.describe(),
      prices: this.#prices.describe(),
      refused: { ...this.#refused },
      rpc: rpc.describe(),
    })
  }

  whyNotReady(): string | null {
    if (this.#connects > 0 || this.#source.hasEnd) return null
    const error = this.#latestError === null ? '' : `: ${this.#latestError.message}`
    return `No endpoint of Solana has been reached yet${error}`
  }
}
