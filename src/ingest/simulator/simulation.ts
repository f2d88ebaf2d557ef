// In: a seed and how far to go. Out: the events of a made-up market of bonding-curve tokens, in order of time: launches,
// trades with skewed popularity, rugs, graduations, live streams, patches, the SOL price. The same seed gives the same
// events however the time is cut into steps. Never reads a clock, never touches a market.
import { DAY_MS, HOUR_MS } from '../../lib/time.ts'
import type { EventSink, MarketEvent } from '../../schema/event.ts'
import { mintOfSymbol } from '../../schema/mint.ts'
import { graduatedPool } from './curve.ts'
import { graduatedEvent, patchEvent, tokenEvent } from './events.ts'
import { MOODS } from './mood.ts'
import { Popularity } from './popularity.ts'
import { Random } from './random.ts'
import { Schedule } from './schedule.ts'
import { APPEAL_MAX, agedToken, graduate, launchToken, type SimulatedToken } from './token.ts'
import { buyFor, isSoldOut, recordTrade, type TradeSetting, tradeSome } from './trading.ts'

export interface SimulationOptions {
  seed: number
  /** Tokens that exist when the history ends, give or take a few: launches are random. */
  tokens: number
  /** Trades per second from then on. */
  tradesPerSecond: number
  /** When the history ends and the market runs at full rate, Unix ms. */
  startMs: number
}

/** An event and when the market hears of it, Unix ms: a token older than the history is heard of late. */
export interface SimulatedEvent {
  event: MarketEvent
  receivedAtMs: number
}

/** How far back the coarse history reaches. */
export const HISTORY_MS = DAY_MS
/** The simulation forgets its least traded tokens above this many times those of the start. */
const TOKENS_GROWTH_MAX = 2
const TOKENS_KEPT_MIN = 10_000
const WALLETS = 4_096
const SOL_USD_MEAN = 150
const SOL_USD_SIGMA_PER_SQRT_HOUR = 0.008
const SOL_USD_PULL_PER_HOUR = 0.02
const COARSE_SCALE = 3
const FORGET_SAMPLES = 16
const VIEWERS_MEDIAN = 25
const STREAMS_SHARE_MAX = 0.02

export class Simulation {
  tokensLaunched = 0
  private readonly seed: number
  private readonly startMs: number
  private readonly random: Random
  private readonly schedule: Schedule
  private readonly popularity: Popularity
  private readonly tokens: SimulatedToken[] = []
  private readonly tokensMax: number
  private readonly wallets: (string | undefined)[] = []
  private readonly streams: SimulatedToken[] = []
  private due: SimulatedToken[] = []
  private solUsd: number
  private solAtMs: number
  private transactions = 0
  private counted = 0
  private pending: SimulatedEvent[] = []
  private nowMs: number

  constructor({ seed, tokens, tradesPerSecond, startMs }: SimulationOptions) {
    this.seed = seed
    this.startMs = startMs
    this.random = new Random(seed)
    this.tokensMax = Math.max(TOKENS_KEPT_MIN, tokens * TOKENS_GROWTH_MAX)
    this.popularity = new Popularity(this.tokensMax)
    this.nowMs = startMs - HISTORY_MS
    this.solUsd = Math.round(100 * this.random.lognormal(SOL_USD_MEAN, 0.1)) / 100
    this.solAtMs = this.nowMs
    this.schedule = new Schedule(this.random, { startMs, historyMs: HISTORY_MS, tokens, tradesPerSecond })
    this.emit({ type: 'solPrice', ts: this.nowMs, usd: this.solUsd })
    for (let count = 0; count < this.schedule.tokensBeforeHistory; count++) this.introduce()
  }

  get tokenCount(): number {
    return this.tokens.length
  }

  get streamCount(): number {
    return this.streams.length
  }

  /** The tokens as they are now, to be looked at only. */
  snapshotTokens(): readonly Readonly<SimulatedToken>[] {
    return this.tokens
  }

  /** All events up to and including `untilMs`, Unix ms, that were not given yet. */
  *events(untilMs: number): Generator<SimulatedEvent, void, undefined> {
    for (;;) {
      yield* this.pending
      this.pending = []
      if (!this.step(untilMs)) return
    }
  }

  /** Applies the same events to a sink, at most `eventsMax` or a few more; true when none is left up to `untilMs`. */
  advance(untilMs: number, sink: EventSink, eventsMax = Number.POSITIVE_INFINITY): boolean {
    for (let given = 0; given < eventsMax; ) {
      const { pending } = this
      this.pending = []
      for (const { event, receivedAtMs } of pending) sink.apply(event, receivedAtMs)
      given += pending.length
      if (!this.step(untilMs)) return true
    }
    return false
  }

  /** Leaves out the time up to `timeMs`: nothing happened in it. */
  skipTo(timeMs: number): void {
    this.schedule.skipTo(timeMs)
  }

  /** Does the next thing, if it is not later than `untilMs`; its events are then pending. */
  private step(untilMs: number): boolean {
    const process = this.schedule.take(untilMs)
    if (process === null) return false
    this.nowMs = Math.floor(this.schedule.timeMs)
    switch (process) {
      case 'trade':
        this.tradeOnce(this.tokens[this.popularity.draw(this.random.next())])
        break
      case 'launch':
        this.launch()
        break
      case 'patch':
        this.patchNext()
        break
      case 'census':
        this.emit(patchEvent(this.tokens[this.counted++ % this.tokens.length], this.solUsd, this.nowMs))
        break
      case 'solPrice':
        this.moveSolPrice()
        break
      case 'stream':
        this.turnStream()
        break
      case 'drift':
        this.drift()
        break
    }
    return true
  }

  private emit(event: MarketEvent): void {
    this.pending.push({ event, receivedAtMs: this.nowMs })
  }

  private readonly wallet = (): string => {
    const number = Math.min(this.random.below(WALLETS), this.random.below(WALLETS))
    this.wallets[number] ??= mintOfSymbol(`mintlake simulated ${this.seed} wallet ${number}`)
    return this.wallets[number]
  }

  private readonly transaction = (): string => `simulated-${(++this.transactions).toString(36)}`

  private setting(): TradeSetting {
    const { random, solUsd, wallet, transaction } = this
    const coarse = Math.min(1, Math.max(0, this.startMs - this.nowMs) / HOUR_MS)
    return { random, solUsd, wallet, transaction, timeMs: this.nowMs, scale: 1 + (COARSE_SCALE - 1) * coarse }
  }

  private reweigh(token: SimulatedToken): void {
    this.popularity.set(token.slot, token.appeal * MOODS[token.mood].heat)
  }

  private putDue(token: SimulatedToken): void {
    if (token.isDue) return
    token.isDue = true
    this.due.push(token)
  }

  private tradeOnce(token: SimulatedToken): void {
    const mood = token.mood
    this.emit(tradeSome(token, this.setting()))
    this.afterTrade(token, mood)
  }

  private afterTrade(token: SimulatedToken, moodBefore: string): void {
    this.putDue(token)
    if (isSoldOut(token)) this.graduate(token)
    else if (token.mood !== moodBefore) this.reweigh(token)
  }

  private graduate(token: SimulatedToken): void {
    graduate(token, graduatedPool())
    token.appeal = Math.min(APPEAL_MAX, token.appeal * 4)
    this.reweigh(token)
    this.emit(graduatedEvent(token, this.nowMs))
    this.emit(patchEvent(token, this.solUsd, this.nowMs))
  }

  /** A slot for a new token; the least traded of a few gives way when all are taken. */
  private freeSlot(): number {
    if (this.tokens.length < this.tokensMax) return this.tokens.length
    let slot = this.random.below(this.tokensMax)
    for (let sample = 1; sample < FORGET_SAMPLES; sample++) {
      const other = this.random.below(this.tokensMax)
      if (this.popularity.weightOf(other) < this.popularity.weightOf(slot)) slot = other
    }
    return slot
  }

  private place(token: SimulatedToken): void {
    this.tokens[token.slot] = token
    this.reweigh(token)
    this.emit(tokenEvent(token))
  }

  /** A token from before the history: what it went through is told by its patch, its price by one trade. */
  private introduce(): void {
    const slot = this.tokens.length
    const { random, seed, wallet, nowMs } = this
    const token = agedToken(random, seed, this.tokensLaunched++, slot, wallet(), nowMs, wallet)
    this.place(token)
    if (token.isGraduated) this.emit(graduatedEvent(token, nowMs))
    this.tradeOnce(token)
    this.emit(patchEvent(token, this.solUsd, nowMs))
  }

  private launch(): void {
    const slot = this.freeSlot()
    const previous = this.tokens[slot]
    if (previous !== undefined && previous.viewerCount !== null) this.endStream(previous)
    const token = launchToken(this.random, this.seed, this.tokensLaunched++, slot, this.wallet(), this.nowMs)
    this.place(token)
    const setting = this.setting()
    const event = buyFor(token, setting, token.creator, Math.min(5, this.random.lognormal(0.6, 1)))
    recordTrade(token, setting, event)
    this.emit(event)
    this.afterTrade(token, 'fresh')
    this.emit(patchEvent(token, this.solUsd, this.nowMs))
  }

  private patchNext(): void {
    const token = this.schedule.takeDue(this.due)
    if (token === undefined) return
    token.isDue = false
    // Its slot has gone to another token since: nobody looks any more.
    if (this.tokens[token.slot] !== token) return
    this.emit(patchEvent(token, this.solUsd, this.nowMs))
    if (token.viewerCount === null) return
    token.viewerCount = Math.max(1, Math.round(token.viewerCount * this.random.lognormal(1, 0.15)))
    this.emitLive(token)
  }

  private emitLive(token: SimulatedToken): void {
    const { mint, viewerCount } = token
    this.emit({ type: 'live', mint, ts: this.nowMs, isLive: viewerCount !== null, viewerCount })
  }

  private moveSolPrice(): void {
    const hours = (this.nowMs - this.solAtMs) / HOUR_MS
    const pull = SOL_USD_PULL_PER_HOUR * hours * Math.log(SOL_USD_MEAN / this.solUsd)
    const shock = SOL_USD_SIGMA_PER_SQRT_HOUR * Math.sqrt(hours) * this.random.normal()
    this.solUsd = Math.round(10_000 * this.solUsd * Math.exp(pull + shock)) / 10_000
    this.solAtMs = this.nowMs
    this.emit({ type: 'solPrice', ts: this.nowMs, usd: this.solUsd })
  }

  /** Streams come and go; popular tokens have them more often. */
  private turnStream(): void {
    const full = this.streams.length >= 1 + this.tokens.length * STREAMS_SHARE_MAX
    if (full || (this.streams.length > 0 && this.random.chance(0.3))) {
      this.endStream(this.random.pick(this.streams))
      return
    }
    const token = this.tokens[this.popularity.draw(this.random.next())]
    if (token.viewerCount !== null) return
    token.viewerCount = 1 + Math.round(this.random.lognormal(VIEWERS_MEDIAN, 1.2))
    this.streams.push(token)
    this.emitLive(token)
  }

  private endStream(token: SimulatedToken): void {
    this.streams.splice(this.streams.indexOf(token), 1)
    token.viewerCount = null
    this.emitLive(token)
  }

  /** Taste changes: one token's appeal moves, pulled back towards that of most. */
  private drift(): void {
    const token = this.random.pick(this.tokens)
    token.appeal = Math.min(APPEAL_MAX, Math.max(1, token.appeal ** 0.9 * this.random.lognormal(1, 0.6)))
    this.reweigh(token)
  }
}
