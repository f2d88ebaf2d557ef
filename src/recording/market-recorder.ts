// Records closed bars and versions of token profiles in the store, and where market time went back. The market never waits for it.
import type { Log } from '../lib/log.ts'
import type { Metrics } from '../lib/metrics/metrics.ts'
import { nextTurn } from '../lib/wait.ts'
import type { Market, MarketOptions } from '../market/market.ts'
import type { BarSink, ProfileSink } from '../store/types.ts'
import { TokenProfileRecorder } from './token-profile-recorder.ts'

/** How often the bars of silent tokens are looked at, and of how many: 100 000 tokens in five seconds. */
const SWEEP_EVERY_MS = 25
const SWEEP_TOKENS = 500
/** How often changed profiles are written. Each time only some are, so that no submission waits for all of them. */
const PROFILES_EVERY_MS = 250
/** How long `recorded` waits for a store that refuses every profile. */
const REFUSED_MS_MAX = 3_000

/** What a market calls with what it closes and changes. */
export type MarketCallbacks = Required<Pick<MarketOptions, 'onBarClosed' | 'onProfileChanged' | 'onRewound'>>

/** Callbacks for a market whose closed bars and token profiles go to `store`, and the recorder of the market that has them. */
export function prepareRecorder(
  { bars, profiles: sink }: { bars: BarSink; profiles: ProfileSink },
  log: Log,
): { callbacks: MarketCallbacks; recorderOf(market: Market): MarketRecorder } {
  const profiles = new TokenProfileRecorder(
    (rows) => sink.write(rows),
    (mint, error) =>
      log.error(
        { mint, error: String(error) },
        'the store refuses the profile of this token: it is not recorded',
      ),
  )
  return {
    callbacks: {
      onBarClosed: (bar) => bars.add(bar),
      onProfileChanged: (mint) => profiles.note(mint),
      onRewound: (span) => bars.noteRewound(span),
    },
    recorderOf: (market) => new MarketRecorder(market, bars, profiles, log),
  }
}

export class MarketRecorder {
  readonly #market: Market
  readonly #bars: BarSink
  readonly #profiles: TokenProfileRecorder
  readonly #log: Log
  readonly #timers: NodeJS.Timeout[] = []
  /** The one write that is on its way, of whoever began it. */
  #writing: Promise<boolean> | null = null
  /** When the store began to refuse every commit of profiles, monotonic ms; null while it takes them. */
  #failingSinceMs: number | null = null

  constructor(market: Market, bars: BarSink, profiles: TokenProfileRecorder, log: Log) {
    this.#market = market
    this.#bars = bars
    this.#profiles = profiles
    this.#log = log
    bars.compareWith(() => market.barsEmitted)
  }

  /** Tells where market time went back before a start: the last run may have taken with it what had not come to the lake. */
  noteAllRewound(): void {
    for (const span of this.#market.rewound) this.#bars.noteRewound(span)
  }

  /** From now on bars of silent tokens and changed profiles are recorded at intervals. */
  start(): void {
    this.#timers.push(
      setInterval(() => this.#emitBars(SWEEP_TOKENS), SWEEP_EVERY_MS),
      setInterval(() => void this.#write(), PROFILES_EVERY_MS),
    )
  }

  /** Whether every profile was handed to the store. */
  get hasAllProfiles(): boolean {
    // What the store refuses it would refuse again.
    const { waiting, dropped } = this.#profiles.stats()
    return this.#writing === null && waiting + dropped === 0
  }

  /** The profiles of all tokens are recorded, whatever the lake has. */
  noteAllProfiles(): void {
    for (const mint of this.#market.mints()) this.#profiles.note(mint)
  }

  /** Hands the store every bar that is closed by now. */
  emitAllBars(): void {
    // The first call may finish a round that is under way; the second goes round all tokens.
    for (let round = 0; round < 2; round++) this.#emitBars(this.#market.tokensMax)
  }

  /** Hands the store every bar that was closed before this call, some at a time. */
  async emitBarsInSlices(): Promise<void> {
    // One slice more: where a round ends, the next one begins with another slice.
    for (let looked = 0; looked <= this.#market.tokensMax; looked += SWEEP_TOKENS) {
      this.#emitBars(SWEEP_TOKENS)
      await nextTurn()
    }
  }

  /** Resolves when every change of a profile so far is with the store, or when the store has refused them for REFUSED_MS_MAX. */
  async recorded(): Promise<void> {
    while ((await this.#write()) && !this.#isFailingForLong());
  }

  /** Hands the store everything; call it after the last event. It may be called more than once. */
  async stop(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer)
    this.emitAllBars()
    await this.recorded()
    const { bars, profiles } = this.stats()
    const lost = { bars: bars.dropped, tokens: profiles.waiting + profiles.dropped + profiles.refused }
    if (lost.bars + lost.tokens > 0)
      this.#log.warn(lost, 'the store did not keep up: these bars and token profiles are not recorded')
  }

  stats() {
    return { bars: this.#bars.stats(), profiles: this.#profiles.stats() }
  }

  /** Tells the store up to which market time it got all bars. To be called where market time has gone back. */
  tellComplete(): void {
    this.#bars.completeTo(this.#market.barsEmittedToMs)
  }

  #emitBars(tokensMax: number): void {
    this.#market.emitClosedBars(tokensMax)
    this.tellComplete()
  }

  /** Writes profiles, or waits for the write that is on its way. @returns whether more wait. */
  #write(): Promise<boolean> {
    this.#writing ??= this.#writeProfiles().finally(() => {
      this.#writing = null
    })
    return this.#writing
  }

  async #writeProfiles(): Promise<boolean> {
    try {
      const isMore = await this.#profiles.write(this.#market)
      if (this.#failingSinceMs !== null)
        this.#log.info(this.#profiles.stats(), 'token profiles are recorded again')
      this.#failingSinceMs = null
      return isMore
    } catch (error) {
      // Logged at the first failure, not at each try.
      if (this.#failingSinceMs === null)
        this.#log.warn({ error: String(error) }, 'token profiles could not be recorded; trying again')
      this.#failingSinceMs ??= performance.now()
      return true
    }
  }

  #isFailingForLong(): boolean {
    return this.#failingSinceMs !== null && performance.now() - this.#failingSinceMs > REFUSED_MS_MAX
  }
}

/** Publishes what waits for the store and what was lost. */
export function readRecorderMetrics(metrics: Metrics, recorder: MarketRecorder): void {
  metrics.readAll(() => recorder.stats().bars, {
    mintlake_lake_bars_waiting: ['Closed bars on their way to the store', 'waiting'],
    mintlake_lake_bars_dropped_total: ['Closed bars dropped because the store did not keep up', 'dropped'],
  })
  metrics.readAll(() => recorder.stats().profiles, {
    mintlake_lake_tokens_waiting: ['Tokens whose new profile is not written yet', 'waiting'],
    mintlake_lake_tokens_dropped_total: [
      'Versions of token profiles dropped because the store did not keep up',
      'dropped',
    ],
    mintlake_lake_tokens_refused_total: [
      'Versions of token profiles that the store refused though it took others',
      'refused',
    ],
  })
}
