// Market time of a running server: it goes on with the clock, unless it is that of recorded data.
import { followsRecordedTime } from '../ingest/feed-settings.ts'
import { CLOCK_JUMP_MS_MIN, type SteadyClock } from '../lib/steady-clock.ts'
import type { Market } from '../market/market.ts'
import type { FeedSink } from '../recording/event-recorder.ts'
import type { RunningMarketDeps } from './open-market.ts'

/** How often market time is carried forward, for tokens without events. */
const TICK_MS = 100

type TimekeeperDeps = Pick<RunningMarketDeps, 'clock' | 'config' | 'log' | 'publisher'>

export class Timekeeper {
  /** Where market time went back to: bars that end later may not be in the lake, whatever it was told before. */
  rewoundToMs = Number.POSITIVE_INFINITY
  readonly #deps: TimekeeperDeps
  readonly #clock: SteadyClock
  readonly #isRecordedTime: boolean
  readonly #market: Market
  readonly #sink: FeedSink
  #ticker: NodeJS.Timeout | null = null
  /** As of the last tick, or of the begin: market time, and when the clock had leapt last. */
  #ticked = { marketMs: 0, leaptFromMs: 0 }
  #hasStopped = false

  /** @param sink for events of the server itself */
  constructor(deps: TimekeeperDeps, market: Market, sink: FeedSink) {
    this.#deps = deps
    this.#clock = deps.clock
    this.#isRecordedTime = followsRecordedTime(deps.config)
    this.#market = market
    this.#sink = sink
  }

  /** When a run begins, market time, Unix ms; 0: recorded data says when. To be asked once the market is where the run before left it. */
  beginMs(): number {
    if (this.#isRecordedTime) return 0
    this.#clock.notBefore(this.#market.timeMs)
    this.#ticked.leaptFromMs = this.#clock.leaptFromMs
    return this.#clock.now()
  }

  /** Market time goes on from now on. Before, only events carry it: the history that feeds begin with would come too late else. */
  start(): void {
    if (this.#isRecordedTime || this.#hasStopped) return
    this.#ticked.marketMs = this.#market.timeMs
    this.#ticker = setInterval(() => this.#tick(), TICK_MS)
  }

  /** Market time stands still from now on. */
  stop(): void {
    this.#hasStopped = true
    if (this.#ticker !== null) clearInterval(this.#ticker)
  }

  /**
   * Believes the machine's clock: an operator has confirmed it. Market time that is ahead of it goes back, and the market stays.
   * @returns how far market time has moved, ms
   */
  trust(): number {
    const market = this.#market
    const { log, publisher } = this.#deps
    const beforeMs = market.timeMs
    this.#clock.trust()
    if (this.#isRecordedTime) return 0
    const nowMs = this.#clock.now()
    if (nowMs < beforeMs) {
      this.#sink.apply({ type: 'rewind', ts: nowMs, fromMs: beforeMs }, nowMs)
      publisher?.noteTime()
      this.rewoundToMs = Math.min(this.rewoundToMs, nowMs)
    }
    this.#tick()
    const movedMs = market.timeMs - beforeMs
    log.warn({ movedMs }, 'the operator has confirmed the clock: market time follows it')
    return movedMs
  }

  #tick(): void {
    const market = this.#market
    const nowMs = this.#clock.now()
    const { leaptFromMs } = this.#clock
    // Nobody watches the time that is leapt over: a bar that closes by it lacks trades if the clock is wrong, and if it was wrong before.
    // None does while a feed heals, which brings what was missed.
    const fromMs = Math.max(leaptFromMs, this.#ticked.marketMs)
    const isLeap = leaptFromMs !== this.#ticked.leaptFromMs && nowMs - fromMs >= CLOCK_JUMP_MS_MIN
    if (isLeap && market.heldFromMs > fromMs)
      this.#sink.apply({ type: 'gap', ts: nowMs, fromMs, toMs: nowMs, reason: 'leap' }, nowMs)
    market.advanceTo(nowMs)
    this.#ticked = { marketMs: market.timeMs, leaptFromMs }
  }

  /** What is wrong with the clock, as sentences: where it cannot be told whether it is the clock or what was recorded. */
  reasons(): string[] {
    const { jumpMs } = this.#clock
    const what = this.#isRecordedTime ? 'the time of this server' : 'market time'
    if (jumpMs > 0)
      return [
        `the clock has leapt, and is ${seconds(jumpMs)} ahead of ${what}, which follows it if it stays: ${REMEDY}`,
      ]
    const marketMs = this.#isRecordedTime ? 0 : this.#market.timeMs
    const aheadMs = Math.max(-jumpMs, marketMs - this.#clock.machineMs())
    return aheadMs < CLOCK_JUMP_MS_MIN ? [] : [`${what} is ${seconds(aheadMs)} ahead of the clock: ${REMEDY}`]
  }
}

const seconds = (ms: number): string =>
  `${String(Math.round(ms / 1_000)).replaceAll(/\B(?=(\d{3})+$)/g, ' ')} s`

const REMEDY = 'if the clock is right, mintlake clock trust brings the market to it; else set the clock'
