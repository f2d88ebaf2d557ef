// In: the price of SOL as the security provider gives it, asked for now and then. Out: solPrice events, without which no
// trade of PumpPortal has a USD price. Never invents one: without an answer the latest price stays in force.
import { assert } from '../../lib/assert.ts'
import type { Clock } from '../../lib/clock.ts'
import { safeParse } from '../../lib/safe-parse.ts'
import { price } from '../../schema/bounds.ts'
import type { EventSink } from '../../schema/event.ts'
import { EventCounters } from '../event-counters.ts'
import { PROVIDER_LOG_EVERY_MS } from '../limits.ts'
import { LogThrottle } from '../log-throttle.ts'
import type { Feed, FeedLog, FeedStatus } from '../types.ts'
import { wait } from '../wait.ts'
import type { Birdeye } from './birdeye.ts'

export interface SolPriceOptions {
  birdeye: Birdeye
  everyMs?: number
}

export const SOL_PRICE_EVERY_MS = 30_000
const WRAPPED_SOL = 'So11111111111111111111111111111111111111112'

/** Starts asking. It is ready after the first answer, good or not. */
export function startSolPrice(options: SolPriceOptions, sink: EventSink, clock: Clock, log: FeedLog): Feed {
  return new SolPrice(options, sink, clock, log)
}

class SolPrice implements Feed {
  readonly ready: Promise<void>
  private latestPrice: { usd: number; atMs: number } | null = null
  private latestError: { message: string; atMs: number } | null = null
  private readonly line = new LogThrottle(PROVIDER_LOG_EVERY_MS)
  private readonly everyMs: number
  private readonly birdeye: Birdeye
  private readonly counters: EventCounters
  private readonly clock: Clock
  private readonly log: FeedLog
  private readonly stopping = new AbortController()
  private readonly settled = Promise.withResolvers<void>()
  private readonly running: Promise<void>

  constructor(options: SolPriceOptions, sink: EventSink, clock: Clock, log: FeedLog) {
    const { birdeye, everyMs = SOL_PRICE_EVERY_MS } = options
    assert(everyMs > 0, 'the price is asked for at an interval')
    this.birdeye = birdeye
    this.everyMs = everyMs
    this.counters = new EventCounters(sink)
    this.clock = clock
    this.log = log
    this.ready = this.settled.promise
    this.running = this.run()
  }

  private async run(): Promise<void> {
    const { signal } = this.stopping
    while (!signal.aborted) {
      try {
        await this.askOnce(signal)
      } catch (error) {
        this.log.error({ feed: 'solPrice', err: error }, 'a price of SOL could not be taken')
      }
      this.settled.resolve()
      await wait(this.everyMs, signal)
    }
    this.settled.resolve()
  }

  private async askOnce(signal: AbortSignal): Promise<void> {
    const { data, fault } = await this.birdeye.get('/defi/price', WRAPPED_SOL, signal)
    if (fault === 'stopped') return
    const usd = safeParse(price, data?.value).data
    const nowMs = this.clock.now()
    if (usd !== undefined) {
      this.latestPrice = { usd, atMs: nowMs }
      this.counters.apply({ type: 'solPrice', ts: nowMs, usd, source: 'birdeye' }, nowMs)
      return
    }
    const message = fault ?? 'malformed'
    this.counters.refuse(message)
    this.latestError = { message, atMs: nowMs }
    const unsaid = this.line.due(this.clock.monotonicMs())
    if (unsaid !== null)
      this.log.warn(
        { feed: 'solPrice', fault: message, unsaid },
        'no price of SOL: the latest one stays in force',
      )
  }

  async stop(): Promise<void> {
    this.stopping.abort()
    await this.running
  }

  describe(): FeedStatus {
    return {
      feed: 'solPrice',
      state: this.stopping.signal.aborted ? 'stopped' : 'running',
      simulated: false,
      source: 'birdeye',
      latestPrice: this.latestPrice,
      latestError: this.latestError,
      accepted: this.counters.accepted,
      rejected: { ...this.counters.rejected },
    }
  }
}
