import { DAY_MS, HOUR_MS } from '../../lib/time.ts'
import type { EventSink, MarketEvent } from '../../schema/event.ts'
import { mintOfSymbol } from '../../schema/mint.ts'
import { graduatedPool } from './curve.ts'
import { graduatedEvent, patchEvent, tokenEvent } from './events.ts'
import { MOODS } from './mood.ts'
import { Popularity } from './popularity.ts'
import { Random } from './random.ts'
import { launchesBeside, Schedule } from './schedule.ts'
import {
  APPEAL_MAX,
  createAgedToken,
  createLaunchedToken,
  drawAgeMs,
  graduate,
  type SimulatedToken,
  type TokenIdentity,
} from './token.ts'
import {
  arePatchedFieldsOld,
  buyTokens,
  isSoldOut,
  recordTrade,
  simulateTrade,
  type TradeContext,
} from './trading.ts'

export interface SimulationOptions {
  seed: number
  /** Markets of one seed have other events and other tokens in each generation; 0 unless given. */
  generation?: number
  /** Tokens that exist when the history ends, give or take a few: launches are random. */
  tokens: number
  tradesPerSecond: number
  /** When the history ends and the market goes on by the clock, Unix ms. */
  startMs: number
}

/** An event and when the market receives it, Unix ms. Tokens from before the history are received later than their time. */
export interface SimulatedEvent {
  event: MarketEvent
  receivedAtMs: number
}

/** Trades before the live market. */
const HISTORY_TRADES_PER_TOKEN = 20
const HISTORY_TRADES_MAX = 60_000
/** How far the history reaches before the live market. Tokens that are older are known from its beginning. */
const HISTORY_MS = DAY_MS
/** The simulation drops little traded tokens above this multiple of the initial number, or above the minimum. */
const TOKENS_GROWTH_MAX = 2
const TOKENS_MAX_MIN = 10_000
const WALLETS = 4_096
const SOL_USD_MEAN = 150
const SOL_USD_SIGMA_PER_SQRT_HOUR = 0.008
const SOL_USD_PULL_PER_HOUR = 0.02
/** A new token replaces the least popular one of this many random tokens. */
const EVICTION_SAMPLES = 16
const VIEWERS_MEDIAN = 25
const STREAMS_SHARE_MAX = 0.02

/**
 * A simulated market of bonding-curve tokens: launches, trades with skewed popularity, rug pulls, graduations, live streams, patches
 * and the price of SOL, in order of time. The same seed and generation give the same events, however the time is divided into calls.
 */
export class Simulation {
  tokensLaunched = 0
  /** In the names of all tokens and wallets: no two markets share one. */
  readonly #name: string
  readonly #random: Random
  readonly #schedule: Schedule
  readonly #popularity: Popularity
  readonly #tokens: SimulatedToken[] = []
  readonly #tokensMax: number
  readonly #wallets: (string | undefined)[] = []
  readonly #streams: SimulatedToken[] = []
  #solUsd: number
  #solAtMs: number
  #transactions = 0
  /** Patches of tokens in their order, traded or not. */
  #refreshed = 0
  /** Since when the market has seen all that happened, Unix ms. */
  #watchedFromMs: number
  /** Tokens that there are beside those which the schedule launches, the last one first. */
  readonly #arrivals: Arrival[]
  /** Events that were made and not delivered yet. */
  #pending: SimulatedEvent[] = []
  #nowMs: number

  constructor({ seed, generation = 0, tokens, tradesPerSecond, startMs }: SimulationOptions) {
    this.#watchedFromMs = startMs
    this.#name = generation === 0 ? `${seed}` : `${seed}.${generation}`
    this.#random = new Random((seed + generation) % Number.MAX_SAFE_INTEGER)
    this.#tokensMax = Math.max(TOKENS_MAX_MIN, tokens * TOKENS_GROWTH_MAX)
    this.#popularity = new Popularity(this.#tokensMax)
    const historyTrades = Math.min(HISTORY_TRADES_MAX, tokens * HISTORY_TRADES_PER_TOKEN)
    const historyFromMs = startMs - HISTORY_MS
    this.#nowMs = historyFromMs
    this.#solUsd = Math.round(100 * this.#random.lognormal(SOL_USD_MEAN, 0.1)) / 100
    this.#solAtMs = this.#nowMs
    this.#schedule = new Schedule(this.#random, { startMs, historyFromMs, historyTrades, tradesPerSecond })
    this.#emit({ type: 'solPrice', ts: this.#nowMs, usd: this.#solUsd })
    const count = Math.max(1, tokens - launchesBeside(historyTrades))
    this.#arrivals = drawArrivals(this.#random, count, startMs, historyFromMs)
  }

  /** The current tokens. */
  snapshotTokens(): readonly Readonly<SimulatedToken>[] {
    return this.#tokens
  }

  /**
   * Delivers the events up to and including `untilMs`, Unix ms, that were not delivered yet, about `eventsMax` at most.
   * @returns whether none is left
   */
  advance(untilMs: number, sink: EventSink, eventsMax = Number.POSITIVE_INFINITY): boolean {
    for (let delivered = 0; delivered < eventsMax; ) {
      const pending = this.#pending
      this.#pending = []
      for (const { event, receivedAtMs } of pending) sink.apply(event, receivedAtMs)
      delivered += pending.length
      if (!this.#step(untilMs)) return true
    }
    return false
  }

  /** Skips the time up to `timeMs`: nothing happens in it. */
  skipTo(timeMs: number): void {
    this.#schedule.skipTo(timeMs)
    this.#watchedFromMs = timeMs
  }

  /** Simulates the next event, if it is not later than `untilMs`. @returns whether there was one. */
  #step(untilMs: number): boolean {
    const arrival = this.#arrivals.at(-1)
    const process = this.#schedule.take(Math.min(untilMs, (arrival?.knownAtMs ?? untilMs + 1) - 1))
    if (process === null) {
      if (arrival === undefined || arrival.knownAtMs > untilMs) return false
      this.#arrivals.pop()
      this.#nowMs = arrival.knownAtMs
      if (arrival.createdAtMs === arrival.knownAtMs) this.#launch()
      else this.#addAgedToken(arrival.createdAtMs)
      return true
    }
    this.#nowMs = Math.floor(this.#schedule.timeMs)
    switch (process) {
      case 'trade':
        this.#trade(this.#tokens[this.#popularity.draw(this.#random.next())])
        break
      case 'launch':
        this.#launch()
        break
      case 'refresh':
        this.#patch(this.#tokens[this.#refreshed++ % this.#tokens.length])
        break
      case 'solPrice':
        this.#moveSolPrice()
        break
      case 'stream':
        this.#startOrEndStream()
        break
      case 'drift':
        this.#driftAppeal()
        break
    }
    return true
  }

  #emit(event: MarketEvent): void {
    this.#pending.push({ event, receivedAtMs: this.#nowMs })
  }

  readonly #nextWallet = (): string => {
    const number = Math.min(this.#random.below(WALLETS), this.#random.below(WALLETS))
    this.#wallets[number] ??= mintOfSymbol(`mintlake simulated ${this.#name} wallet ${number}`)
    return this.#wallets[number]
  }

  readonly #nextTransaction = (): string => `simulated-${(++this.#transactions).toString(36)}`

  #tradeContext(): TradeContext {
    return {
      random: this.#random,
      timeMs: this.#nowMs,
      solUsd: this.#solUsd,
      nextWallet: this.#nextWallet,
      nextTransaction: this.#nextTransaction,
    }
  }

  /** The identity of the next token. */
  #identity(slot: number): TokenIdentity {
    return {
      random: this.#random,
      marketName: this.#name,
      number: this.tokensLaunched++,
      slot,
      nextWallet: this.#nextWallet,
    }
  }

  #updateWeight(token: SimulatedToken): void {
    this.#popularity.set(token.slot, token.appeal * MOODS[token.mood].heat)
  }

  #trade(token: SimulatedToken): void {
    const mood = token.mood
    this.#emit(simulateTrade(token, this.#tradeContext()))
    this.#afterTrade(token, mood)
  }

  #afterTrade(token: SimulatedToken, moodBefore: string): void {
    if (isSoldOut(token)) this.#graduate(token)
    else if (token.mood !== moodBefore) this.#updateWeight(token)
    if (arePatchedFieldsOld(token)) this.#patch(token)
  }

  #graduate(token: SimulatedToken): void {
    graduate(token, graduatedPool())
    token.appeal = Math.min(APPEAL_MAX, token.appeal * 4)
    this.#updateWeight(token)
    this.#emit(graduatedEvent(token, this.#nowMs))
    this.#patch(token)
  }

  /** A slot for a new token: a free one, or that of an unpopular token. */
  #freeSlot(): number {
    if (this.#tokens.length < this.#tokensMax) return this.#tokens.length
    let slot = this.#random.below(this.#tokensMax)
    for (let sample = 1; sample < EVICTION_SAMPLES; sample++) {
      const other = this.#random.below(this.#tokensMax)
      if (this.#popularity.getWeight(other) < this.#popularity.getWeight(slot)) slot = other
    }
    return slot
  }

  #add(token: SimulatedToken): void {
    this.#tokens[token.slot] = token
    this.#updateWeight(token)
    this.#emit(tokenEvent(token))
  }

  /** Adds a token from before the history. One trade gives its price, and a patch describes its past. */
  #addAgedToken(createdAtMs: number): void {
    const slot = this.#tokens.length
    const nowMs = this.#nowMs
    const token = createAgedToken(this.#identity(slot), createdAtMs)
    this.#add(token)
    if (token.isGraduated) this.#emit(graduatedEvent(token, nowMs))
    this.#trade(token)
  }

  #launch(): void {
    const slot = this.#freeSlot()
    const previous = this.#tokens[slot]
    if (previous !== undefined && previous.viewerCount !== null) this.#endStream(previous)
    const token = createLaunchedToken(this.#identity(slot), this.#nowMs)
    this.#add(token)
    const context = this.#tradeContext()
    const event = buyTokens(token, context, token.creator, Math.min(5, this.#random.lognormal(0.6, 1)))
    recordTrade(token, context, event)
    this.#emit(event)
    this.#afterTrade(token, 'fresh')
  }

  #patch(token: SimulatedToken): void {
    token.tokensMoved = 0
    const isWatched = token.createdAtMs >= this.#watchedFromMs
    this.#emit(patchEvent(token, this.#solUsd, this.#nowMs, isWatched))
    if (token.viewerCount === null) return
    token.viewerCount = Math.max(1, Math.round(token.viewerCount * this.#random.lognormal(1, 0.15)))
    this.#emitLive(token)
  }

  #emitLive(token: SimulatedToken): void {
    const { mint, viewerCount } = token
    this.#emit({ type: 'live', mint, ts: this.#nowMs, isLive: viewerCount !== null, viewerCount })
  }

  #moveSolPrice(): void {
    const hours = (this.#nowMs - this.#solAtMs) / HOUR_MS
    const pull = SOL_USD_PULL_PER_HOUR * hours * Math.log(SOL_USD_MEAN / this.#solUsd)
    const shock = SOL_USD_SIGMA_PER_SQRT_HOUR * Math.sqrt(hours) * this.#random.normal()
    this.#solUsd = Math.round(10_000 * this.#solUsd * Math.exp(pull + shock)) / 10_000
    this.#solAtMs = this.#nowMs
    this.#emit({ type: 'solPrice', ts: this.#nowMs, usd: this.#solUsd })
  }

  /** Starts a live stream of a token drawn by popularity, or ends one. */
  #startOrEndStream(): void {
    const full = this.#streams.length >= 1 + this.#tokens.length * STREAMS_SHARE_MAX
    if (full || (this.#streams.length > 0 && this.#random.chance(0.3))) {
      this.#endStream(this.#random.pick(this.#streams))
      return
    }
    const token = this.#tokens[this.#popularity.draw(this.#random.next())]
    if (token.viewerCount !== null) return
    token.viewerCount = 1 + Math.round(this.#random.lognormal(VIEWERS_MEDIAN, 1.2))
    this.#streams.push(token)
    this.#emitLive(token)
  }

  #endStream(token: SimulatedToken): void {
    this.#streams.splice(this.#streams.indexOf(token), 1)
    token.viewerCount = null
    this.#emitLive(token)
  }

  /** Changes the appeal of one token, with a pull back to that of most tokens. */
  #driftAppeal(): void {
    const token = this.#random.pick(this.#tokens)
    token.appeal = Math.min(APPEAL_MAX, Math.max(1, token.appeal ** 0.9 * this.#random.lognormal(1, 0.6)))
    this.#updateWeight(token)
  }
}

/** When a token was launched, and since when the market knows it: its launch, or the beginning of the history. */
interface Arrival {
  createdAtMs: number
  knownAtMs: number
}

/** Launches before the live market, the last one to become known first. */
function drawArrivals(random: Random, count: number, startMs: number, historyFromMs: number): Arrival[] {
  // One is there from the beginning: something can be traded then.
  const launches = Array.from({ length: count }, (_, index) =>
    index === 0 ? historyFromMs - drawAgeMs(random) : startMs - drawAgeMs(random),
  )
  return launches
    .map((createdAtMs) => ({ createdAtMs, knownAtMs: Math.max(historyFromMs, createdAtMs) }))
    .sort((a, b) => b.knownAtMs - a.knownAtMs)
}
